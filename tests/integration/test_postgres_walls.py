"""Row-level security: what each role can't see and can't do, whatever a query says."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import SettingsError
from tests.contract.truth import Truth, postgres_truth
from tests.factories import ANNA, BEN, new_id
from tests.services.postgres import Database

UNREADABLE = ("namespace", "lease", "job", "erase_ledger")
"""Tables that the app has no business with."""


@pytest.fixture
def truth(database: Database) -> Iterator[Truth]:
    """A truth with one memory of Anna and one of Ben."""
    with postgres_truth(database) as one:
        one.add("tea", namespace=ANNA)
        one.add("coffee", namespace=BEN)
        yield one


@pytest.fixture
def app(database: Database, truth: Truth) -> Iterator[psycopg.Connection]:
    """The app's connection to it."""
    with database.connection(Role.APP) as connection:
        yield connection


def walled(connection: psycopg.Connection, *, partitions: bool = False) -> list[str]:
    """Every table that knows namespaces, or every partition of one."""
    rows = connection.execute(
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        " WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')"
        " AND attname = 'ns_id' AND relispartition = %s ORDER BY 1",
        [partitions],
    )
    return [str(name) for (name,) in rows]


FILLED = ("audit", "chunk", "idempotency", "memory", "ns_clock")
"""Tables that hold rows of both. An empty one hides nothing, and may be read past the wall."""


def count(connection: psycopg.Connection, table: str) -> int:
    """The rows of a table that can be seen."""
    query = sql.SQL("SELECT count(*) FROM threefold.{}").format(sql.Identifier(table))
    return int(connection.execute(query).fetchall()[0][0])


# ── What the app can't do ──


def test_without_a_namespace_reads_fail(app: psycopg.Connection) -> None:
    """Silence would be mistaken for an answer."""
    for table in FILLED:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="no namespace is named"):
            count(app, table)
    for named in ("", "{}"):
        with app.transaction():
            app.execute("SELECT set_config('threefold.namespaces', %s, true)", [named])
            with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
                count(app, "memory")


@pytest.mark.parametrize(
    "call",
    [
        "SELECT * FROM threefold.chunks_with_terms('{tea}', 10)",
        """SELECT * FROM threefold.memories_with_metadata('{"a": 1}')""",
    ],
)
def test_without_a_namespace_searches_fail(app: psycopg.Connection, call: str) -> None:
    """They run with the rights of another role, so they have to ask themselves."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="no namespace is named"):
        app.execute(call.encode())


def test_a_name_is_forgotten_with_its_transaction(truth: Truth, app: psycopg.Connection) -> None:
    """Behind a pooler the next transaction on this connection is somebody else's."""
    with app.transaction():
        app.execute(statement("name_namespaces"), {"named": f"{{{truth.number()}}}"})
        assert count(app, "memory") == 1
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        count(app, "memory")


def test_only_the_namespaces_named_are_seen(
    database: Database, truth: Truth, app: psycopg.Connection
) -> None:
    """Whatever the query forgot to say."""
    anna, ben = truth.number(ANNA), truth.number(BEN)
    for named, expected in ((f"{{{anna}}}", 1), (f"{{{anna},{ben}}}", 2), ("{99}", 0)):
        with app.transaction():
            app.execute(statement("name_namespaces"), {"named": named})
            assert count(app, "memory") == count(app, "chunk") == expected
            assert count(app, "idempotency") == count(app, "audit") == expected
            found = app.execute("SELECT * FROM threefold.chunks_with_terms('{tea,coffe}', 9)")
            assert found.rowcount == expected


def test_nothing_is_written_beyond_the_namespaces_named(
    truth: Truth, app: psycopg.Connection
) -> None:
    """An update finds no row, an insert is refused."""
    anna, ben = truth.number(ANNA), truth.number(BEN)
    with app.transaction():
        app.execute(statement("name_namespaces"), {"named": f"{{{anna}}}"})
        assert app.execute("UPDATE threefold.memory SET pinned = true").rowcount == 1
        assert app.execute("UPDATE threefold.ns_clock SET stamp = 1").rowcount == 1
        assert app.execute("DELETE FROM threefold.chunk").rowcount == 1
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"),
            app.transaction(),
        ):
            app.execute("UPDATE threefold.memory SET ns_id = %s", [ben])
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"),
            app.transaction(),
        ):
            app.execute(
                "INSERT INTO threefold.relation VALUES (%s, %s, 'is', %s)",
                [ben, new_id(), new_id()],
            )


@pytest.mark.parametrize("table", UNREADABLE)
def test_the_app_reads_no_table_of_others(app: psycopg.Connection, table: str) -> None:
    """Names of namespaces are secrets too: they hold user ids."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        count(app, table)


@pytest.mark.parametrize(
    "command",
    [
        "DELETE FROM threefold.memory",
        "DELETE FROM threefold.audit",
        "DELETE FROM threefold.ns_clock",
        "UPDATE threefold.audit SET action = 'x'",
        "UPDATE threefold.idempotency SET response = '[]'",
        "INSERT INTO threefold.index_mark (target, mark) VALUES ('a', 'b')",
        "UPDATE threefold.index_target SET generation = 9",
        "SET ROLE threefold_reader",
        "SET ROLE threefold_worker",
        "SET ROLE threefold_owner",
        "ALTER TABLE threefold.memory DISABLE ROW LEVEL SECURITY",
        "DROP POLICY app_rows ON threefold.memory",
        "CREATE FUNCTION threefold.mine() RETURNS int LANGUAGE sql RETURN 1",
        "TRUNCATE threefold.memory",
    ],
)
def test_the_app_can_not(truth: Truth, app: psycopg.Connection, command: str) -> None:
    """Audit stays, marks belong to the worker, walls to the owner."""
    with app.transaction():
        app.execute(statement("name_namespaces"), {"named": f"{{{truth.number()}}}"})
        with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
            app.execute(command.encode())


def test_the_worker_sees_all_namespaces(database: Database, truth: Truth) -> None:
    """Appliers and jobs work for all of them."""
    assert truth.clock(ANNA) == truth.clock(BEN) == 1
    with database.connection(Role.WORKER) as worker:
        assert count(worker, "memory") == count(worker, "namespace") == 2


@pytest.mark.parametrize("attribute", ["SUPERUSER", "BYPASSRLS"])
def test_a_powerful_role_is_refused(database: Database, attribute: str) -> None:
    """No policy binds it: everything would be visible."""
    name = f"threefold_test_{attribute.lower()}"
    with database.admin() as connection:
        connection.execute(f"DROP ROLE IF EXISTS {name}".encode())
        connection.execute(f"CREATE ROLE {name} LOGIN {attribute}".encode())
        try:
            pool = PostgresPool(database.conninfo(name))
            with pytest.raises(SettingsError, match="bypasses row-level security"):
                pool.open()
        finally:
            connection.execute(f"DROP ROLE {name}".encode())


@pytest.mark.parametrize("role", [Role.APP, Role.WORKER, Role.OWNER])
def test_a_partition_is_no_way_round_the_wall(database: Database, truth: Truth, role: Role) -> None:
    """Policies stand around whole tables; a partition that is named itself knows none of them."""
    grant = sql.SQL("{} ALL ON threefold.{} {} {}")
    with database.admin() as admin, database.connection(role) as connection:
        filled = [name for name in walled(admin, partitions=True) if count(admin, name)]
        assert {name.rpartition("_")[0] for name in filled} == set(FILLED) - {"ns_clock"}
        for name in filled:
            place = sql.Identifier(name)
            if role is not Role.OWNER:
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                    count(connection, name)
            # An operator who grants everything in the schema opens nothing by it.
            grantee = sql.Identifier(role)
            admin.execute(grant.format(sql.SQL("GRANT"), place, sql.SQL("TO"), grantee))
            with connection.transaction():
                named = f"{{{truth.number(ANNA)},{truth.number(BEN)}}}"
                connection.execute(statement("name_namespaces"), {"named": named})
                assert count(connection, name) == 0
            if role is not Role.OWNER:
                admin.execute(grant.format(sql.SQL("REVOKE"), place, sql.SQL("FROM"), grantee))


# ── The catalogue ──


def test_every_table_with_namespaces_forces_row_level_security(database: Database) -> None:
    """A table that somebody adds must not be forgotten; owners are bound too."""
    with database.admin() as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace"
            " AND relkind IN ('r', 'p') AND relrowsecurity AND relforcerowsecurity"
        )
        whole, parts = walled(connection), walled(connection, partitions=True)
        assert {str(name) for (name,) in rows} == {*whole, *parts}
        assert len(whole) >= 10
        assert len(parts) == 7 * 8


def test_every_policy_of_the_app_is_the_same(database: Database) -> None:
    """One wall, and no second door beside it."""
    with database.admin() as connection:
        rows = connection.execute(
            "SELECT tablename, cmd, permissive, qual FROM pg_policies"
            " WHERE schemaname = 'threefold' AND roles && '{threefold_app,public}' ORDER BY 1"
        ).fetchall()
        assert [row[0] for row in rows] == walled(connection)
    assert {row[1:3] for row in rows} == {("ALL", "PERMISSIVE")}
    (condition,) = {row[3] for row in rows}
    assert "allowed_namespaces" in condition


def test_every_unique_key_holds_the_namespace(database: Database) -> None:
    """Otherwise one tenant's row could stand in the way of another's, and tell of it."""
    with database.admin() as connection:
        rows = connection.execute(
            "SELECT i.indexrelid::regclass::text, a.attname"
            " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'ns_id'"
            " AND a.attnum = ANY (i.indkey)"
            " WHERE i.indisunique AND c.relnamespace = 'threefold'::regnamespace"
            " AND c.relname = ANY (%s)",
            [walled(connection)],
        ).fetchall()
    # But for the directory of namespaces itself, of which the app sees nothing.
    assert [name for name, holds in rows if not holds] == ["threefold.namespace_address"]
    assert len(rows) >= 14


def test_functions_with_other_rights_are_fenced(database: Database) -> None:
    """They belong to roles that can do little, and no search path leads them astray."""
    with database.admin() as connection:
        rows = connection.execute(
            "SELECT proname, proowner::regrole::text, proconfig::text,"
            " has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc"
            " WHERE pronamespace = 'threefold'::regnamespace AND prosecdef ORDER BY 1"
        ).fetchall()
        public = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'threefold'::regnamespace"
            " AND has_function_privilege('public', oid, 'EXECUTE')"
        ).fetchall()
    owners = {name: owner for name, owner, _, _ in rows}
    assert owners.pop("ensure_namespace") == Role.OWNER
    assert set(owners.values()) == {"threefold_reader"}
    assert all("search_path=pg_catalog" in config for _, _, config, _ in rows)
    assert public == []
