"""Jobs of one process, for a record store that has none."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from memory_tool.job_ports import ClaimedJob, Jobs, Lease
from memory_tool.job_values import Every, Job, Offer, period_of

_PUT_OFF_SECONDS: Final = 60.0
_KEPT: Final = 1000


class InMemoryJobs(Jobs):
    """See :class:`memory_tool.job_ports.Jobs`."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # Open jobs with the moment from which they may be claimed; those done, the latest last.
        self._open: dict[Job, float] = {}
        self._done: dict[Job, None] = {}
        self._claimed: set[Job] = set()

    def offer(self, kind: str, target: str, *, every: Every) -> Offer:
        """See :meth:`memory_tool.job_ports.Jobs.offer`."""
        job = Job(kind=kind, target=target, period=period_of(self._clock(), every))
        with self._lock:
            done = job in self._done
            if not done:
                self._open.setdefault(job, 0.0)
        return Offer(job=job, done=done)

    def claim(self, wanted: Sequence[tuple[str, str]]) -> ClaimedJob | None:
        """See :meth:`memory_tool.job_ports.Jobs.claim`."""
        with self._lock:
            free = [
                job
                for job, since in self._open.items()
                if (job.kind, job.target) in wanted
                and job not in self._claimed
                and since <= time.monotonic()
            ]
            if not free:
                return None
            job = max(free, key=lambda job: job.period)
            self._claimed.add(job)
        return ClaimedJob(job=job, lease=_Claim(self._claimed, job))

    def finish(self, kind: str, target: str, *, period: str | None = None) -> None:
        """See :meth:`memory_tool.job_ports.Jobs.finish`."""
        with self._lock:
            covered = [
                job
                for job in self._open
                if (job.kind, job.target) == (kind, target)
                and (period is None or job.period <= period)
            ]
            for job in covered:
                del self._open[job]
                self._done[job] = None
            for job in list(self._done)[:-_KEPT]:
                del self._done[job]

    def put_off(self, job: Job) -> None:
        """See :meth:`memory_tool.job_ports.Jobs.put_off`."""
        with self._lock:
            if job in self._open:
                self._open[job] = time.monotonic() + _PUT_OFF_SECONDS


class _Claim(Lease):
    """Nobody else can take it, for there is no other process."""

    def __init__(self, claimed: set[Job], job: Job) -> None:
        self._claimed = claimed
        self._job = job

    def try_acquire(self) -> bool:
        """Held as long as it isn't released."""
        return self._job in self._claimed

    def release(self) -> None:
        """Others may claim the job, if it is still open."""
        self._claimed.discard(self._job)
