"""Which builds of each index there are, beside a truth in memory."""

import dataclasses
from collections.abc import Collection, Mapping
from datetime import datetime

from memory_tool.adapters.in_memory_state import InMemoryStore, StoreState
from memory_tool.errors import WriteConflict
from memory_tool.generations import KeptGeneration, Origin, successor_name
from memory_tool.port_values import Pointer
from memory_tool.renewal_ports import GenerationCatalogue


class InMemoryGenerations(GenerationCatalogue):
    """See :class:`memory_tool.renewal_ports.GenerationCatalogue`."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def adopt(self, target: str) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.adopt`."""
        successor = successor_name(target)
        with self._store.lock:
            state = self._store.state
            marks = {(target, mark) for name, mark in state.marks if name == successor}
            progress = {**state.progress.get(target, {}), **state.progress.get(successor, {})}
            self._store.state = dataclasses.replace(
                state,
                marks=state.marks | marks,
                progress={**state.progress, target: progress},
                letters={**state.letters, target: state.letters.get(successor, {})},
            )

    def note(self, pointer: Pointer, origin: Origin, *, read: bool = True) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.note`."""
        now = self.now()
        kept = KeptGeneration(
            pointer=pointer, origin=origin, made_at=now, left_at=None if read else now
        )
        with self._store.lock:
            state = self._store.state
            others = [
                _left(one, now) if read and one.pointer.target == pointer.target else one
                for one in state.generations
                if not _same(one.pointer, pointer)
            ]
            self._store.state = dataclasses.replace(state, generations=(*others, kept))

    def end_succession(self, target: str) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.end_succession`."""
        with self._store.lock:
            self._store.state = _ended(self._store.state, target)

    def kept(self, target: str) -> tuple[KeptGeneration, ...]:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.kept`."""
        return tuple(one for one in self._store.state.generations if one.pointer.target == target)

    def forget(self, target: str, generations: Collection[int]) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.forget`."""
        with self._store.lock:
            state = self._store.state
            left = tuple(
                one
                for one in state.generations
                if one.pointer.target != target or one.pointer.generation not in generations
            )
            self._store.state = dataclasses.replace(state, generations=left)

    def go_back(self, target: str, clocks: Mapping[int, int]) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.go_back`."""
        with self._store.lock:
            state = self._store.state
            for ns_id, clock in clocks.items():
                if ns_id in state.namespaces and 0 < clock < state.namespaces[ns_id].purged:
                    message = f"the kept generation of {target} may hold purged memories"
                    raise WriteConflict(message)
            noted = {**state.progress.get(target, {}), **clocks}
            self._store.state = dataclasses.replace(
                state, progress={**state.progress, target: noted}
            )

    def now(self) -> datetime:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.now`."""
        return self._store.now()


def _same(one: Pointer, other: Pointer) -> bool:
    return (one.target, one.generation) == (other.target, other.generation)


def _left(one: KeptGeneration, now: datetime) -> KeptGeneration:
    return dataclasses.replace(one, left_at=one.left_at or now)


def _ended(state: StoreState, target: str) -> StoreState:
    successor = successor_name(target)
    return dataclasses.replace(
        state,
        marks=frozenset((name, mark) for name, mark in state.marks if name != successor),
        progress={name: noted for name, noted in state.progress.items() if name != successor},
        letters={name: noted for name, noted in state.letters.items() if name != successor},
    )
