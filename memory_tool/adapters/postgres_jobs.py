"""Jobs as rows of PostgreSQL, each claimed by one process under a lease."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_lease import PostgresLease
from memory_tool.adapters.postgres_queries import statement
from memory_tool.job_ports import ClaimedJob, Jobs
from memory_tool.job_values import Every, Job, Offer, period_of

if TYPE_CHECKING:
    from datetime import datetime


class PostgresJobs(Jobs):
    """See :class:`memory_tool.job_ports.Jobs`."""

    def __init__(self, pool: PostgresPool, *, holder: str, seconds: float) -> None:
        """Claim as ``holder``; the job of one that died is free again after ``seconds``."""
        self._pool = pool
        self._holder = holder
        self._seconds = seconds

    def offer(self, kind: str, target: str, *, every: Every) -> Offer:
        """See :meth:`memory_tool.job_ports.Jobs.offer`."""
        with self._pool.connection() as connection:
            clock = connection.execute(statement("store_clock")).fetchone()
            (now,) = cast("tuple[datetime]", clock)
            job = Job(kind=kind, target=target, period=period_of(now, every))
            record = connection.execute(statement("offer_job"), _named(job)).fetchone()
        return Offer(job=job, done=cast("tuple[bool]", record)[0])

    def claim(self, wanted: Sequence[tuple[str, str]]) -> ClaimedJob | None:
        """See :meth:`memory_tool.job_ports.Jobs.claim`."""
        parameters = {
            "kinds": [kind for kind, _ in wanted],
            "targets": [target for _, target in wanted],
            "holder": self._holder,
            "seconds": self._seconds,
        }
        with self._pool.connection() as connection:
            record = connection.execute(statement("claim_job"), parameters).fetchone()
        if record is None:
            return None
        kind, target, period, lease = cast("tuple[str, str, str, str]", record)
        return ClaimedJob(
            job=Job(kind=kind, target=target, period=period),
            lease=PostgresLease(self._pool, name=lease, holder=self._holder, seconds=self._seconds),
        )

    def finish(self, kind: str, target: str, *, period: str | None = None) -> None:
        """See :meth:`memory_tool.job_ports.Jobs.finish`."""
        with self._pool.connection() as connection:
            named = {"kind": kind, "target": target, "period": period}
            connection.execute(statement("finish_jobs"), named)

    def put_off(self, job: Job) -> None:
        """See :meth:`memory_tool.job_ports.Jobs.put_off`."""
        with self._pool.connection() as connection:
            connection.execute(statement("put_off_job"), _named(job))


def _named(job: Job) -> dict[str, str]:
    return {"kind": job.kind, "target": job.target, "period": job.period}
