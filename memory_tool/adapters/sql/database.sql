-- database: who owns the current database and what everybody else loses in it. Repeatable.
--
-- Run after roles.sql, inside the database, by a superuser or a member of its owner.

DO $own$
BEGIN
    EXECUTE format('ALTER DATABASE %I OWNER TO threefold_owner', current_database());
    EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
END
$own$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
