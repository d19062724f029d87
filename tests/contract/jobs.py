"""What every keeper of jobs promises."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from memory_tool.job_ports import ClaimedJob, Jobs

Worker: TypeAlias = Callable[[], Jobs]
"""Makes the jobs of the same store as another process sees them."""

FOLD = ("fold", "here")


def claimed(jobs: Jobs, *wanted: tuple[str, str]) -> ClaimedJob | None:
    """What an agenda does first: claim, and make sure that it is held."""
    job = jobs.claim(wanted or (FOLD,))
    assert job is None or job.lease.try_acquire()
    return job


class JobsContract:
    """Subclasses give the fixture ``worker``."""

    @pytest.fixture
    def jobs(self, worker: Worker) -> Jobs:
        """The jobs as one process sees them."""
        return worker()

    def test_a_period_is_offered_once(self, worker: Worker) -> None:
        """Any number of timers may offer it: the work is done once."""
        one, two = worker(), worker()
        assert not one.offer(*FOLD, every="day").done
        assert not two.offer(*FOLD, every="day").done
        assert claimed(one) is not None
        one.finish(*FOLD)
        assert two.offer(*FOLD, every="day").done
        assert claimed(two) is None

    def test_a_moment_is_always_another(self, jobs: Jobs) -> None:
        """Who asks for it again gets it again."""
        periods = {jobs.offer(*FOLD, every="moment").job.period for _ in range(3)}
        assert len(periods) == 3

    def test_a_job_is_claimed_by_one(self, worker: Worker) -> None:
        """The others find nothing to do while it is done."""
        one, two = worker(), worker()
        one.offer(*FOLD, every="hour")
        job = claimed(one)
        assert job is not None
        assert claimed(two) is None
        assert claimed(one) is None
        job.lease.release()
        again = claimed(two)
        assert again is not None
        assert again.job == job.job

    def test_one_of_many_claims_wins(self, worker: Worker) -> None:
        """However close they come."""
        workers = [worker() for _ in range(6)]
        for _ in range(10):
            workers[0].offer(*FOLD, every="moment")
            with ThreadPoolExecutor(6) as pool:
                won = [job for job in pool.map(claimed, workers) if job]
            assert len(won) == 1
            workers[1].finish(*FOLD)
            won[0].lease.release()

    def test_only_what_is_wanted_is_claimed(self, jobs: Jobs) -> None:
        """A folder's job can be done by processes of that folder alone."""
        jobs.offer(*FOLD, every="hour")
        assert claimed(jobs, ("fold", "there"), ("scrub", "here")) is None
        assert claimed(jobs, ("scrub", "here"), FOLD) is not None

    def test_the_newest_period_covers_older_ones(self, jobs: Jobs) -> None:
        """After a night without a worker its hours are not made up for one by one."""
        jobs.offer(*FOLD, every="day")
        newest = jobs.offer(*FOLD, every="minute").job
        jobs.offer("scrub", "here", every="minute")
        job = claimed(jobs)
        assert job is not None
        assert job.job == newest
        jobs.finish(*FOLD)
        job.lease.release()
        assert claimed(jobs) is None
        assert claimed(jobs, ("scrub", "here")) is not None

    def test_what_is_offered_while_a_job_is_done_stays_open(self, jobs: Jobs) -> None:
        """Whoever asks then may mean what was done already: it is done once more."""
        jobs.offer(*FOLD, every="hour")
        jobs.offer(*FOLD, every="moment")
        job = claimed(jobs)
        assert job is not None
        later = jobs.offer(*FOLD, every="moment").job
        jobs.finish(*FOLD, period=job.job.period)
        job.lease.release()
        left = claimed(jobs)
        assert left is not None
        assert left.job == later
        jobs.finish(*FOLD, period=later.period)
        assert claimed(jobs) is None

    def test_a_job_that_failed_is_put_off(self, jobs: Jobs) -> None:
        """It must neither be forgotten nor be tried without a pause, nor keep others waiting."""
        failed = jobs.offer(*FOLD, every="hour").job
        job = claimed(jobs)
        assert job is not None
        jobs.put_off(failed)
        job.lease.release()
        assert claimed(jobs) is None
        assert not jobs.offer(*FOLD, every="hour").done
