"""Vector generations of one folder: building one beside the one that is read, and going back."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from memory_tool.adapters.faiss_files import (
    OpenedGeneration,
    generation_folder,
    keep_only,
    open_generation,
    read_manifest,
    remove,
    renumbered,
    writing,
)
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_inventory import FaissInventory
from memory_tool.adapters.faiss_manifest import Manifest
from memory_tool.adapters.faiss_successor import FaissSuccessor
from memory_tool.adapters.faiss_verify import verify
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.generations import KeptGeneration, Origin, Quality, worth_keeping
from memory_tool.log_ports import ChangeLog
from memory_tool.port_values import NO_POINTER, Pointer
from memory_tool.renewal_ports import GenerationCatalogue, Renewal, WayBack

_SCANNED: Final = "exact"


class FaissRenewal(Renewal, WayBack):
    """See ``Renewal`` and ``WayBack`` in :mod:`memory_tool.renewal_ports`."""

    def __init__(
        self, target: FaissTarget, *, log: ChangeLog, catalogue: GenerationCatalogue
    ) -> None:
        """Build in the folder of ``target``, which tells of its folds from now on."""
        self._root = target.root
        self._target = target.name
        self._log = log
        self._catalogue = catalogue
        self._successor = FaissSuccessor(target.root, target=target.name, policy=target.policy)
        target.published = self.published

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.renewal_ports.Renewal.target`."""
        return self._target

    def begin(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.begin`."""
        if not self._successor.begun():
            with writing(self._target):
                self._successor.begin()

    def successor(self) -> FaissSuccessor | None:
        """See :meth:`memory_tool.renewal_ports.Renewal.successor`."""
        if not self._successor.begun():
            return None
        if self._is_read():
            # Whoever switched to it was killed before it could say so.
            self._end_succession()
            return None
        return self._successor

    def _is_read(self) -> bool:
        try:
            built = self._successor.built()
        except Corrupt:
            return False
        noted = {one.pointer.mark for one in self._catalogue.kept(self._target)}
        current = self._log.pointer(self._target)
        return built is not None and built.mark in noted | {current.mark if current else None}

    @contextmanager
    def inventory(self, *, successor: bool) -> Iterator[FaissInventory]:
        """See :meth:`memory_tool.renewal_ports.Renewal.inventory`."""
        pointer = self._successor.built() if successor else self._log.pointer(self._target)
        opened = (
            open_generation(self._root, pointer) if pointer else OpenedGeneration.empty(self._root)
        )
        yield FaissInventory(opened)

    def switch(self) -> Quality:
        """See :meth:`memory_tool.renewal_ports.Renewal.switch`."""
        built = self._successor.built()
        if built is None:
            # Nothing was ever stored: what searches read is as empty.
            self._end_succession()
            return Quality(generation=0, rows=0, kind=_SCANNED)
        # Looked at before it gets a name that anybody could be sent to.
        verify(self._root, built)
        self._catalogue.adopt(self._target)
        pointer = self._made_current(built)
        self.published(pointer, "full")
        self._end_succession()
        self.keep()
        return _quality(read_manifest(self._root, pointer))

    def close(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.close`."""
        self._successor.close()

    def reads(self) -> int:
        """See :meth:`memory_tool.renewal_ports.WayBack.reads`."""
        pointer = self._log.pointer(self._target)
        return pointer.generation if pointer else 0

    def keep(self) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.keep`."""
        current = self._log.pointer(self._target)
        if current is None or not self._root.exists():
            return
        keep_only(self._root, {current.generation, *self._worth_keeping(current.generation)})

    def hold(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.hold`."""
        verify(self._root, kept.pointer)
        clocks = read_manifest(self._root, kept.pointer).clocks
        self._catalogue.go_back(self._target, clocks)

    def return_to(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.return_to`."""
        current = self._log.pointer(self._target)
        pointer = self._made_current(kept.pointer)
        self._catalogue.note(pointer, "incremental")
        self._catalogue.forget(self._target, {current.generation} if current else ())

    def published(self, pointer: Pointer, origin: Origin) -> Collection[int]:
        """Note a switch; the generations that have to stay beside it."""
        self._catalogue.note(pointer, origin)
        return self._worth_keeping(pointer.generation)

    def _end_succession(self) -> None:
        self._catalogue.end_succession(self._target)
        self._successor.end()

    def _made_current(self, generation: Pointer) -> Pointer:
        current = self._log.pointer(self._target)
        above = current.generation if current else 0
        with writing(self._target):
            pointer = renumbered(self._root, generation, target=self._target, above=above)
        base_mark = current.mark if current else NO_POINTER
        if not self._log.publish(pointer, base_mark=base_mark):
            remove(generation_folder(self._root, pointer.generation))
            message = f"somebody else published {self._target} meanwhile"
            raise Unavailable(message, store=self._target)
        return pointer

    def _worth_keeping(self, read: int) -> set[int]:
        noted = self._catalogue.kept(self._target)
        kept = worth_keeping(noted, read=read, now=self._catalogue.now())
        worth = {read, *(one.pointer.generation for one in kept)}
        gone = {one.pointer.generation for one in noted} - worth
        self._catalogue.forget(self._target, gone)
        return worth | self._being_built()

    def _being_built(self) -> set[int]:
        try:
            built = self._successor.built()
        except Corrupt:
            return set()
        return {built.generation} if built else set()


def _quality(manifest: Manifest) -> Quality:
    graphs = [block.graph for block in manifest.blocks if block.graph is not None]
    worst = min(graphs, key=lambda graph: graph.recall, default=None)
    return Quality(
        generation=manifest.generation,
        rows=manifest.rows - sum(block.dead for block in manifest.blocks),
        kind=worst.kind if worst else _SCANNED,
        recall=worst.recall if worst else None,
        width=worst.width if worst else None,
    )
