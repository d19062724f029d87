"""Which memories are due to move, and which files of the archive the store relies on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import Record, id_array, json_text
from memory_tool.archive_ports import ArchiveRecord, ChunkPlace
from memory_tool.model import ArchivePlace, MemoryId, Tier
from memory_tool.port_values import ArchiveFile
from memory_tool.scope import Namespace
from memory_tool.tier_ports import ArchiveRegister, DueMove, TierFigures, TierRules, TierStore

_DAY: float = 86_400.0


class PostgresTiers(TierStore):
    """See :class:`memory_tool.tier_ports.TierStore`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def due(self, rules: TierRules, limit: int) -> Sequence[DueMove]:
        """See :meth:`memory_tool.tier_ports.TierStore.due`."""
        values = {
            "hot": rules.hot_days * _DAY,
            "warm": None if rules.warm_days is None else rules.warm_days * _DAY,
            "bound": limit,
        }
        with self._pool.connection() as connection:
            records = connection.execute(statement("due_moves"), values).fetchall()
        return [_due_move(record) for record in records]

    def records(self, ns_id: int, ids: Sequence[MemoryId]) -> Sequence[ArchiveRecord]:
        """See :meth:`memory_tool.tier_ports.TierStore.records`."""
        values = {"ns_id": ns_id, "ids": id_array(ids)}
        with self._pool.connection() as connection:
            records = connection.execute(statement("archive_records"), values).fetchall()
        return [_archive_record(record) for record in records]

    def recount(self) -> None:
        """See :meth:`memory_tool.tier_ports.TierStore.recount`."""
        with self._pool.connection() as connection:
            wrong = connection.execute(statement("miscounted")).fetchall()
            for (ns_id,) in cast("list[tuple[int]]", wrong):
                with connection.transaction():
                    connection.execute(statement("lock_clock"), {"ns_id": ns_id})
                    connection.execute(statement("count_lowered"), {"ns_id": ns_id})

    def figures(self) -> TierFigures:
        """See :meth:`memory_tool.tier_ports.TierStore.figures`."""
        with self._pool.connection() as connection:
            counted = connection.execute(statement("tier_figures")).fetchall()
            archive = connection.execute(statement("archive_figures")).fetchone()
        counts = dict(cast("list[tuple[str, int]]", counted))
        files, size, stale = cast("tuple[int, int, int]", archive)
        return TierFigures(
            memories={tier.value: counts.get(tier.value, 0) for tier in Tier},
            files=files,
            size=size,
            stale=stale,
        )


class PostgresArchiveRegister(ArchiveRegister):
    """See :class:`memory_tool.tier_ports.ArchiveRegister`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def known(self) -> frozenset[str]:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.known`."""
        return frozenset(name for (name,) in self._read("known_archive_files"))

    def stale(self) -> Mapping[str, int]:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.stale`."""
        return dict(self._read("stale_archive_files"))

    def kept(self, name: str) -> Mapping[MemoryId, ArchivePlace]:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.kept`."""
        records = self._read("kept_in_archive", {"name": name})
        return {memory_id: ArchivePlace(**place) for memory_id, place in records}

    def switch(self, name: str, to: ArchiveFile | None) -> bool:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.switch`."""
        ns_id = self.stale().get(name)
        if ns_id is None:
            return False
        with self._pool.connection() as connection, connection.transaction():
            # As every write does: nobody moves, changes or deletes a memory of it meanwhile.
            connection.execute(statement("lock_clock"), {"ns_id": ns_id})
            kept = connection.execute(statement("kept_in_archive"), {"name": name}).fetchall()
            if {memory_id for memory_id, _ in kept} != (set(to.places) if to else set()):
                return False
            if to is not None:
                connection.execute(statement("note_archive_file"), _file_values(to))
                places = [
                    {"id": memory_id, "archive": asdict(place)}
                    for memory_id, place in to.places.items()
                ]
                values = {"ns_id": ns_id, "name": name, "places": json_text(places)}
                connection.execute(statement("switch_archive"), values)
            connection.execute(statement("retire_archive_file"), {"name": name})
        return True

    def gone(self, *, seconds: float) -> Sequence[str]:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.gone`."""
        return [name for (name,) in self._read("gone_archive_files", {"seconds": seconds})]

    def forget(self, name: str) -> None:
        """See :meth:`memory_tool.tier_ports.ArchiveRegister.forget`."""
        with self._pool.connection() as connection:
            connection.execute(statement("forget_archive_file"), {"name": name})

    def _read(self, name: str, values: Mapping[str, object] | None = None) -> list[Any]:
        with self._pool.connection() as connection:
            return connection.execute(statement(name), values).fetchall()


def _due_move(record: Record) -> DueMove:
    ns_id, address, memory_id, nseq, tier, weight = record
    return DueMove(
        ns_id=ns_id,
        namespace=Namespace.from_address(address),
        memory_id=memory_id,
        nseq=nseq,
        tier=Tier(tier),
        weight=weight,
    )


def _archive_record(record: Record) -> ArchiveRecord:
    memory_id, address, image, versions, chunks = record
    return ArchiveRecord(
        id=memory_id,
        namespace=address,
        image=image,
        versions=tuple(versions),
        chunks=tuple(ChunkPlace(**chunk) for chunk in chunks),
    )


def _file_values(file: ArchiveFile) -> Mapping[str, object]:
    return {
        "name": file.name,
        "ns_id": file.ns_id,
        "sha256": file.sha256,
        "bytes": file.size,
        "memories": len(file.places),
        "stale": False,
    }
