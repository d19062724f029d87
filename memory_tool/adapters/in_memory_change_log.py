"""A truth in memory as appliers read it."""

import dataclasses
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from memory_tool.adapters.in_memory_snapshot import changed_above
from memory_tool.adapters.in_memory_state import (
    InMemoryStore,
    NamespaceState,
    StoreState,
    is_held,
    is_visible,
)
from memory_tool.errors import Unavailable
from memory_tool.log_ports import ChangeLog, VectorGaps
from memory_tool.model import MemoryId, StoredRow
from memory_tool.port_values import (
    NO_POINTER,
    ChangeBatch,
    ChangeRow,
    DeadLetter,
    ForeignHistory,
    Pointer,
    TargetBase,
)

Kind = Literal["vector", "keyword"]


class InMemoryChangeLog(ChangeLog, VectorGaps):
    """See :class:`memory_tool.log_ports.ChangeLog`."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def pending(self, clocks: Mapping[int, int]) -> int:
        """See :meth:`memory_tool.log_ports.ChangeLog.pending`."""
        spaces = self._store.state.namespaces.values()
        return sum(max(0, space.nseq - clocks.get(space.ns_id, 0)) for space in spaces)

    def knows(self, target: str, mark: str) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.knows`."""
        return (target, mark) in self._store.state.marks

    def without_vectors(self, limit: int) -> tuple[StoredRow, ...]:
        """See :meth:`memory_tool.log_ports.VectorGaps.without_vectors`."""
        found = [
            row
            for space in self._store.state.namespaces.values()
            for memory_id, row in space.rows.items()
            if is_visible(row, self._store.now())
            and any(chunk.embedding is None for chunk in space.chunks.get(memory_id, ()))
        ]
        return tuple(found[:limit])

    @contextmanager
    def changes(
        self, target: str, kind: Kind, *, base: TargetBase, limit: int
    ) -> Iterator[ChangeBatch]:
        """See :meth:`memory_tool.log_ports.ChangeLog.changes`."""
        mark = secrets.token_hex(16)
        with self._store.lock:
            state, incarnation = self._store.state, self._store.incarnation
            if base.mark is not None and (target, base.mark) not in state.marks:
                message = f"{target} carries a mark that this store never made"
                raise ForeignHistory(message)
            self._store.state = dataclasses.replace(state, marks=state.marks | {(target, mark)})
        upto = _span(state, base, limit=limit)

        def rows() -> Iterator[ChangeRow]:
            for ns_id, number in upto.items():
                yield from _changed(
                    state.namespaces[ns_id], kind, above=base.clocks.get(ns_id, 0), upto=number
                )
            if self._store.incarnation != incarnation:
                message = "the store went back to an older moment while its rows were read"
                raise Unavailable(message, store="memory")

        yield ChangeBatch(
            rows=rows(),
            clocks=upto,
            mark=mark,
            base_mark=base.mark,
            space=state.space,
            store=self._store.identity,
        )

    def pointer(self, target: str) -> Pointer | None:
        """See :meth:`memory_tool.log_ports.ChangeLog.pointer`."""
        return self._store.state.pointers.get(target)

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.publish`."""
        with self._store.lock:
            state = self._store.state
            current = state.pointers.get(pointer.target)
            if (pointer.target, pointer.mark) not in state.marks:
                return False
            if base_mark is not None and base_mark != (current.mark if current else NO_POINTER):
                return False
            self._store.state = dataclasses.replace(
                state, pointers={**state.pointers, pointer.target: pointer}
            )
            return True

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.note_progress`."""
        with self._store.lock:
            state = self._store.state
            noted = {**state.progress.get(target, {}), **clocks}
            self._store.state = dataclasses.replace(
                state, progress={**state.progress, target: noted}
            )

    def bury(
        self,
        target: str,
        kind: Kind,
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.bury`."""
        with self._store.lock:
            state = self._store.state
            kept: dict[tuple[int, MemoryId], int] = {}
            for (ns_id, memory_id), version in state.letters.get(target, {}).items():
                row = state.namespaces[ns_id].rows.get(memory_id)
                above, upto = delivered.get(ns_id, (0, 0))
                number = _version(row, kind) if row else 0
                if number == version and not above < number <= upto:
                    kept[ns_id, memory_id] = version
            noted = {
                **kept,
                **{(letter.ns_id, letter.memory_id): letter.version for letter in letters},
            }
            self._store.state = dataclasses.replace(state, letters={**state.letters, target: noted})

    def identity(self) -> str:
        """What tells this store from every other: 32 hexadecimal digits."""
        return self._store.identity


def _span(state: StoreState, base: TargetBase, *, limit: int) -> Mapping[int, int]:
    """Up to which number each namespace is read: whole namespaces first, the last one cut."""
    left = limit
    upto: dict[int, int] = {}
    for ns_id, space in sorted(state.namespaces.items()):
        done = base.clocks.get(ns_id, 0)
        if 0 < done < space.purged:
            message = f"rows of namespace {ns_id} were purged that the target has not seen go"
            raise ForeignHistory(message)
        if done < space.nseq and left > 0:
            upto[ns_id] = min(space.nseq, done + left)
            left -= upto[ns_id] - done
    return upto


def _changed(space: NamespaceState, kind: Kind, *, above: int, upto: int) -> Iterator[ChangeRow]:
    for row in changed_above(space, above):
        version = _version(row, kind)
        # Not by nseq: a row whose importance changed after the cut would never come.
        if above < version <= upto:
            live = is_held(row, kind)
            yield ChangeRow(
                ns_id=space.ns_id,
                memory_id=row.memory.id,
                nseq=row.nseq,
                version=version,
                live=live,
                extra=row.extra,
                chunk_high=row.chunk_high,
                chunks=space.chunks.get(row.memory.id, ()) if live else (),
            )


def _version(row: StoredRow, kind: Kind) -> int:
    return row.vector_nseq if kind == "vector" else row.keyword_nseq
