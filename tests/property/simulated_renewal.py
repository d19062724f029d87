"""How the index on the simulated server is built anew, request by request."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from memory_tool.errors import Corrupt
from memory_tool.generations import KeptGeneration, Quality, successor_name, worth_keeping
from memory_tool.inventory import Entry, Fingerprint, fingerprints_by_namespace
from memory_tool.inventory_ports import IndexInventory
from memory_tool.log_ports import ChangeLog
from memory_tool.model import MemoryId
from memory_tool.renewal_ports import GenerationCatalogue, Renewable
from tests.property.simulated_server import (
    NAME,
    SimulatedKeywordTarget,
    Written,
    publish,
)

_NOTHING: Final = Quality(generation=0, rows=0, kind="simulated")


class SimulatedSuccessor(SimulatedKeywordTarget):
    """An index that is being built: known by the marks that the truth gave to a successor."""

    def __init__(self, target: SimulatedKeywordTarget, log: ChangeLog) -> None:
        super().__init__(
            target.server, log=log, between=target.between, name=successor_name(target.name)
        )
        self.begun = False

    def written(self) -> str | None:
        """See :meth:`SimulatedKeywordTarget.written`."""
        for name in sorted(self.server.indexes, reverse=True):
            mark = self.server.indexes[name].written.mark
            if mark is not None and self._log.knows(self.name, mark):
                return name
        return None

    def applied(self, name: str, written: Written) -> None:
        """It is read when whoever builds it says so."""


class WrittenInventory(IndexInventory):
    """What was written to an index, tombstones left out."""

    def __init__(self, written: Written) -> None:
        self._written = written

    @property
    def mark(self) -> str | None:
        """As its port."""
        return self._written.mark

    @property
    def clocks(self) -> Mapping[int, int]:
        """As its port."""
        return self._written.clocks

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """As its port."""
        return fingerprints_by_namespace(self.entries(), leaving_out=leaving_out)

    def entries(self, ns_ids: frozenset[int] | None = None) -> Iterator[tuple[int, Entry]]:
        """As its port."""
        for (ns_id, memory_id), (version, chunks) in self._written.documents.items():
            if ns_ids is None or ns_id in ns_ids:
                for chunk in chunks:
                    yield ns_id, Entry(memory_id, chunk.ordinal, version)


class SimulatedRenewal(Renewable):
    """See ``Renewal`` and ``WayBack`` in :mod:`memory_tool.renewal_ports`."""

    def __init__(
        self, target: SimulatedKeywordTarget, *, log: ChangeLog, catalogue: GenerationCatalogue
    ) -> None:
        self._server = target.server
        self._between = target.between
        self._log = log
        self._catalogue = catalogue
        self._successor = SimulatedSuccessor(target, log)

    @property
    def target(self) -> str:
        """As its port."""
        return NAME

    def begin(self) -> None:
        """As its port."""
        self._successor.begun = True

    def successor(self) -> SimulatedSuccessor | None:
        """As its port."""
        built, pointer = self._successor.written(), self._log.pointer(NAME)
        if pointer is not None and built == pointer.locator:
            self._end_succession()
        begun = self._successor.begun or self._successor.written() is not None
        return self._successor if begun else None

    @contextmanager
    def inventory(self, *, successor: bool) -> Iterator[WrittenInventory]:
        """As its port."""
        pointer = self._log.pointer(NAME)
        name = self._successor.written() if successor else pointer and pointer.locator
        written = self._successor.checked(name) if name else Written()
        yield WrittenInventory(written)

    def switch(self) -> Quality:
        """As its port."""
        built = self._successor.written()
        if built is None:
            self._end_succession()
            return _NOTHING
        written = self._successor.checked(built)
        before = self._log.pointer(NAME)
        self._catalogue.adopt(NAME)
        self._between()
        new = publish(self._log, built, written=written)
        self._between()
        if before is not None and before.locator in self._server.indexes:
            mark = self._server.indexes[before.locator].written.mark or before.mark
            self._catalogue.note(replace(before, mark=mark), "full", read=False)
        self._catalogue.note(new, "full")
        self._between()
        self._end_succession()
        self.keep()
        return _NOTHING

    def close(self) -> None:
        """As its port."""

    def reads(self) -> int:
        """As its port."""
        pointer = self._log.pointer(NAME)
        return pointer.generation if pointer else 0

    def keep(self) -> None:
        """As its port."""
        pointer = self._log.pointer(NAME)
        if pointer is None:
            return
        noted = self._catalogue.kept(NAME)
        kept = worth_keeping(noted, read=pointer.generation, now=self._catalogue.now())
        written = {pointer.locator, self._successor.written()}
        for name, index in list(self._server.indexes.items()):
            if name not in written:
                index.written = replace(index.written, open=False)
            if name not in {*written, *(one.pointer.locator for one in kept)}:
                del self._server.indexes[name]

    def hold(self, kept: KeptGeneration) -> None:
        """As its port."""
        written = self._successor.checked(kept.pointer.locator)
        if not self._log.knows(NAME, kept.pointer.mark):
            message = "it is of another history"
            raise Corrupt(message)
        self._catalogue.go_back(NAME, written.clocks)

    def return_to(self, kept: KeptGeneration) -> None:
        """As its port."""
        name = kept.pointer.locator
        written = self._successor.checked(name)
        before = self._log.pointer(NAME)
        self._server.indexes[name].written = replace(written, open=True)
        publish(self._log, name, written=replace(written, mark=kept.pointer.mark))
        self._catalogue.note(kept.pointer, "full")
        if before is not None and before.locator in self._server.indexes:
            left = self._server.indexes[before.locator]
            left.written = replace(left.written, open=False)

    def _end_succession(self) -> None:
        self._successor.begun = False
        self._catalogue.end_succession(NAME)
