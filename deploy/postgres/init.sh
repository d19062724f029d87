#!/usr/bin/env bash
# Make the roles, the database and the walls of Threefold on a PostgreSQL server, and set the three
# passwords. Repeatable: it brings what is there up to date, and is also how passwords are changed.
#
#   OWNER_PASSWORD=… APP_PASSWORD=… WORKER_PASSWORD=… deploy/postgres/init.sh
#
# Needs psql 14 or newer and bash. Which server, and as whom, say libpq's own variables (PGHOST, PGUSER,
# PGPASSFILE, PGSSLMODE, …): a superuser, or a user with CREATEROLE and CREATEDB.
#
#   DATABASE   name of the database; default: threefold
#   SQL        folder with roles.sql and database.sql; default: the checkout's, which the package holds
set -euo pipefail
export PGOPTIONS="${PGOPTIONS:-} -c client_min_messages=warning" # not each thing that is there already

: "${OWNER_PASSWORD:?password of threefold_owner}"
: "${APP_PASSWORD:?password of threefold_app}"
: "${WORKER_PASSWORD:?password of threefold_worker}"
export DATABASE=${DATABASE:-threefold}
folder=${SQL:-$(dirname "${BASH_SOURCE[0]}")/../../memory_tool/adapters/sql}

run() { # DATABASE, statements on standard input
  psql --no-psqlrc --quiet --no-password --set=ON_ERROR_STOP=1 --dbname="$1" "${@:2}"
}

run postgres --file="$folder/roles.sql"

# Under locale C, pg_trgm finds no trigram in Chinese text, without a word.
run postgres <<'STATEMENTS'
\getenv name DATABASE
SELECT format($create$CREATE DATABASE %I OWNER threefold_owner TEMPLATE template0
              ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'$create$, :'name')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
STATEMENTS

run "$DATABASE" --file="$folder/database.sql"

# psql reads the passwords from its environment: arguments can be seen by every user of a machine.
# And the server must not log the statements, which only a superuser may tell it.
run postgres --output=/dev/null <<'STATEMENTS'
\getenv owner OWNER_PASSWORD
\getenv app APP_PASSWORD
\getenv worker WORKER_PASSWORD
SELECT set_config('log_statement', 'none', false), set_config('log_min_error_statement', 'panic', false),
       set_config('log_min_duration_statement', '-1', false)
WHERE (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
SET password_encryption = 'scram-sha-256';
ALTER ROLE threefold_owner PASSWORD :'owner';
ALTER ROLE threefold_app PASSWORD :'app';
ALTER ROLE threefold_worker PASSWORD :'worker';
STATEMENTS
echo "the database $DATABASE and its three roles are ready"
