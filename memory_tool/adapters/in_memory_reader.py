"""Reading a truth in memory without searching."""

from collections.abc import Iterator, Mapping, Sequence

from memory_tool.adapters.in_memory_state import InMemoryStore, NamespaceState, is_visible
from memory_tool.errors import TooManyNamespaces
from memory_tool.filters import matches
from memory_tool.model import Memory, MemoryId, State, StoredRow
from memory_tool.port_values import PageRequest
from memory_tool.ports import RecordReader
from memory_tool.scope import Scope

NAMESPACES_MAX = 1000


class InMemoryRecordReader(RecordReader):
    """See :class:`memory_tool.ports.RecordReader`."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def fetch(self, scope: Scope, ids: Sequence[MemoryId]) -> Mapping[MemoryId, StoredRow]:
        """See :meth:`memory_tool.ports.RecordReader.fetch`."""
        wanted = set(ids)
        return {row.memory.id: row for row in self._seen(scope) if row.memory.id in wanted}

    def page(self, scope: Scope, request: PageRequest) -> tuple[StoredRow, ...]:
        """See :meth:`memory_tool.ports.RecordReader.page`."""
        rows = [row for row in self._seen(scope) if matches(request.condition, row)]
        rows.sort(key=_place)
        if request.after is not None:
            time, memory_id = request.after
            seen = (-time.timestamp(), memory_id)
            rows = [row for row in rows if _place(row) > seen]
        return tuple(rows[: request.limit])

    def history(self, scope: Scope, memory_id: MemoryId) -> tuple[Memory, ...]:
        """See :meth:`memory_tool.ports.RecordReader.history`."""
        now = self._store.now()
        for space in self._covered(scope):
            row = space.rows.get(memory_id)
            if row is not None and is_visible(row, now):
                return (*space.versions.get(memory_id, ()), row.memory)
        return ()

    def deleted(self, scope: Scope, ids: Sequence[MemoryId]) -> frozenset[MemoryId]:
        """See :meth:`memory_tool.ports.RecordReader.deleted`."""
        return frozenset(
            memory_id
            for space in self._covered(scope)
            for memory_id in ids
            if memory_id in space.rows and space.rows[memory_id].state is State.DELETED
        )

    def counts(self) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.RecordReader.counts`."""
        now = self._store.now()
        spaces = self._store.state.namespaces.values()
        memories = sum(is_visible(row, now) for space in spaces for row in space.rows.values())
        return {"namespaces": len(spaces), "memories": memories}

    def _covered(self, scope: Scope) -> list[NamespaceState]:
        spaces = self._store.state.namespaces.values()
        covered = [space for space in spaces if scope.covers(space.namespace)]
        if len(covered) > NAMESPACES_MAX:
            raise TooManyNamespaces
        return covered

    def _seen(self, scope: Scope) -> Iterator[StoredRow]:
        now = self._store.now()
        for space in self._covered(scope):
            yield from (row for row in space.rows.values() if is_visible(row, now))


def _place(row: StoredRow) -> tuple[float, MemoryId]:
    """Where a row stands in a listing: newest event time first, then by id."""
    return -row.memory.event_time.timestamp(), row.memory.id
