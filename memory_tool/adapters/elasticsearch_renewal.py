"""Generations on a server: building one beside the one that is read, and going back.

A copy of an index costs as much disk as another one, so there are no hourly ones to go back to: the
way back is the index that was read before the last full build.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memory_tool.adapters.elasticsearch_control import (
    check_lineage,
    lineage_of,
    read_control,
    read_stamp,
)
from memory_tool.adapters.elasticsearch_generations import Generation
from memory_tool.adapters.elasticsearch_inventory import (
    ElasticsearchInventory,
    elasticsearch_inventory,
)
from memory_tool.adapters.elasticsearch_successor import ElasticsearchSuccessor
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget, publish
from memory_tool.empty_inventory import EmptyInventory
from memory_tool.errors import Corrupt
from memory_tool.generations import KeptGeneration, Quality, worth_keeping
from memory_tool.log_ports import ChangeLog
from memory_tool.port_values import Pointer
from memory_tool.renewal_ports import GenerationCatalogue, Renewal, Tidied, WayBack

_KINDS: Final = {"keyword": "inverted index", "vector": "int8 HNSW"}


class ElasticsearchRenewal(Renewal, WayBack, Tidied):
    """See ``Renewal`` and ``WayBack`` in :mod:`memory_tool.renewal_ports`."""

    def __init__(
        self, target: ElasticsearchTarget, *, log: ChangeLog, catalogue: GenerationCatalogue
    ) -> None:
        """Build indices of the family that ``target`` writes."""
        self._generations = target.generations
        self._target = target.name
        self._kind = _KINDS[target.kind]
        self._log = log
        self._catalogue = catalogue
        self._successor = ElasticsearchSuccessor(target, log)

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.renewal_ports.Renewal.target`."""
        return self._target

    def begin(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.begin`."""
        self._successor.begin()

    def successor(self) -> ElasticsearchSuccessor | None:
        """See :meth:`memory_tool.renewal_ports.Renewal.successor`."""
        built, read = self._successor.built(), self._read()
        if built is not None and built == read:
            # Whoever switched to it was killed before it could say so.
            self._end_succession()
        return self._successor if self._successor.begun() else None

    @contextmanager
    def inventory(self, *, successor: bool) -> Iterator[ElasticsearchInventory | EmptyInventory]:
        """See :meth:`memory_tool.renewal_ports.Renewal.inventory`."""
        generation = self._successor.built() if successor else self._read()
        if generation is None:
            yield EmptyInventory()
            return
        with elasticsearch_inventory(self._generations.connection, generation.index) as found:
            yield found

    def switch(self) -> Quality:
        """See :meth:`memory_tool.renewal_ports.Renewal.switch`."""
        built = self._successor.built()
        mark = self._successor.mark_of(built) if built else None
        if built is None or mark is None:
            # Nothing was ever stored: what searches read is as empty.
            self._end_succession()
            return Quality(generation=0, rows=0, kind=self._kind)
        self._catalogue.adopt(self._target)
        before = publish(self._log, self._target, generation=built, mark=mark)
        self._leave(before)
        self._catalogue.note(
            Pointer(target=self._target, generation=built.number, locator=built.index, mark=mark),
            "full",
        )
        self._end_succession()
        self.keep()
        return Quality(
            generation=built.number, rows=self._generations.count(built.index), kind=self._kind
        )

    def close(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.close`."""
        self._successor.close()

    def reads(self) -> int:
        """See :meth:`memory_tool.renewal_ports.WayBack.reads`."""
        pointer = self._log.pointer(self._target)
        return pointer.generation if pointer else 0

    def keep(self) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.keep`."""
        pointer = self._log.pointer(self._target)
        if pointer is None:
            return
        noted = self._catalogue.kept(self._target)
        kept = worth_keeping(noted, read=pointer.generation, now=self._catalogue.now())
        numbers = {pointer.generation, *(one.pointer.generation for one in kept)}
        gone = {one.pointer.generation for one in noted} - numbers
        self._catalogue.forget(self._target, gone)
        built = self._successor.looked_for()
        written = {pointer.locator, built.index if built else None}
        self._generations.retire(
            kept={*written, *(one.pointer.locator for one in kept)}, written=written
        )

    def hold(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.hold`."""
        generation = self._named(kept)
        connection = self._generations.connection
        control = read_control(connection, generation.index)
        check_lineage(control.stamp, lineage_of(connection, generation.index))
        self._catalogue.go_back(self._target, control.clocks)

    def return_to(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.return_to`."""
        generation = self._named(kept)
        before = self._read()
        self._generations.begin_writing(generation)
        publish(self._log, self._target, generation=generation, mark=kept.pointer.mark)
        self._catalogue.note(kept.pointer, "full")
        if before is not None:
            # Searches that began before may still ask it; it goes when generations are looked at.
            self._generations.end_writing(before)
            self._catalogue.forget(self._target, {before.number})

    def tidy(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Tidied.tidy`."""
        read = self._read()
        if read is not None:
            self._generations.expunge(read.index)

    def _named(self, kept: KeptGeneration) -> Generation:
        generation = self._generations.named(kept.pointer.locator)
        if generation is None:
            message = f"{kept.pointer.locator} is no index of this store"
            raise Corrupt(message)
        return generation

    def _read(self) -> Generation | None:
        pointer = self._log.pointer(self._target)
        return self._generations.named(pointer.locator) if pointer else None

    def _leave(self, before: Pointer | None) -> None:
        """Note the mark of the last batch that went to it: it is needed for the way back."""
        if before is None:
            return
        try:
            mark = read_stamp(self._generations.connection, before.locator).stamp.mark
        except Corrupt:
            # It was why another one was built.
            self._catalogue.forget(self._target, {before.generation})
            return
        left = Pointer(
            target=self._target,
            generation=before.generation,
            locator=before.locator,
            mark=mark or before.mark,
        )
        self._catalogue.note(left, "full", read=False)

    def _end_succession(self) -> None:
        self._successor.end()
        self._catalogue.end_succession(self._target)
