"""The leases of a folder and of PostgreSQL keep the contract, and what each adds to it."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from memory_tool.adapters.host_folder import FolderLease
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_lease import PostgresLease
from memory_tool.adapters.postgres_server import Role
from tests.contract.lease import Contender, LeaseContract
from tests.services.postgres import Database

NAME = "elasticsearch:threefold:keyword"
SHORT = 0.8

LeaseOf: TypeAlias = Callable[[str, float], PostgresLease]


class TestFolderLease(LeaseContract):
    """By flock: the kernel frees it with its holder."""

    @pytest.fixture
    def contender(self, tmp_path: Path) -> Contender:
        """Another process of the same folder."""
        return lambda: FolderLease(tmp_path)


class TestPostgresLease(LeaseContract):
    """By a row that its holder keeps fresh."""

    @pytest.fixture
    def pool(self, database: Database) -> Iterator[PostgresPool]:
        """Connections of the worker's role."""
        with database.pool(Role.WORKER) as pool:
            yield pool

    @pytest.fixture
    def lease_of(self, pool: PostgresPool) -> Iterator[LeaseOf]:
        """Makes leases by holder and seconds; given back at the end."""
        with ExitStack() as made:

            def make(holder: str, seconds: float) -> PostgresLease:
                lease = PostgresLease(pool, name=NAME, holder=holder, seconds=seconds)
                made.callback(lease.release)
                return lease

            yield make

    @pytest.fixture
    def contender(self, lease_of: LeaseOf) -> Contender:
        """Another process, on whichever host."""
        numbers = itertools.count()
        return lambda: lease_of(f"holder {next(numbers)}", 30.0)

    def test_a_holder_at_a_long_batch_keeps_it(self, lease_of: LeaseOf) -> None:
        """A fold may take minutes, in which nobody asks for the lease."""
        busy, idle = lease_of("busy", SHORT), lease_of("idle", SHORT)
        assert busy.try_acquire()
        end = time.monotonic() + 3 * SHORT
        while time.monotonic() < end:
            assert not idle.try_acquire()
            time.sleep(0.05)
        assert busy.try_acquire()

    def test_a_dead_holder_is_replaced(self, lease_of: LeaseOf, database: Database) -> None:
        """Nobody has to mend anything after a crash; nor is anybody robbed before his time."""
        with database.pool(Role.WORKER) as dying:
            dead = PostgresLease(dying, name=NAME, holder="dead", seconds=SHORT)
            assert dead.try_acquire()
        heir = lease_of("heir", SHORT)
        assert not heir.try_acquire()
        time.sleep(SHORT)
        assert heir.try_acquire()

    def test_a_lost_lease_is_noticed(self, lease_of: LeaseOf, database: Database) -> None:
        """Whoever stood still must not go on as if nothing had happened."""
        lost, heir = lease_of("lost", SHORT), lease_of("heir", SHORT)
        assert lost.try_acquire()
        with database.connection(Role.WORKER) as connection:
            connection.execute(
                "UPDATE threefold.lease SET holder = 'heir', expires = now() + interval '1 hour'"
            )
        assert not lost.try_acquire()
        lost.release()
        assert heir.try_acquire()
        assert not lost.try_acquire()

    def test_looking_writes_nothing(self, lease_of: LeaseOf, database: Database) -> None:
        """A hundred processes look each second: that must cost neither commits nor row locks."""
        with database.connection(Role.WORKER) as connection:

            def row() -> object:
                return connection.execute(
                    "SELECT xmin, xmax, expires FROM threefold.lease"
                ).fetchall()

            held, other = lease_of("held", 3600.0), lease_of("other", 3600.0)
            assert held.try_acquire()
            before = row()
            assert [other.try_acquire() for _ in range(5)] == [False] * 5
            assert [held.try_acquire() for _ in range(5)] == [True] * 5
            assert row() == before
