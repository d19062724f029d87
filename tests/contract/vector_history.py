"""A truth in memory that is folded into vector indexes, and the exact answers to expect."""

import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import Chunk, EmbeddingSpace, MemoryId, Vector
from memory_tool.port_values import (
    NO_POINTER,
    ChangeBatch,
    ChangeRow,
    DeadLetter,
    ForeignHistory,
    Pointer,
    TargetBase,
)
from memory_tool.ports import VectorIndex, VectorView
from memory_tool.query import Candidate

STORE: Final = "store-1"
TARGET: Final = "folder-1"
ROUNDING: Final = 1e-3
"""Stored vectors may be half floats: an inner product of unit vectors moves by less than this."""


def memory_id(number: int) -> MemoryId:
    """An id that looks random and always is the same."""
    return hashlib.blake2b(str(number).encode(), digest_size=16).hexdigest()


def units(count: int, dimension: int, *, seed: int = 0) -> Vector:
    """Random unit vectors, shape (count, dimension)."""
    vectors = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    lengths: Vector = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def axis(number: int, dimension: int) -> Vector:
    """The unit vector along one axis: its inner products are exact in every precision."""
    vector: Vector = np.zeros(dimension, np.float32)
    vector[number] = 1
    return vector


def chunk(embedding: Vector | None, *, ordinal: int = 0) -> Chunk:
    """A chunk with this embedding."""
    return Chunk(
        ordinal=ordinal,
        start=0,
        stop=1,
        language="en",
        words="",
        bigrams="",
        embedding=embedding,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which chunk in which version a candidate is."""

    ns_id: int
    memory_id: MemoryId
    ordinal: int
    version: int


class VectorHistory(ChangeLog):
    """The rows of a store, numbered as the truth numbers them."""

    def __init__(self, dimension: int = 16, *, store: str = STORE) -> None:
        self.space: EmbeddingSpace | None = EmbeddingSpace(model="made", dimension=dimension)
        self.store = store
        self.noted: list[tuple[str, Mapping[int, int]]] = []
        self.refusing = False
        self.buried: list[tuple[str, DeadLetter]] = []
        self._rows: dict[tuple[int, MemoryId], ChangeRow] = {}
        self._clocks: dict[int, int] = {}
        self._marks: set[str] = set()
        self._pointers: dict[str, Pointer] = {}

    # ── What users do ──

    def put(self, ns_id: int, number: int, *embeddings: Vector | None) -> None:
        """Add or replace a memory with one chunk for each embedding."""
        chunks = tuple(chunk(vector, ordinal=at) for at, vector in enumerate(embeddings))
        self._change(ns_id, number, live=True, chunks=chunks)

    def put_all(self, ns_id: int, vectors: Vector, *, first: int = 0) -> None:
        """Add a memory of one chunk for each vector, numbered from ``first``."""
        for number, vector in enumerate(vectors, start=first):
            self.put(ns_id, number, vector)

    def delete(self, ns_id: int, number: int) -> None:
        """Delete a memory."""
        self._change(ns_id, number, live=False, chunks=())

    def touch(self, ns_id: int, number: int) -> None:
        """Change what no vector shows: a new number, the same version."""
        row = self._rows[ns_id, memory_id(number)]
        self._rows[ns_id, row.memory_id] = replace(row, nseq=self._next(ns_id))

    def has(self, ns_id: int, number: int) -> bool:
        """Whether the memory ever was."""
        return (ns_id, memory_id(number)) in self._rows

    def _change(self, ns_id: int, number: int, *, live: bool, chunks: tuple[Chunk, ...]) -> None:
        nseq = self._next(ns_id)
        before = self._rows.get((ns_id, memory_id(number)))
        self._rows[ns_id, memory_id(number)] = ChangeRow(
            ns_id=ns_id,
            memory_id=memory_id(number),
            nseq=nseq,
            version=nseq,
            live=live,
            extra="",
            chunk_high=max(before.chunk_high if before else 0, len(chunks)),
            chunks=chunks,
        )

    def _next(self, ns_id: int) -> int:
        self._clocks[ns_id] = self._clocks.get(ns_id, 0) + 1
        return self._clocks[ns_id]

    # ── What appliers do ──

    def fold(self, target: IndexTarget) -> Pointer:
        """Apply all that is pending, and say what is to be read now."""
        with self.changes(target.name, "vector", base=target.base(), limit=1_000_000) as batch:
            target.apply(batch, self)
        return self.published(target.name)

    def published(self, target: str) -> Pointer:
        """The pointer, which has to be there."""
        pointer = self.pointer(target)
        assert pointer is not None
        return pointer

    def pending(self, clocks: Mapping[int, int]) -> int:
        """See :meth:`memory_tool.log_ports.ChangeLog.pending`."""
        return sum(clock - clocks.get(ns_id, 0) for ns_id, clock in self._clocks.items())

    def knows(self, target: str, mark: str) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.knows`."""
        return mark in self._marks

    @contextlib.contextmanager
    def changes(
        self, target: str, kind: Literal["vector", "keyword"], *, base: TargetBase, limit: int
    ) -> Iterator[ChangeBatch]:
        """See :meth:`memory_tool.log_ports.ChangeLog.changes`."""
        if base.mark is not None and not self.knows(target, base.mark):
            raise ForeignHistory
        mark = f"mark-{len(self._marks)}"
        self._marks.add(mark)
        changed = [row for row in self._rows.values() if row.nseq > base.clocks.get(row.ns_id, 0)]
        yield ChangeBatch(
            rows=iter(sorted(changed, key=lambda row: (row.ns_id, row.nseq))),
            clocks=dict(self._clocks),
            mark=mark,
            base_mark=base.mark,
            space=self.space,
            store=self.store,
        )

    def pointer(self, target: str) -> Pointer | None:
        """See :meth:`memory_tool.log_ports.ChangeLog.pointer`."""
        return self._pointers.get(target)

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.publish`."""
        current = self._pointers.get(pointer.target)
        if self.refusing:
            return False
        if base_mark is not None and base_mark != (current.mark if current else NO_POINTER):
            return False
        self._pointers[pointer.target] = pointer
        return True

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.note_progress`."""
        self.noted.append((target, dict(clocks)))

    def bury(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.bury`."""
        self.buried += [(target, letter) for letter in letters]

    # ── What to expect ──

    def embedding_of(self, place: "Place") -> Vector | None:
        """The embedding of a living chunk in this version."""
        row = self._rows.get((place.ns_id, place.memory_id))
        if row is None or row.version != place.version or place.ordinal >= len(row.chunks):
            return None
        return row.chunks[place.ordinal].embedding

    def exact(
        self,
        query: Vector,
        ns_ids: Collection[int],
        *,
        within: Collection[MemoryId] | None = None,
    ) -> dict[Place, float]:
        """The inner product of every living chunk."""
        return {
            Place(
                ns_id=row.ns_id,
                memory_id=row.memory_id,
                ordinal=part.ordinal,
                version=row.version,
            ): float(part.embedding @ query)
            for row in self._rows.values()
            if row.ns_id in ns_ids and (within is None or row.memory_id in within)
            for part in row.chunks
            if part.embedding is not None
        }


def places(found: Sequence[Candidate]) -> list[Place]:
    """Where the candidates are."""
    return [
        Place(
            ns_id=candidate.ns_id,
            memory_id=candidate.memory_id,
            ordinal=candidate.ordinal,
            version=candidate.version,
        )
        for candidate in found
    ]


def check_exact(found: Sequence[Candidate], expected: Mapping[Place, float], *, depth: int) -> None:
    """Fail unless these are the ``depth`` best, best first, within the rounding."""
    best = sorted(expected.values(), reverse=True)[:depth]
    assert len(set(places(found))) == len(found) == len(best)
    for candidate, place, score in zip(found, places(found), best, strict=True):
        assert abs(candidate.score - expected[place]) < ROUNDING
        assert abs(candidate.score - score) < ROUNDING
    keys = [(-c.score, c.memory_id, c.ordinal) for c in found]
    assert keys == sorted(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPair:
    """An index and the target that feeds it, both over one history."""

    index: VectorIndex
    target: IndexTarget
    history: VectorHistory

    def fold(self) -> VectorView:
        """Apply what is pending and view it."""
        return self.index.view(self.history.fold(self.target))
