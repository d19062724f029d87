"""What a truth in memory wants an index to hold."""

from collections.abc import Iterator, Mapping
from typing import Literal

from memory_tool.adapters.in_memory_state import (
    InMemoryStore,
    NamespaceState,
    StoreState,
    is_held,
)
from memory_tool.inventory import Entry, Settled, fingerprints_by_namespace
from memory_tool.inventory_ports import TruthInventory
from memory_tool.model import Chunk, MemoryId, StoredRow

Kind = Literal["vector", "keyword"]


class InMemoryInventory(TruthInventory):
    """See :class:`memory_tool.inventory_ports.TruthInventory`."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def settled(self, target: str, kind: Kind, *, clocks: Mapping[int, int]) -> Settled:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.settled`."""
        state = self._store.state
        moving = _moving(state, target, kind=kind, clocks=clocks)
        held = _entries(state, kind, clocks=clocks)
        return Settled(
            fingerprints=fingerprints_by_namespace(held, leaving_out=moving), moving=moving
        )

    def moving(
        self, target: str, kind: Kind, *, clocks: Mapping[int, int]
    ) -> Mapping[int, frozenset[MemoryId]]:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.moving`."""
        return _moving(self._store.state, target, kind=kind, clocks=clocks)

    def entries(
        self, target: str, kind: Kind, *, clocks: Mapping[int, int], ns_ids: frozenset[int]
    ) -> Iterator[tuple[int, Entry]]:
        """See :meth:`memory_tool.inventory_ports.TruthInventory.entries`."""
        state = self._store.state
        letters = state.letters.get(target, {})
        wanted = {ns_id: clocks[ns_id] for ns_id in sorted(ns_ids & clocks.keys())}
        for ns_id, entry in _entries(state, kind, clocks=wanted):
            if (ns_id, entry.memory_id) not in letters:
                yield ns_id, entry


def _moving(
    state: StoreState, target: str, *, kind: Kind, clocks: Mapping[int, int]
) -> Mapping[int, frozenset[MemoryId]]:
    letters = state.letters.get(target, {})
    found = {
        space.ns_id: frozenset(
            memory_id
            for memory_id, row in space.rows.items()
            if _number(row, kind) > clocks.get(space.ns_id, 0)
            or (space.ns_id, memory_id) in letters
        )
        for space in state.namespaces.values()
    }
    return {ns_id: ids for ns_id, ids in found.items() if ids}


def _entries(
    state: StoreState, kind: Kind, *, clocks: Mapping[int, int]
) -> Iterator[tuple[int, Entry]]:
    for ns_id, clock in clocks.items():
        space = state.namespaces.get(ns_id)
        for entry in _settled(space, kind, clock=clock) if space else ():
            yield ns_id, entry


def _settled(space: NamespaceState, kind: Kind, *, clock: int) -> Iterator[Entry]:
    for memory_id, row in sorted(space.rows.items()):
        number = _number(row, kind)
        if is_held(row, kind) and number <= clock:
            for chunk in space.chunks.get(memory_id, ()):
                if _held(chunk, row, kind=kind):
                    yield Entry(memory_id, chunk.ordinal, number)


def _number(row: StoredRow, kind: Kind) -> int:
    return row.vector_nseq if kind == "vector" else row.keyword_nseq


def _held(chunk: Chunk, row: StoredRow, *, kind: Kind) -> bool:
    if kind == "vector":
        return chunk.embedding is not None
    return bool(chunk.words or chunk.bigrams or row.extra)
