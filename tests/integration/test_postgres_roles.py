"""The roles and the database, on the oldest and the newest PostgreSQL that we support."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from memory_tool.adapters.postgres_server import (
    DATABASE,
    EmbeddedPostgres,
    Role,
    create_roles_and_database,
)
from tests.integration.postgres_clients import world_folder

SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(None, id="wheel"),
        pytest.param(
            SYSTEM_15,
            id="15",
            marks=pytest.mark.skipif(not SYSTEM_15.is_dir(), reason="no PostgreSQL 15 here"),
        ),
    ],
)
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A server whose roles and database each test may spoil."""
    with world_folder() as folder, EmbeddedPostgres(folder / "s", bin_dir=request.param) as one:
        yield one


@pytest.fixture
def admin(server: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """The superuser's connection, on a server that has all the roles."""
    create_roles_and_database(server.superuser_conninfo(), DATABASE)
    with psycopg.connect(server.superuser_conninfo(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def bare(admin: psycopg.Connection) -> psycopg.Connection:
    """The same after all of it was dropped."""
    admin.execute(f"DROP DATABASE {DATABASE}")
    admin.execute("DROP ROLE threefold_owner, threefold_app, threefold_worker, threefold_reader")
    return admin


def owner_of(admin: psycopg.Connection, dbname: str) -> str:
    """The database's owner."""
    query = "SELECT datdba::regrole::text FROM pg_database WHERE datname = %s"
    found = admin.execute(query, (dbname,)).fetchone()
    assert found is not None
    return str(found[0])


def test_no_role_escapes_row_level_security(admin: psycopg.Connection) -> None:
    """Namespaces are kept apart by policies, which bind neither superusers nor BYPASSRLS."""
    roles = admin.execute(
        "SELECT rolname, rolcanlogin, rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole"
        " FROM pg_roles WHERE rolname LIKE 'threefold%' AND rolname <> 'threefold_superuser'"
        " ORDER BY rolname"
    ).fetchall()
    assert roles == [
        ("threefold_app", True, False),
        ("threefold_owner", True, False),
        ("threefold_reader", False, False),
        ("threefold_worker", True, False),
    ]


def test_only_the_owner_hands_functions_to_the_reader(admin: psycopg.Connection) -> None:
    """Whoever is a member of the reader could read across namespaces."""
    members = admin.execute(
        "SELECT rolname FROM pg_roles WHERE NOT rolsuper AND rolname LIKE 'threefold%'"
        " AND rolname <> 'threefold_reader' AND pg_has_role(rolname, 'threefold_reader', 'MEMBER')"
    ).fetchall()
    assert members == [("threefold_owner",)]


@pytest.mark.parametrize("role", [Role.APP, Role.WORKER])
def test_clients_make_no_tables(
    server: EmbeddedPostgres, admin: psycopg.Connection, role: Role
) -> None:
    """A table of their own would have no policy, and a temporary one can hide a real one."""
    assert owner_of(admin, DATABASE) == Role.OWNER
    with psycopg.connect(server.conninfo(role=role), autocommit=True) as connection:
        for statement in ("CREATE TABLE a ()", "CREATE TEMPORARY TABLE b ()", "CREATE SCHEMA c"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.usefixtures("admin")
@pytest.mark.parametrize(
    ("role", "timeout"), [(Role.APP, "5s"), (Role.WORKER, "5s"), (Role.OWNER, "0")]
)
def test_frozen_clients_are_cut_off(server: EmbeddedPostgres, role: Role, timeout: str) -> None:
    """A frozen client inside a transaction would stop all writes of a namespace."""
    with psycopg.connect(server.conninfo(role=role)) as connection:
        shown = connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
    assert shown == (timeout,)


@pytest.mark.parametrize(
    ("role", "power", "harmless"),
    [
        (Role.APP, "BYPASSRLS", "NOBYPASSRLS"),
        (Role.WORKER, "SUPERUSER", "NOSUPERUSER"),
        ("threefold_reader", "LOGIN", "NOLOGIN"),
    ],
)
def test_powerful_role_is_refused(
    server: EmbeddedPostgres, admin: psycopg.Connection, role: str, power: str, harmless: str
) -> None:
    """An operator who made the roles by hand would lose all isolation without noticing."""
    admin.execute(f"ALTER ROLE {role} {power}".encode())
    with pytest.raises(psycopg.errors.RaiseException, match=f"too powerful.*{role}"):
        create_roles_and_database(server.superuser_conninfo(), DATABASE)
    admin.execute(f"ALTER ROLE {role} {harmless}".encode())


def test_eight_at_once_make_one_of_each(server: EmbeddedPostgres, bare: psycopg.Connection) -> None:
    """Without the lock they meet in the catalogues, and the start of some of them fails."""
    with ThreadPoolExecutor(8) as pool:
        conninfo = server.superuser_conninfo()
        for done in [pool.submit(create_roles_and_database, conninfo, DATABASE) for _ in range(8)]:
            done.result()
    assert owner_of(bare, DATABASE) == Role.OWNER


def test_user_with_createrole_is_enough(server: EmbeddedPostgres, bare: psycopg.Connection) -> None:
    """Hosted servers give nobody a superuser."""
    bare.execute("CREATE ROLE boss LOGIN CREATEROLE CREATEDB")
    conninfo = make_conninfo(server.superuser_conninfo(), user="boss")
    for _ in range(2):
        create_roles_and_database(conninfo, DATABASE)
    assert owner_of(bare, DATABASE) == Role.OWNER
    # What the boss granted would keep the others from dropping the roles.
    bare.execute(f"DROP DATABASE {DATABASE}")
    bare.execute("DROP OWNED BY boss")
    bare.execute("DROP ROLE threefold_owner, threefold_app, threefold_worker, threefold_reader")
    bare.execute("DROP ROLE boss")


def test_database_made_by_hand_gets_its_owner(
    server: EmbeddedPostgres, admin: psycopg.Connection
) -> None:
    """An operator may have created it first; a crash may have come between two steps."""
    admin.execute("CREATE DATABASE by_hand")
    with psycopg.connect(server.superuser_conninfo("by_hand")) as connection:
        # As every database was before PostgreSQL 15, and stays after an upgrade.
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    create_roles_and_database(server.superuser_conninfo(), "by_hand")
    assert owner_of(admin, "by_hand") == Role.OWNER
    with (
        psycopg.connect(server.conninfo(role=Role.APP, dbname="by_hand")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("CREATE TABLE public.a ()")
    admin.execute("DROP DATABASE by_hand")
