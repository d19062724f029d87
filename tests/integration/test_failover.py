"""A primary dies or steps down and its standby takes over: no write is lost, none is doubled."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import DATABASE, Role
from memory_tool.errors import Unavailable
from memory_tool.port_values import PageRequest
from memory_tool.query import EVERYTHING
from memory_tool.scope import Scope
from tests.acceptance.opening import OwnStore, passable_folder
from tests.factories import ANNA, commit_of, put
from tests.services.postgres_pair import (
    PostgresNode,
    PostgresPair,
    postgres_pair,
    system_binaries,
    wait_until,
)

BINARIES = system_binaries()
WRITERS = 4

pytestmark = pytest.mark.skipif(
    BINARIES is None,
    reason="no PostgreSQL of the system here; THREEFOLD_TEST_REQUIRES makes that a failure",
)


@pytest.fixture
def pair() -> Iterator[PostgresPair]:
    """A primary and its synchronous standby."""
    assert BINARIES is not None
    with postgres_pair(BINARIES) as one:
        yield one


@dataclass(slots=True)
class Writer:
    """One agent that never stops writing, and reads what it wrote."""

    memory: MemoryManage
    user: str
    stopped: threading.Event
    acknowledged: dict[str, str] = field(default_factory=dict)
    errors: list[Exception] = field(default_factory=list)
    longest: float = 0.0

    def run(self) -> None:
        """Write and read until it is told to stop."""
        try:
            while not self.stopped.is_set():
                self._turn(len(self.acknowledged))
        except Exception as error:  # noqa: BLE001 - the test's thread looks at it
            self.errors.append(error)

    def _turn(self, number: int) -> None:
        text, start = f"{self.user} says {number}", time.monotonic()
        # Kept, though it were there: a write that happened twice would be there twice.
        written = self.memory.add(
            text,
            user_id=self.user,
            on_duplicate="keep",
            idempotency_key=f"{self.user}/{number}",
        )
        self.acknowledged[text] = written.id
        assert self.memory.get(written.id, user_id=self.user).memory == text
        self.longest = max(self.longest, time.monotonic() - start)


@contextmanager
def writing(pair: PostgresPair) -> Iterator[list[Writer]]:
    """Agents that write to the pair while the block runs; each must still write at its end."""
    stopped = threading.Event()
    with passable_folder() as folder:
        store = OwnStore(folder=folder, database_url=pair.address())
        with store.open(retry_seconds=60.0, retry_attempts=50) as memory:
            writers = [Writer(memory, f"user {number}", stopped) for number in range(WRITERS)]
            threads = [threading.Thread(target=writer.run) for writer in writers]
            for thread in threads:
                thread.start()
            try:
                wait_until(lambda: all_wrote(writers, 10))
                yield writers
                marks = [len(writer.acknowledged) for writer in writers]
                wait_until(lambda: all_wrote(writers, *(mark + 10 for mark in marks)))
            finally:
                stopped.set()
                for thread in threads:
                    thread.join()
            assert [writer.errors for writer in writers] == [[]] * WRITERS
            wait_until(memory.apply_now)
            found = memory.search("says", user_id=writers[0].user, limit=100)
            assert not found.degraded
            assert len(found["results"]) == min(100, len(writers[0].acknowledged))


def all_wrote(writers: list[Writer], *counts: int) -> bool:
    """Whether each has so many acknowledgements; or one gave up, and there is no use in waiting."""
    wanted = counts if len(counts) == len(writers) else counts * len(writers)
    return any(writer.errors for writer in writers) or all(
        len(writer.acknowledged) >= count for writer, count in zip(writers, wanted, strict=True)
    )


def stored(node: PostgresNode) -> list[tuple[str, str]]:
    """Content and id of every live row of a server."""
    with psycopg.connect(node.conninfo(dbname=DATABASE)) as connection:
        return connection.execute(
            "SELECT content, encode(uuid_send(id), 'hex') FROM threefold.memory"
            " WHERE state = 'live' ORDER BY 1"
        ).fetchall()


@contextmanager
def switching(what: str) -> Iterator[None]:
    """Tell how long the servers took; the writers' wait is told afterwards."""
    start = time.monotonic()
    yield
    print(f"\n{what}: the standby took over within {time.monotonic() - start:.1f} s")  # noqa: T201 - a figure for people


def check_nothing_lost(writers: list[Writer], node: PostgresNode) -> None:
    """What was acknowledged is there, once; and nothing else is."""
    told = {text: one for writer in writers for text, one in writer.acknowledged.items()}
    assert stored(node) == sorted(told.items())
    longest = max(writer.longest for writer in writers)
    print(f"{len(told)} writes in all; the longest, read back, took {longest:.1f} s")  # noqa: T201 - a figure for people


def test_a_primary_is_killed(pair: PostgresPair) -> None:
    """The writers hear nothing of it: they wait some seconds, and go on with the new primary."""
    with writing(pair) as writers, switching("primary killed"):
        pair.primary.kill()
        pair.standby.promote()
    check_nothing_lost(writers, pair.standby)


def test_a_primary_steps_down(pair: PostgresPair) -> None:
    """It comes back at its old address as a standby, where neither a write nor a read may go."""
    with writing(pair) as writers:
        with switching("primary stopped"):
            pair.primary.stop()
            pair.standby.promote()
        pair.primary.follow(pair.standby)
    check_nothing_lost(writers, pair.standby)
    wait_until(lambda: stored(pair.primary) == stored(pair.standby))


def connected(node: PostgresNode) -> PostgresPool:
    """A pool that knows one server only."""
    return PostgresPool(node.conninfo(user=Role.APP, dbname=DATABASE))


def test_a_standby_answers_nothing(pair: PostgresPair) -> None:
    """It may not have heard yet of what was acknowledged: silence would be a stale answer."""
    pool = connected(pair.standby)
    pool.open()
    try:
        store = PostgresRecordStore(pool)
        calls: list[Callable[[], object]] = [
            lambda: store.commit(commit_of([put("tea")])),
            lambda: store.view(Scope.of(ANNA), ()),
            lambda: PostgresRecordReader(pool, store).page(
                Scope.of(ANNA), PageRequest(condition=EVERYTHING, limit=1)
            ),
        ]
        for call in calls:
            with pytest.raises(Unavailable) as caught:
                call()
            assert caught.value.outcome == "not_started"
        # Once it is the primary, the same pool goes on.
        pair.primary.stop()
        pair.standby.promote()
        store.commit(commit_of([put("tea")]))
        assert len(store.view(Scope.of(ANNA), ()).namespaces) == 1
    finally:
        pool.close()


def test_a_server_that_became_read_only_is_left(pair: PostgresPair) -> None:
    """A pooler between may have moved us there: every connection to it is dropped, not only one."""
    with psycopg.connect(pair.primary.conninfo(), autocommit=True) as admin:
        pool = connected(pair.primary)
        pool.open()
        try:
            store = PostgresRecordStore(pool)
            store.commit(commit_of([put("tea")]))
            with pool.connection() as connection:
                before = connection.info.backend_pid
            admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            admin.execute("SELECT pg_reload_conf()")
            wait_until(lambda: refuses(store))
            with pool.connection() as connection:
                assert connection.info.backend_pid != before
            admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
            admin.execute("SELECT pg_reload_conf()")
            wait_until(lambda: not refuses(store))
        finally:
            pool.close()


def refuses(store: PostgresRecordStore) -> bool:
    """Whether a write is turned away, as something to try again."""
    try:
        store.commit(commit_of([put("tea")]))
    except Unavailable:
        return True
    return False
