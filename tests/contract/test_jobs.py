"""The jobs in PostgreSQL and those of one process keep the contract."""

import itertools
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory_tool.adapters.in_memory_jobs import InMemoryJobs
from memory_tool.adapters.postgres_jobs import PostgresJobs
from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_upkeep import PostgresUpkeep
from memory_tool.job_values import Every, period_of
from tests.contract.jobs import FOLD, JobsContract, Worker, claimed
from tests.services.postgres import Database

SHORT = 0.5


class TestInMemoryJobs(JobsContract):
    """All threads see the same."""

    @pytest.fixture
    def worker(self) -> Worker:
        """There is one process only."""
        jobs = InMemoryJobs()
        return lambda: jobs


class TestPostgresJobs(JobsContract):
    """Each worker is another holder."""

    @pytest.fixture
    def workers(self, database: Database) -> Iterator[Callable[[float], PostgresJobs]]:
        """Makes workers whose jobs are free again after so many seconds."""
        with database.pool(Role.WORKER) as pool:
            numbers = itertools.count()

            def make(seconds: float) -> PostgresJobs:
                holder = f"holder {next(numbers)}"
                return PostgresJobs(pool, holder=holder, seconds=seconds)

            yield make

    @pytest.fixture
    def worker(self, workers: Callable[[float], PostgresJobs]) -> Worker:
        """Another process, on whichever host."""
        return lambda: workers(30.0)

    def test_the_job_of_a_dead_process_is_taken_up_again(
        self, workers: Callable[[float], PostgresJobs], database: Database
    ) -> None:
        """After its lease, by whoever comes; done by a late trigger it would be lost for ever."""
        with database.pool(Role.WORKER) as dying:
            dead = PostgresJobs(dying, holder="dead", seconds=SHORT)
            offered = dead.offer(*FOLD, every="hour").job
            assert claimed(dead) is not None
        heir = workers(SHORT)
        assert claimed(heir) is None
        time.sleep(SHORT)
        job = claimed(heir)
        assert job is not None
        assert job.job == offered
        job.lease.release()

    def test_old_jobs_and_leases_are_forgotten(
        self, workers: Callable[[float], PostgresJobs], database: Database
    ) -> None:
        """A table that grows each minute for years is a leak."""
        jobs = workers(30.0)
        jobs.offer(*FOLD, every="hour")
        jobs.finish(*FOLD)
        jobs.offer("scrub", "here", every="hour")
        with database.pool(Role.WORKER) as pool, database.connection(Role.WORKER) as connection:
            connection.execute("INSERT INTO threefold.lease VALUES ('x', 'gone', now())")
            PostgresUpkeep(pool).forget_old()

            def left() -> list[int]:
                tables = ("job", "lease")
                return [
                    len(connection.execute(f"SELECT FROM threefold.{table}").fetchall())
                    for table in tables
                ]

            assert left() == [2, 1]
            connection.execute("UPDATE threefold.job SET changed_at = now() - interval '3 days'")
            connection.execute("UPDATE threefold.lease SET expires = now() - interval '3 days'")
            PostgresUpkeep(pool).forget_old()
            assert left() == [1, 0]


@pytest.mark.parametrize(
    ("every", "name"),
    [("minute", "2025-03-01T23:04"), ("hour", "2025-03-01T23"), ("day", "2025-03-01")],
)
def test_a_period_is_named_in_utc(every: Every, name: str) -> None:
    """Hosts in two zones must mean the same hour; a later period sorts behind an earlier one."""
    moment = datetime(2025, 3, 1, 23, 4, 5, tzinfo=UTC)
    there = moment.astimezone(timezone(timedelta(hours=9)))
    assert period_of(moment, every) == period_of(there, every) == name
    assert period_of(moment + timedelta(days=1), every) > name
    assert period_of(moment, "moment").startswith("2025-03-01T23:04:05")
