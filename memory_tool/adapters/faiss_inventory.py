"""What a generation holds, from its arrays, and its vectors themselves; no graph is read."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from memory_tool.adapters.faiss_files import OpenedGeneration, check_file
from memory_tool.adapters.faiss_manifest import Block
from memory_tool.adapters.faiss_vectors import Rows, steps
from memory_tool.inventory import Entry, Fingerprint, content_digest, fingerprints_by_namespace
from memory_tool.inventory_ports import IndexInventory
from memory_tool.model import MemoryId


class FaissInventory(IndexInventory):
    """See :class:`memory_tool.inventory_ports.IndexInventory`. Dead rows are left out."""

    def __init__(self, opened: OpenedGeneration) -> None:
        """Look at ``opened``."""
        self._opened = opened

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.mark`."""
        return self._opened.manifest.mark

    @property
    def clocks(self) -> Mapping[int, int]:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.clocks`."""
        return self._opened.manifest.clocks

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.fingerprints`."""
        return fingerprints_by_namespace(self.entries(), leaving_out=leaving_out)

    def entries(self, ns_ids: frozenset[int] | None = None) -> Iterator[tuple[int, Entry]]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.entries`."""
        for block in self._opened.manifest.blocks:
            if ns_ids is None or block.ns_id in ns_ids:
                yield from self._entries_of(block)

    def _entries_of(self, block: Block) -> Iterator[tuple[int, Entry]]:
        table = self._opened.table
        rows = block.start + np.flatnonzero(~table.dead[block.start : block.stop])
        columns = (
            table.ids.take(rows).texts(),
            table.ordinals[rows].tolist(),
            self._versions(rows),
        )
        for entry in map(Entry, *columns):
            yield block.ns_id, entry

    def _versions(self, rows: Rows) -> Iterable[int]:
        versions: list[int] = self._opened.table.versions[rows].tolist()
        return versions


class FaissContents(FaissInventory):
    """The same, where each entry's version is the digest of its stored vector.

    Raises ``Corrupt`` where a file was changed since it was written, graphs included.
    """

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.fingerprints`."""
        for name in self._opened.manifest.files:
            check_file(self._opened.folder, self._opened.manifest, name=name)
        return super().fingerprints(leaving_out=leaving_out)

    def _versions(self, rows: Rows) -> Iterable[int]:
        for first, last in steps(0, len(rows), dimension=self._opened.manifest.dimension):
            for half in self._opened.vectors.take(rows[first:last]):
                yield content_digest(half.tobytes())
