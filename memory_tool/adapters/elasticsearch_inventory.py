"""What an Elasticsearch index holds, page by page through a point in time."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from memory_tool.adapters.elasticsearch_connection import (
    Body,
    ElasticsearchConnection,
    check_whole,
    translated,
)
from memory_tool.adapters.elasticsearch_control import Control, read_control
from memory_tool.adapters.elasticsearch_layout import HITS, among, candidate
from memory_tool.inventory import Entry, Fingerprint, fingerprints_by_namespace
from memory_tool.inventory_ports import IndexInventory
from memory_tool.model import MemoryId

PAGE: Final = 10_000
"""Chunks of one answer, the server's own limit: 100,000 take ten requests."""

KEPT: Final = "5m"
"""How long the server keeps the moment between two pages."""


class ElasticsearchInventory(IndexInventory):
    """See :class:`memory_tool.inventory_ports.IndexInventory`. Tombstones are left out."""

    def __init__(
        self, connection: ElasticsearchConnection, *, control: Control, moment: str
    ) -> None:
        """Look at a ``moment`` that the server keeps, with what was said of the index before."""
        self._connection = connection
        self._moment = moment
        self.control = control

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.mark`."""
        return self.control.stamp.mark

    @property
    def clocks(self) -> Mapping[int, int]:
        """See :attr:`memory_tool.inventory_ports.IndexInventory.clocks`."""
        return self.control.clocks

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.fingerprints`."""
        return fingerprints_by_namespace(self.entries(), leaving_out=leaving_out)

    def entries(self, ns_ids: frozenset[int] | None = None) -> Iterator[tuple[int, Entry]]:
        """See :meth:`memory_tool.inventory_ports.IndexInventory.entries`."""
        if ns_ids is not None and not ns_ids:
            return
        wanted: list[Body] = (
            [{"exists": {"field": "ns"}}] if ns_ids is None else among(sorted(ns_ids), None)
        )
        after: Mapping[str, Any] = {}
        while hits := self._page(wanted, after=after):
            for hit in hits:
                found = candidate(hit, 0.0)
                yield found.ns_id, Entry(found.memory_id, found.ordinal, found.version)
            after = {"search_after": hits[-1]["sort"]}

    def _page(self, wanted: list[Body], *, after: Mapping[str, Any]) -> list[Body]:
        with translated():
            answer = self._connection.patient().search(
                pit={"id": self._moment, "keep_alive": KEPT},
                query={"bool": {"filter": wanted}},
                # The order of the files: nothing has to be sorted.
                sort=["_shard_doc"],
                size=PAGE,
                **HITS,
                **after,
            )
        check_whole(answer.body)
        hits: list[Body] = answer["hits"]["hits"]
        return hits


@contextmanager
def elasticsearch_inventory(
    connection: ElasticsearchConnection, index: str
) -> Iterator[ElasticsearchInventory]:
    """The index of this name as it can be searched now.

    The clocks are read before the moment is taken: what they say is there can be seen in it.

    Raises:
        Corrupt: There is no index or no stamp in it.
        Unavailable: The server can't answer.
    """
    control = read_control(connection, index)
    with translated():
        moment = connection.patient().open_point_in_time(index=index, keep_alive=KEPT)["id"]
    try:
        yield ElasticsearchInventory(connection, control=control, moment=moment)
    finally:
        with translated():
            connection.patient().options(ignore_status=404).close_point_in_time(id=moment)
