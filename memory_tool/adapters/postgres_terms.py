"""How rare each word is, counted over all that can be found: for searches without an index."""

from typing import Final

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_holdings import CHUNK_HELD, ROW_HELD
from memory_tool.adapters.postgres_queries import statement

_KIND: Final = "keyword"


class PostgresTerms:
    """Counts terms. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def recount(self) -> None:
        """Count everything anew; whoever searches meanwhile reads the old counts."""
        counting = statement("count_terms", row_held=ROW_HELD[_KIND], chunk_held=CHUNK_HELD[_KIND])
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(statement("forget_terms"))
            connection.execute(counting)
