"""Figures about the log, for health."""

from typing import cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.log_ports import ChangeFigures
from memory_tool.port_values import Lag


class PostgresChangeFigures(ChangeFigures):
    """See :class:`memory_tool.log_ports.ChangeFigures`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def lag(self, target: str) -> Lag:
        """See :meth:`memory_tool.log_ports.ChangeFigures.lag`."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("lag"), {"target": target}).fetchone()
        rows, seconds = cast("tuple[int, float]", record)
        return Lag(rows=rows, seconds=seconds)
