"""Keyword indexes of one folder: building one beside the one that is read, and going back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memory_tool.adapters.tantivy_control import count_controls, read_all_clocks, read_stamp
from memory_tool.adapters.tantivy_copies import (
    keep_copy,
    kept_folder,
    kept_numbers,
    remove_copies,
    return_to,
)
from memory_tool.adapters.tantivy_folder import (
    BUILDING,
    CURRENT,
    TantivyFolder,
    named,
    opened_at,
    reading,
    remove_unnamed,
    write_durably,
    writing,
)
from memory_tool.adapters.tantivy_inventory import TantivyInventory
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.durable import force
from memory_tool.errors import Corrupt
from memory_tool.generations import (
    KeptGeneration,
    Origin,
    Quality,
    successor_name,
    worth_keeping,
)
from memory_tool.port_values import Pointer
from memory_tool.renewal_ports import GenerationCatalogue, Renewal, WayBack

_KIND: Final = "inverted index"


class TantivyRenewal(Renewal, WayBack):
    """See ``Renewal`` and ``WayBack`` in :mod:`memory_tool.renewal_ports`.

    The generations that are noted are the kept copies, by their numbers.
    """

    def __init__(self, target: TantivyTarget, *, catalogue: GenerationCatalogue) -> None:
        """Build in the folder of ``target``."""
        self._path = target.path
        self._target = target.name
        self._tokeniser = target.tokeniser
        self._catalogue = catalogue
        self._current = TantivyFolder(target.path)
        self._successor = TantivyTarget(
            target.path,
            name=successor_name(target.name),
            tokeniser=target.tokeniser,
            names=BUILDING,
        )

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.renewal_ports.Renewal.target`."""
        return self._target

    def begin(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.begin`."""
        if not (self._path / BUILDING).exists():
            self._successor.reset()

    def successor(self) -> TantivyTarget | None:
        """See :meth:`memory_tool.renewal_ports.Renewal.successor`."""
        if not (self._path / BUILDING).exists():
            return None
        if self._is_read():
            # Whoever switched to it was killed before it could say so.
            self._end_succession()
            return None
        return self._successor

    @contextmanager
    def inventory(self, *, successor: bool) -> Iterator[TantivyInventory]:
        """See :meth:`memory_tool.renewal_ports.Renewal.inventory`."""
        folder = TantivyFolder(self._path, names=BUILDING if successor else CURRENT)
        opened = folder.follow(None)
        yield TantivyInventory(opened.searcher if opened else None, tokeniser=self._tokeniser)

    def switch(self) -> Quality:
        """See :meth:`memory_tool.renewal_ports.Renewal.switch`."""
        # Its small segments are joined before anybody reads it.
        self._successor.finish()
        # Opened anew, so that the checksums of all files are compared.
        built = TantivyFolder(self._path, names=BUILDING).follow(None)
        number = named(self._path / BUILDING)
        if built is None or number is None:
            message = "the index that was built is gone"
            raise Corrupt(message)
        stamp = read_stamp(built.searcher, self._tokeniser)
        rows = built.searcher.num_docs - (count_controls(built.searcher, stamp) if stamp else 0)
        self._catalogue.adopt(self._target)
        with writing():
            write_durably(self._path / CURRENT, number)
        self._end_succession()
        self._keep_copy("full", mark=stamp.mark if stamp else None)
        return Quality(generation=int(number), rows=rows, kind=_KIND)

    def close(self) -> None:
        """See :meth:`memory_tool.renewal_ports.Renewal.close`."""
        self._successor.close()

    def reads(self) -> int:
        """See :meth:`memory_tool.renewal_ports.WayBack.reads`."""
        return 0

    def keep(self) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.keep`."""
        opened = self._current.follow(None)
        stamp = read_stamp(opened.searcher, self._tokeniser) if opened else None
        self._keep_copy("incremental", mark=stamp.mark if stamp else None)

    def hold(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.hold`."""
        source = kept_folder(self._path, kept.pointer.generation)
        opened = opened_at(source)
        stamp = read_stamp(opened.searcher, self._tokeniser)
        if stamp is None or stamp.mark != kept.pointer.mark:
            message = f"the kept index {source.name} is another one"
            raise Corrupt(message)
        with reading("the clocks can't be read"):
            clocks = read_all_clocks(opened.searcher, stamp)
        self._catalogue.go_back(self._target, clocks)

    def return_to(self, kept: KeptGeneration) -> None:
        """See :meth:`memory_tool.renewal_ports.WayBack.return_to`."""
        return_to(self._path, kept_folder(self._path, kept.pointer.generation))

    def _is_read(self) -> bool:
        try:
            return named(self._path / BUILDING) == named(self._path / CURRENT)
        except Corrupt:
            return False

    def _end_succession(self) -> None:
        self._catalogue.end_succession(self._target)
        with writing():
            (self._path / BUILDING).unlink(missing_ok=True)
            force(self._path)
            remove_unnamed(self._path)

    def _keep_copy(self, origin: Origin, *, mark: str | None) -> None:
        """Copy what is read, if it holds anything, and remove the copies not worth keeping."""
        current = named(self._path / CURRENT)
        if current is None:
            return
        if mark is not None:
            number = keep_copy(self._path, self._path / current)
            pointer = Pointer(target=self._target, generation=number, locator="", mark=mark)
            self._catalogue.note(pointer, origin, read=False)
        noted = self._catalogue.kept(self._target)
        worth = worth_keeping(noted, read=0, now=self._catalogue.now())
        numbers = {one.pointer.generation for one in worth}
        gone = {one.pointer.generation for one in noted} | kept_numbers(self._path)
        self._catalogue.forget(self._target, gone - numbers)
        remove_copies(self._path, but=numbers)
