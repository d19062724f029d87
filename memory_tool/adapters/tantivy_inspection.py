"""A close look at the newest commit of a Tantivy folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from memory_tool.adapters.tantivy_folder import TantivyFolder
from memory_tool.adapters.tantivy_inventory import TantivyInventory
from memory_tool.findings import Drift, Finding
from memory_tool.inspection_ports import Inspected, Look
from memory_tool.ports import KeywordIndex


class TantivyInspection(Inspected):
    """See :class:`memory_tool.inspection_ports.Inspected`. A searcher never changes."""

    def __init__(self, folder: Path, index: KeywordIndex, *, store: str, tokeniser: int) -> None:
        """Touch nothing yet.

        Args:
            folder: The folder of the index.
            index: The index as searches see it.
            store: Identity of the store that it has to belong to.
            tokeniser: Version of the tokeniser that made its tokens.
        """
        self._folder = folder
        self._index = index
        self._store = store
        self._tokeniser = tokeniser

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.inspection_ports.Inspected.target`."""
        return self._index.target

    @property
    def kind(self) -> Literal["keyword"]:
        """``keyword``."""
        return "keyword"

    @contextmanager
    def look(self) -> Iterator[Look]:
        """See :meth:`memory_tool.inspection_ports.Inspected.look`. Every file is read once."""
        opened = TantivyFolder(self._folder).follow(None)
        inventory = TantivyInventory(opened.searcher if opened else None, tokeniser=self._tokeniser)
        yield Look(
            inventory=inventory,
            contents=None,
            faults=tuple(self._faults(inventory.store)),
            words=lambda: self._index.view(None),
        )

    def _faults(self, store: str | None) -> Iterator[Finding]:
        if store is not None and store != self._store:
            yield Finding(
                drift=Drift.FOREIGN_STORE, target=self.target, found=store, expected=self._store
            )
