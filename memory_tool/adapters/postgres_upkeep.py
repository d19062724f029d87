"""What the store forgets in time: targets that nobody follows, old answers, done jobs."""

from collections.abc import Sequence
from typing import Final, cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.job_ports import TargetRegistry

_FORGETTING: Final = ("forget_receipts", "forget_jobs", "forget_leases")


class PostgresUpkeep(TargetRegistry):
    """See :class:`memory_tool.job_ports.TargetRegistry`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def note_seen(self, targets: Sequence[str]) -> None:
        """See :meth:`memory_tool.job_ports.TargetRegistry.note_seen`."""
        with self._pool.connection() as connection:
            connection.execute(statement("note_seen"), {"targets": list(targets)})

    def retire(self) -> tuple[str, ...]:
        """See :meth:`memory_tool.job_ports.TargetRegistry.retire`."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("retire_targets")).fetchall()
        return tuple(target for (target,) in cast("list[tuple[str]]", records))

    def forget_old(self) -> None:
        """Forget answers kept under idempotency keys for seven days, done jobs and dead leases."""
        with self._pool.connection() as connection:
            for name in _FORGETTING:
                connection.execute(statement(name))
