"""Which targets the store knows of."""

from typing import cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement


class PostgresTargets:
    """The register of targets. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def known(self) -> tuple[str, ...]:
        """Every target that was followed within a day."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("known_targets")).fetchall()
        return tuple(name for (name,) in cast("list[tuple[str]]", records))
