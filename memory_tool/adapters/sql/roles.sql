-- roles: the roles of Threefold, which belong to the whole server. Repeatable.
--
-- Run by a superuser or any user with CREATEROLE, in any database. Passwords are not set here: the
-- embedded server trusts whoever may open its private socket, and on a server of your own you set
-- them with ALTER ROLE ... PASSWORD.
--
-- threefold_owner   owns the database and its tables; used by migrations only
-- threefold_app     the SDK: reads and writes the namespaces of its call, under row-level security
-- threefold_worker  appliers and jobs: reads and writes across namespaces, by a policy of its own
-- threefold_reader  can't log in; owns the search functions that run with its rights, so that a
--                   condition on the namespace can stand inside them and their indexes be used

DO $create$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'threefold_reader') THEN
        CREATE ROLE threefold_reader NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'threefold_owner') THEN
        CREATE ROLE threefold_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'threefold_app') THEN
        CREATE ROLE threefold_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'threefold_worker') THEN
        CREATE ROLE threefold_worker LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
END
$create$;

-- A role that somebody made by hand may be too powerful: row-level security would not bind it.
DO $refuse$
DECLARE
    powerful text;
BEGIN
    SELECT string_agg(rolname, ', ' ORDER BY rolname) INTO powerful
    FROM pg_roles
    WHERE rolname IN ('threefold_owner', 'threefold_app', 'threefold_worker', 'threefold_reader')
      AND (rolsuper OR rolbypassrls OR (rolcanlogin AND rolname = 'threefold_reader'));
    IF powerful IS NOT NULL THEN
        RAISE EXCEPTION 'too powerful for Threefold: %', powerful
            USING HINT = 'Take SUPERUSER and BYPASSRLS from it, and LOGIN from threefold_reader.';
    END IF;
END
$refuse$;

-- The owner hands the search functions over to the reader.
GRANT threefold_reader TO threefold_owner;

-- Only a member of the owner may give it a database; a superuser needs no membership.
DO $member$
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT threefold_owner TO %I', current_user);
    END IF;
END
$member$;

-- A client that freezes inside a transaction must not hold a namespace's clock. Migrations may wait.
ALTER ROLE threefold_app SET idle_in_transaction_session_timeout = '5s';
ALTER ROLE threefold_worker SET idle_in_transaction_session_timeout = '5s';
