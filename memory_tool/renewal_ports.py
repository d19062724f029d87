"""The ports of building an index anew beside the one that searches read, and of going back.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

from memory_tool.generations import KeptGeneration, Origin, Quality
from memory_tool.inventory_ports import IndexInventory
from memory_tool.log_ports import IndexTarget
from memory_tool.port_values import Pointer


class Renewal(Protocol):
    """How one target is built anew. Only the holder of its lease calls it."""

    @property
    def target(self) -> str:
        """The name of the target that is read."""
        ...

    def begin(self) -> None:
        """Begin a successor from nothing, unless one is being built: that one goes on."""
        ...

    def successor(self) -> IndexTarget | None:
        """What is being built: followed like any target, under a name of its own.

        It outlives the process. Searches never see it.
        """
        ...

    def inventory(self, *, successor: bool) -> AbstractContextManager[IndexInventory]:
        """What the successor holds, or else what is read.

        Raises:
            Corrupt: It is damaged.
        """
        ...

    def switch(self) -> Quality:
        """Look at the successor as a reader would, make it what searches read, keep the old one.

        Raises:
            Corrupt: It is not as it was written, or does not find what it holds.
            Unavailable: Somebody else switched meanwhile, or it can't be done now.
        """
        ...

    def close(self) -> None:
        """Let others go on with the successor: give back locks and files. May be called twice."""
        ...


class WayBack(Protocol):
    """How one target goes back to an earlier generation. Only the holder of its lease calls it."""

    def reads(self) -> int:
        """The generation that is read; 0 where that is none of those that are noted."""
        ...

    def keep(self) -> None:
        """See that the last hourly one can be gone back to, and remove what is too old for it."""
        ...

    def hold(self, kept: KeptGeneration) -> None:
        """Look at a kept generation as a reader would, and let nothing be purged that it lacks.

        Searches see nothing of it.

        Raises:
            WriteConflict: It may hold rows that were purged since.
            Corrupt: It is damaged.
        """
        ...

    def return_to(self, kept: KeptGeneration) -> None:
        """Make what was held what searches read again; it is brought forward from there.

        Raises:
            Corrupt: It is gone.
            Unavailable: Somebody else switched meanwhile, or it can't be done now.
        """
        ...


class Renewable(Renewal, WayBack, Protocol):
    """Both of them, for one target."""


@runtime_checkable
class Tidied(Protocol):
    """An index that keeps what was deleted until it is told to let go of it."""

    def tidy(self) -> None:
        """Give the space of deleted chunks free, and join small files, while searches go on."""
        ...


@runtime_checkable
class GenerationCatalogue(Protocol):
    """What the truth notes of the builds of each target."""

    def adopt(self, target: str) -> None:
        """What is known of its successor is known of the target too: marks, progress, letters."""
        ...

    def end_succession(self, target: str) -> None:
        """What was known of its successor is forgotten: there is none any more."""
        ...

    def note(self, pointer: Pointer, origin: Origin, *, read: bool = True) -> None:
        """A generation that is read from now on; without ``read`` a copy that stays as it is."""
        ...

    def kept(self, target: str) -> tuple[KeptGeneration, ...]:
        """All that were noted and not forgotten."""
        ...

    def forget(self, target: str, generations: Collection[int]) -> None:
        """These are gone."""
        ...

    def go_back(self, target: str, clocks: Mapping[int, int]) -> None:
        """The target stands at these clocks again: nothing above them may be purged.

        Raises:
            WriteConflict: Something above them was purged already.
        """
        ...

    def now(self) -> datetime:
        """The store's clock."""
        ...
