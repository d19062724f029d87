"""Which indexes follow the truth, and what erasing has to know of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.erase_ports import ErasedTargets


class PostgresTargets(ErasedTargets):
    """See :class:`memory_tool.erase_ports.ErasedTargets`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def now(self) -> datetime:
        """See :meth:`memory_tool.erase_ports.ErasedTargets.now`."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("store_clock")).fetchone()
        return cast("tuple[datetime]", record)[0]

    def known(self) -> Mapping[str, bool]:
        """See :meth:`memory_tool.erase_ports.ErasedTargets.known`."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("known_targets")).fetchall()
        return dict(cast("list[tuple[str, bool]]", records))

    def age_kept(self, made_until: datetime) -> None:
        """See :meth:`memory_tool.erase_ports.ErasedTargets.age_kept`."""
        with self._pool.connection() as connection:
            connection.execute(statement("age_kept_generations"), {"made_until": made_until})

    def built_since(self, since: datetime) -> frozenset[str]:
        """See :meth:`memory_tool.erase_ports.ErasedTargets.built_since`."""
        return frozenset(self._names("built_since", {"since": since}))

    def leave(self, targets: Sequence[str]) -> None:
        """See :meth:`memory_tool.erase_ports.ErasedTargets.leave`."""
        with self._pool.connection() as connection:
            connection.execute(statement("leave_targets"), {"targets": list(targets)})

    def _names(self, name: str, values: dict[str, object] | None = None) -> tuple[str, ...]:
        with self._pool.connection() as connection:
            records = connection.execute(statement(name), values).fetchall()
        return tuple(name for (name,) in cast("list[tuple[str]]", records))
