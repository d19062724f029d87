-- A backup is made by the worker, who sees all namespaces, and holds what every sequence gave out
-- last: a number of a restored store must not name something else than it did.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA threefold TO threefold_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA threefold GRANT SELECT ON SEQUENCES TO threefold_worker;
