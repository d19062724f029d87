"""Leases over many hosts, as rows of PostgreSQL, by the clock of PostgreSQL alone."""

import contextlib
import threading
from typing import Final

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.errors import Unavailable
from memory_tool.job_ports import Lease

_BEATS: Final = 4
"""Heartbeats in the life of a lease. It is renewed at half of it, so that one may get lost."""


class PostgresLease(Lease):
    """A row that its holder keeps fresh, from a thread of its own, while it holds the lease.

    So a long batch needs no thought of it, and a process that died or stands still loses it after
    ``seconds``. Whether it was lost is asked of PostgreSQL by each :meth:`try_acquire`.
    """

    def __init__(self, pool: PostgresPool, *, name: str, holder: str, seconds: float) -> None:
        """Hold nothing yet.

        Args:
            pool: Connections of the role ``threefold_worker``.
            name: What the lease is for.
            holder: Tells this process from every other.
            seconds: How long it outlives its holder.
        """
        self._pool = pool
        self._parameters = {"name": name, "holder": holder, "seconds": seconds}
        self._beat_seconds = seconds / _BEATS
        # Held while PostgreSQL is asked: a heartbeat must not take back what was just released.
        self._lock = threading.Lock()
        self._heart: threading.Event | None = None

    def try_acquire(self) -> bool:
        """See :meth:`memory_tool.job_ports.Lease.try_acquire`.

        Raises:
            Unavailable: PostgreSQL can't be reached; what was held may soon be lost.
        """
        with self._lock:
            held = self._renewed()
            if not held:
                self._stop_heart()
            elif self._heart is None:
                self._heart = threading.Event()
                threading.Thread(
                    target=self._keep, args=(self._heart,), name="threefold-lease", daemon=True
                ).start()
            return held

    def release(self) -> None:
        """See :meth:`memory_tool.job_ports.Lease.release`."""
        with self._lock:
            if self._heart is None:
                return
            self._stop_heart()
            # Who can't be told finds out when the lease runs out.
            with contextlib.suppress(Unavailable), self._pool.connection() as connection:
                connection.execute(statement("release_lease"), self._parameters)

    def _renewed(self) -> bool:
        with self._pool.connection() as connection:
            record = connection.execute(statement("take_lease"), self._parameters).fetchone()
        return bool(record and record[0])

    def _stop_heart(self) -> None:
        if self._heart is not None:
            self._heart.set()
            self._heart = None

    def _keep(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._beat_seconds):
            with self._lock, contextlib.suppress(Unavailable):
                if not stopped.is_set() and not self._renewed():
                    self._stop_heart()
