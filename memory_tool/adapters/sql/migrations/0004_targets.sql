-- A generation is named by the hash of its manifest where it is files, by its index's name where it
-- is on a server.
ALTER TABLE threefold.index_target RENAME COLUMN manifest_sha256 TO locator;

-- A process that may not migrate still looks whether the schema is its own.
GRANT SELECT ON public.threefold_migration TO threefold_app, threefold_worker;
