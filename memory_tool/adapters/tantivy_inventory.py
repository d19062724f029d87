"""What a commit of Tantivy holds, from its columns, some tens of thousands of chunks at once."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from tantivy import DocAddress, FieldType, Occur, Query, Searcher

from memory_tool.adapters.tantivy_control import read_all_clocks, read_stamp
from memory_tool.adapters.tantivy_folder import reading
from memory_tool.adapters.tantivy_schema import schema
from memory_tool.inventory import Entry, Fingerprint, fingerprints_by_namespace
from memory_tool.inventory_ports import IndexInventory
from memory_tool.model import MemoryId

AT_ONCE: Final = 50_000
"""Chunks read at once, about: 20 MB of addresses and columns."""

_ID_BITS: Final = 64
_COLUMNS: Final = ("ns_id", "id_high", "id_low", "ordinal", "version")


class TantivyInventory(IndexInventory):
    """See :class:`memory_tool.inventory_ports.IndexInventory`. Control documents are left out."""

    def __init__(self, searcher: Searcher | None, *, tokeniser: int) -> None:
        """Look through ``searcher``; ``None`` where there is no index yet.

        Raises:
            Corrupt: The files are damaged, or made by another version.
        """
        self._searcher = searcher
        self._stamp = read_stamp(searcher, tokeniser) if searcher else None
        self._clocks: Mapping[int, int] = {}
        if searcher and self._stamp:
            with reading("the clocks can't be read"):
                self._clocks = read_all_clocks(searcher, self._stamp)

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.mark`."""
        return self._stamp.mark if self._stamp else None

    @property
    def store(self) -> str | None:
        """Identity of the store that it says to copy."""
        return self._stamp.store if self._stamp else None

    @property
    def clocks(self) -> Mapping[int, int]:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.clocks`."""
        return self._clocks

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.fingerprints`."""
        return fingerprints_by_namespace(self.entries(), leaving_out=leaving_out)

    def entries(self, ns_ids: frozenset[int] | None = None) -> Iterator[tuple[int, Entry]]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.entries`."""
        if self._searcher is None:
            return
        documents = self._searcher.num_docs
        bits = (documents // AT_ONCE).bit_length()
        for part in range(1 << bits):
            query = _within(part, bits=bits, ns_ids=ns_ids)
            with reading("the chunks can't be listed"):
                hits = self._searcher.search(query, max(documents, 1), count=False).hits
                yield from _read(self._searcher, [address for _, address in hits])


def _within(part: int, *, bits: int, ns_ids: frozenset[int] | None) -> Query:
    """The chunks whose memory's id begins with these bits: ids are random, so all parts are alike.

    No control document has an id.
    """
    width = 1 << (_ID_BITS - bits)
    begins = Query.range_query(
        schema(), "id_high", FieldType.Unsigned, part * width, (part + 1) * width - 1
    )
    if ns_ids is None:
        return begins
    named = Query.boolean_query(
        [
            (Occur.Should, Query.term_query(schema(), "ns", str(ns_id), "basic"))
            for ns_id in sorted(ns_ids)
        ]
    )
    return Query.boolean_query([(Occur.Must, begins), (Occur.Must, named)])


def _read(searcher: Searcher, addresses: list[DocAddress]) -> Iterator[tuple[int, Entry]]:
    columns = (searcher.fast_field_values(name, addresses) for name in _COLUMNS)
    rows = cast("Iterator[tuple[int, int, int, int, int]]", zip(*columns, strict=True))
    for ns_id, high, low, ordinal, version in rows:
        yield ns_id, Entry(f"{high:016x}{low:016x}", ordinal, version)
