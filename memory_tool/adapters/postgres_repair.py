"""Changes to the truth that make its targets take up memories again."""

import secrets
from typing import cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import id_array, number_array
from memory_tool.inspection_ports import Redelivery, TruthRepair
from memory_tool.model import MemoryId


class PostgresRepair(TruthRepair):
    """See :class:`memory_tool.inspection_ports.TruthRepair`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def redeliver(self, redelivery: Redelivery) -> int:
        """See :meth:`memory_tool.inspection_ports.TruthRepair.redeliver`."""
        ns_id, memories = redelivery.ns_id, redelivery.memories
        with self._pool.connection() as connection, connection.transaction():
            # As every writer does: the clock's row is the namespace's lock.
            record = connection.execute(statement("locked_highest"), {"ns_id": ns_id}).fetchone()
            if record is None:
                return 0
            base = max(cast("tuple[int]", record)[0], redelivery.above)
            connection.execute(
                statement("raise_clock"),
                {
                    "ns_id": ns_id,
                    "nseq": base + len(memories),
                    "stamp": secrets.randbits(63),
                },
            )
            connection.execute(
                statement("redeliver"),
                {
                    "ns_id": ns_id,
                    "base": base,
                    "ids": id_array(memories),
                    "chunks": number_array(memories.values()),
                },
            )
        return len(memories)

    def drop_lost_chunks(self, ns_id: int, memory_id: MemoryId) -> None:
        """See :meth:`memory_tool.inspection_ports.TruthRepair.drop_lost_chunks`."""
        with self._pool.connection() as connection:
            connection.execute(statement("drop_lost_chunks"), {"ns_id": ns_id, "id": memory_id})

    def ask_for_chunks(self, ns_id: int, memory_id: MemoryId) -> None:
        """See :meth:`memory_tool.inspection_ports.TruthRepair.ask_for_chunks`."""
        with self._pool.connection() as connection:
            connection.execute(statement("ask_for_chunks"), {"ns_id": ns_id, "id": memory_id})
