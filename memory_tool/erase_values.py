"""What erasing is told, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from memory_tool.model import MemoryId

Done: TypeAlias = Literal["done", "waiting", "not ours"]
"""Of a place: nothing is left there; somebody else has to finish; it is out of our reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One order to erase: a memory, or a whole namespace where no memory is named.

    It names no content and no person, so that it may be kept for ever.
    """

    name: str
    store: str
    ns_id: int
    memory_id: MemoryId | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place where an erased memory may have left something, and what was done there."""

    name: str
    state: Done
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A piece of what was erased that was found in a file.

    ``elsewhere`` says that a memory which stays says the same: then it had to be found.
    """

    file: str
    elsewhere: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryScan:
    """The search of all files for pieces of what was erased; ``unread`` could not be opened."""

    pieces: int
    files: int
    bytes: int
    traces: tuple[Trace, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether all was read and nothing was found but what others say too."""
        return not self.unread and all(trace.elsewhere for trace in self.traces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was erased, place by place."""

    at: datetime
    lines: int
    rows: Mapping[str, int]
    places: tuple[Place, ...]
    scan: CanaryScan = field(default_factory=lambda: CanaryScan(pieces=0, files=0, bytes=0))

    @property
    def complete(self) -> bool:
        """Whether every place within reach is done, and no piece was found."""
        return self.scan.clean and all(place.state != "waiting" for place in self.places)
