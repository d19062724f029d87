"""The truth as a check reads it."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, LiteralString, cast

import numpy as np

from memory_tool.adapters.postgres_change_log import number_of_space
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_holdings import CHUNK_HELD, NUMBER, ROW_HELD
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import HALF, id_array, number_array
from memory_tool.findings import TRUTH, Drift, Finding
from memory_tool.inspection_ports import Specimen, Standing, TruthAudit
from memory_tool.inventory import Entry
from memory_tool.model import MemoryId, State, Vector

Kind = Literal["vector", "keyword"]

_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FETCH: Final = 2_000
_SPECIMEN: Final = {
    "vector": f"{statement('vector_in')}, '', ''",
    "keyword": "NULL::bytea, k.words || ' ' || m.extra, k.bigrams",
}
_FAULTS: Final = {
    "number": (Drift.NUMBER_ABOVE_CLOCK, "number {}", "at most {}"),
    "chunk_high": (Drift.CHUNK_HIGH_LOW, "chunk_high {}", "at least {}"),
    "lost": (Drift.LOST_CHUNKS, "{} chunks", "{}"),
    "none": (Drift.NO_CHUNKS, "{} chunks", "at least {}"),
}


class PostgresAudit(TruthAudit):
    """See :class:`memory_tool.inspection_ports.TruthAudit`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        """Samples begin at a random id, which is the same for all questions to this object."""
        self._pool = pool
        self._start = uuid.uuid4()

    def clocks(self) -> Mapping[int, tuple[int, int]]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.clocks`."""
        records = self._fetched(statement("clocks_and_purged"), {})
        return {ns_id: (nseq, purged) for ns_id, nseq, purged in records}

    def progress(self, target: str) -> Mapping[int, int]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.progress`."""
        records = self._fetched(statement("noted_progress"), {}, target=target)
        return dict(cast("list[tuple[int, int]]", records))

    def standings(
        self, ids: Sequence[MemoryId], *, kind: Kind
    ) -> Mapping[MemoryId, Sequence[Standing]]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.standings`."""
        sql = statement("standings", number=NUMBER[kind])
        found: dict[MemoryId, list[Standing]] = {memory_id: [] for memory_id in ids}
        for memory_id, ns_id, state, number in self._fetched(sql, {"ids": id_array(ids)}):
            found[memory_id].append(Standing(ns_id=ns_id, state=State(state), number=number))
        return found

    def sample(
        self, target: str, kind: Kind, *, clocks: Mapping[int, int], wanted: Mapping[int, int]
    ) -> Sequence[Specimen]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.sample`."""
        parameters = {
            "start": self._start,
            "ns_ids": number_array(wanted),
            "applied": number_array(clocks.get(ns_id, 0) for ns_id in wanted),
            "bounds": number_array(wanted.values()),
        }
        sql = _held("specimens", kind, columns=_SPECIMEN[kind])
        return [
            Specimen(
                ns_id=ns_id,
                entry=Entry(memory_id, ordinal, number),
                vector=None if stored is None else _vectors([stored])[0],
                words=words,
                bigrams=bigrams,
            )
            for ns_id, memory_id, ordinal, number, stored, words, bigrams in self._fetched(
                sql, parameters, target=target
            )
        ]

    def vectors(
        self, target: str, ns_id: int, *, clock: int
    ) -> Iterator[tuple[Sequence[Entry], Vector]]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.vectors`."""
        with self._pool.connection() as connection:
            connection.execute(_SNAPSHOT)
            connection.execute(statement("be_patient"))
            parameters = {
                "target": target,
                "space": number_of_space(connection, target),
                "ns_id": ns_id,
                "clock": clock,
            }
            with connection.cursor(name="vectors", binary=True) as cursor:
                cursor.execute(_held("settled_vectors", "vector"), parameters)
                while records := cast("list[tuple[Any, ...]]", cursor.fetchmany(_FETCH)):
                    entries = [Entry(*record[:3]) for record in records]
                    yield entries, _vectors([record[3] for record in records])

    def faults(self) -> Iterator[Finding]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.faults`."""
        for record in self._fetched(statement("truth_faults"), {}):
            name, ns_id, memory_id, found, expected, highest, chunks = record
            drift, found_words, expected_words = _FAULTS[name]
            yield Finding(
                drift=drift,
                target=TRUTH,
                ns_id=ns_id,
                memory_id=memory_id,
                found=found_words.format(found),
                expected=expected_words.format(expected),
                highest=highest,
                chunks=chunks,
            )

    def waiting(self) -> int:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.waiting`."""
        ((memories,),) = self._fetched(statement("waiting_memories"), {})
        return int(memories)

    def _fetched(
        self, sql: LiteralString, parameters: Mapping[str, object], *, target: str = ""
    ) -> list[tuple[Any, ...]]:
        with self._pool.connection() as connection:
            of_target: Mapping[str, object] = (
                {"target": target, "space": number_of_space(connection, target)} if target else {}
            )
            records = connection.execute(sql, {**parameters, **of_target}, binary=True).fetchall()
            return cast("list[tuple[Any, ...]]", records)


def _held(name: str, kind: Kind, **inserts: str) -> LiteralString:
    return statement(
        name,
        number=NUMBER[kind],
        row_held=ROW_HELD[kind],
        chunk_held=CHUNK_HELD[kind],
        **inserts,
    )


def _vectors(stored: Sequence[bytes]) -> Vector:
    halves = np.frombuffer(b"".join(stored), HALF).astype(np.float32)
    return halves.reshape(len(stored), -1)
