"""The ports of comparing: what an index holds, and what it has to hold.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, runtime_checkable

from memory_tool.inventory import Entry, Fingerprint, Settled
from memory_tool.model import MemoryId


@runtime_checkable
class TruthInventory(Protocol):
    """What the truth wants an index to hold."""

    def settled(
        self, target: str, kind: Literal["vector", "keyword"], *, clocks: Mapping[int, int]
    ) -> Settled:
        """What a target that stands at these clocks has to hold, read in one snapshot.

        Look at the index first: what it took up in between then counts as moving.
        """
        ...

    def moving(
        self, target: str, kind: Literal["vector", "keyword"], *, clocks: Mapping[int, int]
    ) -> Mapping[int, frozenset[MemoryId]]:
        """Only which rows to leave out now: who moves once, moves on.

        Ask behind :meth:`entries`, for rows that began to move while those were read.
        """
        ...

    def entries(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        clocks: Mapping[int, int],
        ns_ids: frozenset[int],
    ) -> Iterator[tuple[int, Entry]]:
        """The same of some namespaces, item by item as (ns_id, entry), by ns_id and memory."""
        ...


@runtime_checkable
class IndexInventory(Protocol):
    """What one state of an index holds; it does not change while it is looked at.

    Any of its methods raises ``Corrupt`` where damage is met, and ``Unavailable`` where a server
    can't answer.
    """

    @property
    def mark(self) -> str | None:
        """The mark of its history; ``None`` for an empty index."""
        ...

    @property
    def clocks(self) -> Mapping[int, int]:
        """The number up to which it claims to hold each namespace."""
        ...

    def fingerprints(
        self, *, leaving_out: Mapping[int, frozenset[MemoryId]]
    ) -> Mapping[int, Fingerprint]:
        """Of each namespace what a search could find, but for these memories."""
        ...

    def entries(self, ns_ids: frozenset[int] | None = None) -> Iterator[tuple[int, Entry]]:
        """What a search could find in these namespaces (``None``: in all), item by item.

        In no order that could be relied on; a namespace that it lacks has no entries.
        """
        ...
