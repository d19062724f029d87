"""Figures about the log, for verifying an index and for health."""

from collections.abc import Mapping
from typing import Literal, cast

from memory_tool.adapters.postgres_change_log import number_of_space
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_holdings import CHUNK_HELD, NUMBER, ROW_HELD
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import number_array
from memory_tool.log_ports import ChangeFigures
from memory_tool.port_values import ChunkCount, Lag


class PostgresChangeFigures(ChangeFigures):
    """See :class:`memory_tool.log_ports.ChangeFigures`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def count_chunks(
        self, target: str, kind: Literal["vector", "keyword"], *, clocks: Mapping[int, int]
    ) -> ChunkCount:
        """See :meth:`memory_tool.log_ports.ChangeFigures.count_chunks`."""
        sql = statement(
            "count_chunks",
            number=NUMBER[kind],
            row_held=ROW_HELD[kind],
            chunk_held=CHUNK_HELD[kind],
        )
        with self._pool.connection() as connection:
            record = connection.execute(
                sql,
                {
                    "target": target,
                    "space": number_of_space(connection, target),
                    "ns_ids": number_array(clocks),
                    "applied": number_array(clocks.values()),
                },
            ).fetchone()
        settled, moving, undelivered = cast("tuple[int, int, int]", record)
        return ChunkCount(least=settled - undelivered, most=settled + moving)

    def lag(self, target: str) -> Lag:
        """See :meth:`memory_tool.log_ports.ChangeFigures.lag`."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("lag"), {"target": target}).fetchone()
        rows, seconds = cast("tuple[int, float]", record)
        return Lag(rows=rows, seconds=seconds)
