"""A vector index in memory: generations, searched exactly."""

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Literal

from memory_tool.errors import Corrupt
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import EmbeddingSpace, MemoryId, Vector
from memory_tool.port_values import (
    ChangeBatch,
    ChangeRow,
    ForeignHistory,
    Patience,
    Pointer,
    TargetBase,
)
from memory_tool.ports import VectorIndex, VectorView
from memory_tool.query import Candidate
from memory_tool.unit_vectors import check_unit

PATIENCE: Final = Patience(rows=5000, seconds=3600, batch=10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk of a row: its ordinal, the row's number, and its vector."""

    ordinal: int
    version: int
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorGeneration:
    """What one fold made. Nothing that it holds is ever changed."""

    number: int = 0
    mark: str | None = None
    store: str = ""
    space: EmbeddingSpace | None = None
    clocks: Mapping[int, int] = field(default_factory=dict)
    rows: Mapping[tuple[int, MemoryId], tuple[StoredChunk, ...]] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """What tells it from every other generation."""
        told = f"{self.number} {self.mark} {self.store} {sorted(self.clocks.items())}"
        return hashlib.sha256(told.encode()).hexdigest()


EMPTY: Final = VectorGeneration()


class InMemoryVectorFolder:
    """What an index and its target share: the generations, as a data folder would keep them."""

    def __init__(self) -> None:
        self.generations: Mapping[int, VectorGeneration] = {}

    def dump(self) -> Mapping[int, VectorGeneration]:
        """A backup of this moment."""
        return self.generations

    def restore(self, dump: Mapping[int, VectorGeneration]) -> None:
        """Go back to the moment of a backup; ``{}`` loses the folder."""
        self.generations = dump

    def opened(self, pointer: Pointer | None) -> VectorGeneration:
        """The generation that a pointer names.

        Raises:
            Corrupt: It is missing, or another one has its number.
        """
        if pointer is None:
            return EMPTY
        generation = self.generations.get(pointer.generation)
        if generation is None or generation.sha256 != pointer.locator:
            message = f"generation {pointer.generation} is missing or another one"
            raise Corrupt(message)
        return generation


class InMemoryVectorIndex(VectorIndex):
    """See :class:`memory_tool.ports.VectorIndex`."""

    def __init__(
        self,
        folder: InMemoryVectorFolder,
        *,
        target: str,
        store: str,
        space: Callable[[], EmbeddingSpace | None],
    ) -> None:
        """Serve the generations of ``folder``.

        Args:
            folder: What the target writes to.
            target: See :attr:`target`.
            store: Identity of the store; generations of another one are refused.
            space: The store's embedding space, asked at each view.
        """
        self._folder = folder
        self._target = target
        self._store = store
        self._space = space

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.VectorIndex.target`."""
        return self._target

    def view(self, pointer: Pointer | None) -> "InMemoryVectorView":
        """See :meth:`memory_tool.ports.VectorIndex.view`."""
        generation = self._folder.opened(pointer)
        ours = (generation.store, generation.space) == (self._store, self._space())
        if generation.rows and not ours:
            message = f"generation {generation.number} is of another store or embedding space"
            raise Corrupt(message)
        return InMemoryVectorView(generation)

    def close(self) -> None:
        """Nothing to let go of."""


class InMemoryVectorView(VectorView):
    """See :class:`memory_tool.ports.VectorView`."""

    def __init__(self, generation: VectorGeneration) -> None:
        self._generation = generation

    @property
    def remote(self) -> bool:
        """No."""
        return False

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.ports.VectorView.mark`."""
        return self._generation.mark

    def clock(self, ns_id: int) -> int:
        """See :meth:`memory_tool.ports.VectorView.clock`."""
        return self._generation.clocks.get(ns_id, 0)

    def search(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.search`."""
        wanted = set(ns_ids)
        keys = {
            (ns_id, memory_id)
            for ns_id, memory_id in self._generation.rows
            if ns_id in wanted and (within is None or memory_id in within)
        }
        return self._best(vector, keys)[: max(depth, 0)]

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.scores`."""
        return self._best(vector, set(ids) & self._generation.rows.keys())

    def _best(
        self, vector: Vector, keys: AbstractSet[tuple[int, MemoryId]]
    ) -> tuple[Candidate, ...]:
        space = self._generation.space
        check_unit(vector, space.dimension if space else vector.size)
        candidates = [
            Candidate(ns_id, memory_id, chunk.ordinal, chunk.version, float(chunk.vector @ vector))
            for ns_id, memory_id in keys
            for chunk in self._generation.rows[ns_id, memory_id]
        ]
        candidates.sort(key=lambda found: (-found.score, found.memory_id, found.ordinal))
        return tuple(candidates)


class InMemoryVectorTarget(IndexTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`."""

    def __init__(
        self,
        folder: InMemoryVectorFolder,
        *,
        name: str,
        pointer: Callable[[], Pointer | None],
    ) -> None:
        """Write generations to ``folder``.

        Args:
            folder: What the index reads from.
            name: See :attr:`name`.
            pointer: Reads which generation is current: ``ChangeLog.pointer`` of this name.
        """
        self._folder = folder
        self._name = name
        self._pointer = pointer
        self._applying = threading.Lock()
        self._anew = False

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["vector"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return "vector"

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        return PATIENCE

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        generation = self._base()
        return TargetBase(mark=generation.mark, clocks=generation.clocks)

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        self._anew = True

    def close(self) -> None:
        """Nothing is held between two batches."""

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.apply`.

        Raises:
            ForeignHistory: The batch builds upon another base, store or embedding space, or
                somebody else published meanwhile.
            InvalidEmbedding: A vector of the batch can't be stored.
        """
        with self._applying:
            current = self._pointer()
            if current is None or current.mark != batch.mark:
                generation = _folded(self._base(), batch, number=self._next_number())
                self._publish(generation, batch.mark, base_mark=batch.base_mark, log=log)
            log.note_progress(self._name, batch.clocks)

    def _base(self) -> VectorGeneration:
        return EMPTY if self._anew else self._folder.opened(self._pointer())

    def _next_number(self) -> int:
        current = self._pointer()
        return max([*self._folder.generations, current.generation if current else 0]) + 1

    def _publish(
        self, generation: VectorGeneration, mark: str, *, base_mark: str | None, log: ChangeLog
    ) -> None:
        before = self._folder.generations
        self._folder.generations = {**before, generation.number: generation}
        pointer = Pointer(
            target=self._name,
            generation=generation.number,
            locator=generation.sha256,
            mark=mark,
        )
        if not log.publish(pointer, base_mark=base_mark):
            self._folder.generations = before
            message = f"somebody else published {self._name} meanwhile"
            raise ForeignHistory(message)
        self._anew = False
        kept = sorted(self._folder.generations)[-2:]
        self._folder.generations = {number: self._folder.generations[number] for number in kept}


def _folded(base: VectorGeneration, batch: ChangeBatch, *, number: int) -> VectorGeneration:
    """The generation after ``base`` that holds the batch."""
    if base.mark != batch.base_mark:
        message = "the batch builds upon another generation than the current one"
        raise ForeignHistory(message)
    if base.rows and (base.store, base.space) != (batch.store, batch.space):
        message = "the index holds vectors of another store or embedding space"
        raise ForeignHistory(message)
    rows = dict(base.rows)
    for row in batch.rows:
        rows.pop((row.ns_id, row.memory_id), None)
        chunks = tuple(_stored(row, batch.space)) if row.live else ()
        if chunks:
            rows[row.ns_id, row.memory_id] = chunks
    return dataclasses.replace(
        base,
        number=number,
        mark=batch.mark,
        store=batch.store,
        space=batch.space,
        clocks={**base.clocks, **batch.clocks},
        rows=rows,
    )


def _stored(row: ChangeRow, space: EmbeddingSpace | None) -> Iterator[StoredChunk]:
    for chunk in row.chunks:
        if chunk.embedding is not None:
            check_unit(chunk.embedding, space.dimension if space else 0)
            yield StoredChunk(
                ordinal=chunk.ordinal, version=row.version, vector=chunk.embedding.copy()
            )
