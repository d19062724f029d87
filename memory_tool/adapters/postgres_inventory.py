"""What the truth wants an index to hold."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, LiteralString, cast

from memory_tool.adapters.postgres_change_log import number_of_space
from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_holdings import CHUNK_HELD, NUMBER, ROW_HELD
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import number_array
from memory_tool.inventory import Entry, Fingerprint, Settled
from memory_tool.inventory_ports import TruthInventory
from memory_tool.model import MemoryId

_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FETCH: Final = 5_000
_CONTENT_DIGEST: Final = f"('x' || substr(md5({statement('vector_in')}), 1, 16))::bit(64)::bigint"


class PostgresInventory(TruthInventory):
    """See :class:`memory_tool.inventory_ports.TruthInventory`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool, *, of_contents: bool = False) -> None:
        """Read through ``pool``.

        Args:
            pool: Connections as ``threefold_worker``.
            of_contents: Instead of the row's number an entry's version is the digest of its stored
                vector, as :func:`memory_tool.inventory.content_digest` has it.
        """
        self._pool = pool
        self._of_contents = of_contents

    def settled(
        self, target: str, kind: Literal["vector", "keyword"], *, clocks: Mapping[int, int]
    ) -> Settled:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.settled`."""
        sql = self._statement("settled_fingerprints", kind)
        with self._pool.connection() as connection:
            connection.execute(_SNAPSHOT)
            standing = _standing(connection, target, clocks=clocks)
            records = connection.execute(sql, standing).fetchall()
            fingerprints = {
                ns_id: Fingerprint(entries, digest)
                for ns_id, entries, digest in cast("list[tuple[int, int, int]]", records)
            }
            moving = _moving(connection, target, kind=kind, clocks=clocks)
        return Settled(fingerprints=fingerprints, moving=moving)

    def moving(
        self, target: str, kind: Literal["vector", "keyword"], *, clocks: Mapping[int, int]
    ) -> Mapping[int, frozenset[MemoryId]]:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.moving`."""
        with self._pool.connection() as connection:
            return _moving(connection, target, kind=kind, clocks=clocks)

    def entries(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        clocks: Mapping[int, int],
        ns_ids: frozenset[int],
    ) -> Iterator[tuple[int, Entry]]:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.entries`."""
        sql = self._statement("settled_entries", kind)
        wanted = {ns_id: clocks[ns_id] for ns_id in sorted(ns_ids & clocks.keys())}
        with self._pool.connection() as connection:
            connection.execute(_SNAPSHOT)
            connection.execute(statement("be_patient"))
            standing = _standing(connection, target, clocks=wanted)
            with connection.cursor(name="entries", binary=True) as cursor:
                cursor.itersize = _FETCH
                cursor.execute(sql, standing)
                for record in cursor:
                    ns_id, memory_id, ordinal, number = cast("tuple[int, str, int, int]", record)
                    yield ns_id, Entry(memory_id, ordinal, number)

    def _statement(self, name: str, kind: Literal["vector", "keyword"]) -> LiteralString:
        number = NUMBER[kind]
        return statement(
            name,
            number=number,
            version=_CONTENT_DIGEST if self._of_contents else f"m.{number}",
            row_held=ROW_HELD[kind],
            chunk_held=CHUNK_HELD[kind],
        )


def _standing(
    connection: Connection, target: str, *, clocks: Mapping[int, int]
) -> dict[str, object]:
    return {
        "target": target,
        "space": number_of_space(connection, target),
        "ns_ids": number_array(clocks),
        "applied": number_array(clocks.values()),
    }


def _moving(
    connection: Connection,
    target: str,
    *,
    kind: Literal["vector", "keyword"],
    clocks: Mapping[int, int],
) -> Mapping[int, frozenset[MemoryId]]:
    sql = statement("moving_rows", number=NUMBER[kind])
    found: dict[int, set[MemoryId]] = {}
    standing = _standing(connection, target, clocks=clocks)
    records = connection.execute(sql, standing).fetchall()
    for ns_id, memory_id in cast("list[tuple[int, MemoryId]]", records):
        found.setdefault(ns_id, set()).add(memory_id)
    return {ns_id: frozenset(ids) for ns_id, ids in found.items()}
