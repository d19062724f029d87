"""The ports of ageing: which memories go to another tier, expire, or are forgotten for good.

The rules of :mod:`memory_tool.ports` hold here too. Whoever is behind one sees all namespaces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from memory_tool.archive_ports import ArchiveRecord
from memory_tool.model import ArchivePlace, MemoryId, Tier
from memory_tool.port_values import ArchiveFile, RowKey
from memory_tool.scope import Namespace

Summarise: TypeAlias = Callable[[str], str]
"""What stands for a text while it is in the archive: a shorter text, or the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRules:
    """Days since a memory was made, changed or used until it isn't hot, and until it isn't warm.

    Without ``warm_days`` nothing becomes cold, and what is stays so.
    """

    hot_days: float = 7.0
    warm_days: float | None = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DueMove:
    """A memory that is not in the tier where its age puts it.

    Attributes:
        nseq: Its number when it was looked at.
        weight: Bytes of its text.
    """

    ns_id: int
    namespace: Namespace
    memory_id: MemoryId
    nseq: int
    tier: Tier
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFigures:
    """How many live memories are in each tier, and what the archive weighs.

    ``stale`` files hold lines that have to go; ``size`` is in bytes.
    """

    memories: Mapping[str, int]
    files: int
    size: int
    stale: int


class TierStore(Protocol):
    """Which memories are due to move."""

    def due(self, rules: TierRules, limit: int) -> Sequence[DueMove]:
        """At most ``limit`` live memories that are not where they belong, in any order.

        Pinned memories and those of four stars or more belong to the hot tier. What lacks a vector
        is not due to become cold: its text is still wanted.
        """
        ...

    def records(self, ns_id: int, ids: Sequence[MemoryId]) -> Sequence[ArchiveRecord]:
        """What an archive has to keep of those of these memories that live, in one moment."""
        ...

    def recount(self) -> None:
        """Count anew how many memories of each namespace are warm or cold."""
        ...

    def figures(self) -> TierFigures:
        """Figures, without content."""
        ...


class ArchiveRegister(Protocol):
    """Which files of the archive the store relies on."""

    def known(self) -> frozenset[str]:
        """Every file that a row names or named a moment ago."""
        ...

    def stale(self) -> Mapping[str, int]:
        """Files with lines that no memory names any more, and the namespace of each."""
        ...

    def kept(self, name: str) -> Mapping[MemoryId, ArchivePlace]:
        """The memories that the archive keeps in this file, and where."""
        ...

    def switch(self, name: str, to: ArchiveFile | None) -> bool:
        """Let every memory of a file be read from another one, in one transaction.

        ``None`` when no memory names it. ``False``, and nothing is changed, when the memories of
        the file are others by now.
        """
        ...

    def gone(self, *, seconds: float) -> Sequence[str]:
        """Files that were switched from at least so long ago."""
        ...

    def forget(self, name: str) -> None:
        """The file was removed."""
        ...


class Tombstones(Protocol):
    """Memories that are past: expired ones, and deleted ones that still stand in the log."""

    def expired(self, limit: int) -> Mapping[Namespace, Sequence[MemoryId]]:
        """Memories whose time is over and that are not deleted yet, at most ``limit``."""
        ...

    def purge(self, hours: float, limit: int) -> int:
        """Remove about ``limit`` rows of deleted memories for good; how many were removed.

        A row goes when it was deleted more than ``hours`` ago, every registered target has passed
        its number and no dead letter names it. The clock of its namespace notes the number, so that
        a target which never saw it go is built anew.
        """
        ...


class UseLog(Protocol):
    """How often memories are returned. Counting changes no memory and takes no number."""

    def add(self, uses: Mapping[RowKey, tuple[int, float]]) -> None:
        """Add to the counts: how often each was returned, and how many seconds ago last.

        Unknown and deleted memories are left out.
        """
        ...
