"""Behind a transaction pooler: a real PgBouncer, with fewer connections than clients."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_server import Role
from memory_tool.scope import Scope
from tests.acceptance.opening import OwnStore, passable_folder
from tests.contract.change_log import ChangeLogContract, read
from tests.contract.record_reader import RecordReaderContract
from tests.contract.record_snapshot import SnapshotContract
from tests.contract.record_store import RecordStoreContract
from tests.contract.truth import NO_BASE, Truth, postgres_truth
from tests.factories import ANNA, BEN
from tests.services.pgbouncer import PGBOUNCER, POOL, PgBouncer, pgbouncer
from tests.services.postgres import Database, Server

CLIENTS = 8

pytestmark = pytest.mark.skipif(
    PGBOUNCER is None, reason="no pgbouncer here; THREEFOLD_TEST_REQUIRES makes that a failure"
)


@pytest.fixture(scope="module")
def bouncer(postgres: Server) -> Iterator[PgBouncer]:
    """A PgBouncer before each server that there is."""
    with pgbouncer(postgres.superuser) as one:
        yield one


@pytest.fixture
def pooled(database: Database, bouncer: PgBouncer) -> Database:
    """A database behind it."""
    return bouncer.before(database)


class BehindPgBouncer:
    """Gives each test an empty database behind the pooler."""

    @pytest.fixture
    def truth(self, pooled: Database) -> Iterator[Truth]:
        """An empty one."""
        with postgres_truth(pooled, pooled=True) as one:
            yield one


class TestPooledRecordStore(BehindPgBouncer, RecordStoreContract):
    """Commits and scopes."""


class TestPooledSnapshot(BehindPgBouncer, SnapshotContract):
    """One moment of it."""


class TestPooledRecordReader(BehindPgBouncer, RecordReaderContract):
    """Reading without searching."""


class TestPooledChangeLog(BehindPgBouncer, ChangeLogContract):
    """What appliers read, by a cursor of the server that lives as long as its transaction."""

    def test_threads_may_read_at_once(self, truth: Truth) -> None:
        """A batch takes two connections, so of three one batch at a time leaves one for looks."""
        truth.add(*(f"note {number}" for number in range(20)))
        with ThreadPoolExecutor(4) as pool:
            size = pool.submit(lambda: len(read(truth, "vector")[0]))
            pending = set(pool.map(lambda _: truth.log.pending({}), range(8)))
        assert (size.result(), pending) == (20, {20})


def clients_and_servers(bouncer: PgBouncer, database: Database, *, user: str) -> tuple[int, int]:
    """How many clients of a role are connected, and how many connections they share."""
    for pool in bouncer.pools():
        if (pool["database"], pool["user"]) == (database.name, user):
            clients = (pool["cl_active"], pool["cl_waiting"])
            servers = (pool["sv_active"], pool["sv_idle"], pool["sv_used"], pool["sv_login"])
            return sum(map(int, map(str, clients))), sum(map(int, map(str, servers)))
    return 0, 0


def test_clients_that_share_connections_stay_apart(bouncer: PgBouncer, pooled: Database) -> None:
    """What one transaction sets, the next client on the connection must never meet."""
    with passable_folder() as folder:
        store = OwnStore(folder=folder, database_url=pooled.conninfo(Role.APP))
        # Two hosts. Who applies holds a transaction and asks for a second one.
        memories = [store.open(f"host {n % 2}", pooled=True) for n in range(CLIENTS)]
        try:
            with ThreadPoolExecutor(CLIENTS) as threads:
                list(threads.map(use, memories, range(CLIENTS)))
            assert any(memory.apply_now() for memory in memories)
            clients, servers = clients_and_servers(bouncer, pooled, user=Role.APP)
            assert clients >= CLIENTS > POOL >= servers > 0
        finally:
            for memory in memories:
                memory.close()


def use(memory: MemoryManage, number: int) -> None:
    """Write, repeat, search, delete and index, as one of several users."""
    mine = memory.scoped(user_id=f"user {number}")
    for turn in range(6):
        text = f"drink {turn} of user {number}"
        written = mine.add(text, key=f"k{turn}", idempotency_key=f"call {turn}")
        assert mine.add(text, key=f"k{turn}", idempotency_key=f"call {turn}") == written
        found = mine.search("drink", limit=20)
        assert {item.memory for item in found} == {
            f"drink {earlier} of user {number}" for earlier in range(turn + 1)
        }
        assert not found.degraded
    written = mine.add("drink of another day")
    mine.delete(written.id)
    memory.apply_now()
    assert len(mine.search("drink", limit=20)) == 6


def test_nothing_of_a_client_stays_on_the_connection(pooled: Database) -> None:
    """Neither the namespaces it named, nor a prepared statement, nor a setting of its planner."""
    with postgres_truth(pooled, pooled=True) as truth:
        truth.add("tea", namespace=ANNA)
        truth.add("coffee", namespace=BEN)
        with truth.log.changes("x", "keyword", base=NO_BASE, limit=9) as batch:
            assert len(list(batch.rows)) == 2
        for role in (Role.APP, Role.WORKER):
            with pooled.connection(role) as connection:
                connection.prepare_threshold = None
                left = connection.execute(
                    "SELECT (SELECT count(*) FROM pg_prepared_statements),"
                    " (SELECT count(*) FROM pg_cursors WHERE name <> ''),"
                    " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),"
                    " coalesce(current_setting('threefold.namespaces', true), ''),"
                    " current_setting('plan_cache_mode'), current_setting('enable_seqscan'),"
                    " current_setting('idle_in_transaction_session_timeout')"
                ).fetchall()
            assert left == [(0, 0, 0, "", "auto", "on", "5s")]
        with (
            pooled.connection(Role.APP) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="no namespace is named"),
        ):
            connection.execute("SELECT FROM threefold.memory")
        assert {row.namespace for row in truth.store.view(Scope.of(ANNA), ()).namespaces} == {ANNA}
