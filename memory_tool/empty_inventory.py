"""The inventory of an index that holds nothing yet."""

from collections.abc import Iterator, Mapping

from memory_tool.inventory import Entry, Fingerprint
from memory_tool.inventory_ports import IndexInventory
from memory_tool.model import MemoryId


class EmptyInventory(IndexInventory):
    """See :class:`memory_tool.inventory_ports.IndexInventory`."""

    @property
    def mark(self) -> None:
        """None."""
        return

    @property
    def clocks(self) -> Mapping[int, int]:
        """None."""
        return {}

    def fingerprints(
        self,
        *,
        leaving_out: Mapping[int, frozenset[MemoryId]],  # noqa: ARG002 - there is nothing to leave out
    ) -> Mapping[int, Fingerprint]:
        """None."""
        return {}

    def entries(
        self,
        ns_ids: frozenset[int] | None = None,  # noqa: ARG002 - the same in all
    ) -> Iterator[tuple[int, Entry]]:
        """None."""
        return iter(())
