"""What callers hear when PostgreSQL fails, and how the pool gets well again."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from memory_tool.adapters.postgres_binaries import EmbeddedPostgresError
from memory_tool.adapters.postgres_connection import PostgresPool, translated
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Corrupt, InputError, NotFound, ThreefoldError, Unavailable
from memory_tool.model import NewMemory
from memory_tool.port_values import Existing, PageRequest, WritePlan
from memory_tool.query import EVERYTHING
from memory_tool.scope import Scope
from tests.contract.truth import Truth, postgres_truth
from tests.factories import ANNA, commit_of, put
from tests.services.postgres import Database, Server

EVERY_ROW = PageRequest(condition=EVERYTHING, limit=100)


@pytest.fixture
def truth(database: Database) -> Iterator[Truth]:
    """A truth in an empty database."""
    with postgres_truth(database) as one:
        yield one


def cut_connections(database: Database) -> None:
    """End every session of the app, as a failing server does."""
    with database.admin() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE usename = 'threefold_app' AND datname = current_database()"
        )


def test_a_cut_connection_costs_one_call(database: Database, truth: Truth) -> None:
    """The pool may hold eight connections that died together; each would cost a try."""

    def nested(depth: int) -> WritePlan:
        # Each plan runs inside another's transaction, so the pool has to open several connections.
        if depth:
            namespace = replace(ANNA, agent=f"{depth}")
            truth.plan(lambda _: nested(depth - 1), namespace=namespace)
        return WritePlan(changes=(), results=())

    nested(4)
    cut_connections(database)
    with pytest.raises(Unavailable) as caught:
        truth.add("tea")
    assert caught.value.outcome == "not_started"
    assert len(truth.add("tea")) == 1
    assert truth.reader.counts()["memories"] == 1


def test_a_lost_answer_is_unknown_and_may_be_repeated(database: Database, truth: Truth) -> None:
    """Whether it was written, only a repetition under the same key tells."""
    commit = commit_of([put("tea")], key="once")

    def plan(existing: Existing) -> WritePlan:
        planned = commit.plan(existing)
        cut_connections(database)
        return planned

    with pytest.raises(Unavailable) as caught:
        truth.store.commit(replace(commit, plan=plan))
    assert (caught.value.outcome, caught.value.key) == ("unknown", "once")
    assert truth.store.commit(commit)[0].id is not None
    assert truth.clock() == 1


def test_a_failing_read_is_unavailable(database: Database, truth: Truth) -> None:
    """In the middle of a snapshot too; the next one is fine."""
    (memory_id,) = truth.add("tea")
    keys = truth.keys(memory_id)
    with suppress(Unavailable), truth.seen() as snapshot:
        cut_connections(database)
        snapshot.rows(keys)
        pytest.fail("the connection was cut")
    with truth.seen() as snapshot:
        assert set(snapshot.rows(keys)) == {memory_id}


def test_a_server_of_our_own_is_started_again(database: Database) -> None:
    """Whoever meets the failure revives it for the next call."""
    revived: list[str] = []
    pool = PostgresPool(database.conninfo(Role.APP), revive=lambda: revived.append("once"))
    pool.open()
    try:
        with suppress(Unavailable), pool.connection() as connection:
            cut_connections(database)
            connection.execute("SELECT 1")
        assert revived == ["once"]
        with pool.connection() as connection:
            connection.execute("SELECT 1")
        assert revived == ["once"]
    finally:
        pool.close()


def test_a_block_that_fails_leaves_no_transaction_open(database: Database) -> None:
    """It would hold a namespace until the server loses patience."""
    with database.pool(Role.APP, size=1) as pool:
        for error in (ZeroDivisionError, NotFound):
            with suppress(error), pool.connection() as connection:
                connection.execute("BEGIN")
                raise error
        with pool.connection() as connection:
            status = connection.info.transaction_status
        assert status is psycopg.pq.TransactionStatus.IDLE


def test_an_address_that_is_wrong_says_what_is_wrong(database: Database) -> None:
    """That it waited for 5 seconds helps nobody."""
    nowhere = make_conninfo(database.conninfo(Role.APP), dbname="nowhere")
    with pytest.raises(Unavailable, match='database "nowhere" does not exist'):
        PostgresPool(nowhere).open()


def test_an_unmigrated_database_says_so(postgres: Server) -> None:
    """Somebody forgot a step: the message names it."""
    with (
        postgres.blank_database() as blank,
        blank.pool(Role.APP) as pool,
        pytest.raises(Corrupt) as caught,
    ):
        PostgresRecordStore(pool).active_space()
    assert caught.value.command == "threefold migrate"


def test_a_value_that_can_not_be_stored_is_the_callers(truth: Truth) -> None:
    """No retry helps, and nothing of the value is quoted."""
    with pytest.raises(InputError) as caught:
        truth.add(NewMemory(content="secret \0"))
    assert "secret" not in str(caught.value)
    assert truth.reader.counts() == {"namespaces": 0, "memories": 0}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.AdminShutdown(), Unavailable),
        (psycopg.errors.CannotConnectNow(), Unavailable),
        (psycopg.errors.TooManyConnections(), Unavailable),
        (psycopg.errors.DiskFull(), Unavailable),
        (psycopg.errors.SerializationFailure(), Unavailable),
        (psycopg.errors.DeadlockDetected(), Unavailable),
        (psycopg.errors.QueryCanceled(), Unavailable),
        (psycopg.errors.ReadOnlySqlTransaction(), Unavailable),
        (psycopg.errors.IdleInTransactionSessionTimeout(), Unavailable),
        (psycopg.InterfaceError(), Unavailable),
        (EmbeddedPostgresError(), Unavailable),
        (psycopg.errors.NumericValueOutOfRange(), InputError),
        (psycopg.errors.ProgramLimitExceeded(), InputError),
        (psycopg.errors.UndefinedTable(), Corrupt),
        (psycopg.errors.UniqueViolation(), Corrupt),
        (psycopg.errors.InsufficientPrivilege(), Corrupt),
        (NotFound(), NotFound),
    ],
)
def test_errors_say_what_the_caller_can_do(
    error: Exception, expected: type[ThreefoldError]
) -> None:
    """Retry, change the call, or call an operator."""
    with pytest.raises(expected), translated():
        raise error


def test_behind_a_pooler_nothing_stays_in_a_session(database: Database) -> None:
    """The next transaction on the same connection may be anybody's."""
    with database.pool(Role.APP, size=1, pooled=True) as pool:
        store = PostgresRecordStore(pool)
        reader = PostgresRecordReader(pool, store)
        for number in range(8):
            store.commit(commit_of([put(f"note {number}")]))
            assert len(reader.page(Scope.of(ANNA), EVERY_ROW)) == number + 1
        with pool.connection() as connection:
            left = connection.execute(
                "SELECT (SELECT count(*) FROM pg_prepared_statements),"
                " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),"
                " current_setting('threefold.namespaces', true)"
            ).fetchall()
    assert left == [(0, 0, "")]
