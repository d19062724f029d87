"""What is past leaves the store, expired memories and rows of deleted ones; and counts of use."""

from collections.abc import Mapping, Sequence
from typing import cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import id_array, number_array
from memory_tool.adapters.postgres_snapshot import name_namespaces
from memory_tool.model import MemoryId
from memory_tool.port_values import RowKey
from memory_tool.scope import Namespace
from memory_tool.tier_ports import Tombstones, UseLog

_HOUR: float = 3_600.0


class PostgresTombstones(Tombstones):
    """See :class:`memory_tool.tier_ports.Tombstones`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def expired(self, limit: int) -> Mapping[Namespace, Sequence[MemoryId]]:
        """See :meth:`memory_tool.tier_ports.Tombstones.expired`."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("expired"), {"bound": limit}).fetchall()
        found: dict[Namespace, list[MemoryId]] = {}
        for address, memory_id in cast("list[tuple[str, str]]", records):
            found.setdefault(Namespace.from_address(address), []).append(memory_id)
        return found

    def purge(self, hours: float, limit: int) -> int:
        """See :meth:`memory_tool.tier_ports.Tombstones.purge`."""
        seconds = hours * _HOUR
        with self._pool.connection() as connection:
            records = connection.execute(statement("purgeable"), {"seconds": seconds}).fetchall()
        removed = 0
        for ns_id, passed in cast("list[tuple[int, int]]", records):
            if removed >= limit:
                break
            removed += self._purge(ns_id, passed, seconds=seconds, limit=limit - removed)
        return removed

    def _purge(self, ns_id: int, passed: int, *, seconds: float, limit: int) -> int:
        values = {"ns_id": ns_id, "passed": passed, "seconds": seconds, "bound": limit}
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(statement("lock_clock"), {"ns_id": ns_id})
            records = connection.execute(statement("purge"), values).fetchall()
            numbers = [number for (number,) in cast("list[tuple[int]]", records)]
            if numbers:
                # In one transaction: no target can come to a log that lacks what it has not noted.
                noted = {"ns_id": ns_id, "purged": max(numbers)}
                connection.execute(statement("note_purged"), noted)
        return len(numbers)


class PostgresUseLog(UseLog):
    """See :class:`memory_tool.tier_ports.UseLog`. Connects as ``threefold_app``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def add(self, uses: Mapping[RowKey, tuple[int, float]]) -> None:
        """See :meth:`memory_tool.tier_ports.UseLog.add`."""
        if not uses:
            return
        values = {
            "ns_ids": number_array(ns_id for ns_id, _ in uses),
            "ids": id_array(memory_id for _, memory_id in uses),
            "uses": number_array(count for count, _ in uses.values()),
            "ago": [ago for _, ago in uses.values()],
        }
        with self._pool.connection() as connection, connection.transaction():
            name_namespaces(connection, number_array({ns_id for ns_id, _ in uses}))
            connection.execute(statement("add_uses"), values)
