"""The ports of checking: a closer look at one index, and at the truth that it copies.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from memory_tool.findings import Finding
from memory_tool.inventory import Entry
from memory_tool.inventory_ports import IndexInventory, TruthInventory
from memory_tool.log_ports import ChangeLog
from memory_tool.model import MemoryId, State, Vector
from memory_tool.ports import KeywordView, VectorView


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One state of an index, opened for a check.

    Attributes:
        inventory: What it holds.
        contents: The same where each entry's version is the digest of its stored vector; ``None``
            for an index that can't give its vectors back.
        faults: What it was made with or belongs to, if that is not right.
        vectors: Opens a vector index as a search would.
        words: Opens a keyword index likewise.
    """

    inventory: IndexInventory
    contents: IndexInventory | None
    faults: tuple[Finding, ...]
    vectors: Callable[[], VectorView] | None = None
    words: Callable[[], KeywordView] | None = None


class Inspected(Protocol):
    """An index that can be looked at closely, without holding its lease."""

    @property
    def target(self) -> str:
        """The name under which the truth keeps its marks and progress."""
        ...

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """Which of a row's numbers and columns it holds."""
        ...

    def look(self) -> AbstractContextManager[Look]:
        """The state that searches read now.

        Raises:
            Corrupt: It can't be opened; names what is damaged.
            Unavailable: A server can't answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A row of the truth without its content."""

    ns_id: int
    state: State
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A chunk as an index has to hold it: its vector, or its tokens.

    Attributes:
        vector: Shape (dimension,), for the vector index.
        words: Tokens of the text and of what is kept beside it, for the keyword index.
        bigrams: Tokens of Chinese text, likewise.
    """

    ns_id: int
    entry: Entry
    vector: Vector | None
    words: str
    bigrams: str


class TruthAudit(Protocol):
    """The truth as a check reads it, over all namespaces."""

    def clocks(self) -> Mapping[int, tuple[int, int]]:
        """Of each namespace its clock, and the highest number purged."""
        ...

    def progress(self, target: str) -> Mapping[int, int]:
        """How far the target was noted to have come."""
        ...

    def standings(
        self, ids: Sequence[MemoryId], *, kind: Literal["vector", "keyword"]
    ) -> Mapping[MemoryId, Sequence[Standing]]:
        """Every row with one of these ids, in whichever namespace."""
        ...

    def sample(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        clocks: Mapping[int, int],
        wanted: Mapping[int, int],
    ) -> Sequence[Specimen]:
        """Settled chunks, so many of each namespace; the same ones while nothing changes."""
        ...

    def vectors(
        self, target: str, ns_id: int, *, clock: int
    ) -> Iterator[tuple[Sequence[Entry], Vector]]:
        """The settled vectors of a namespace, some thousands at once."""
        ...

    def faults(self) -> Iterator[Finding]:
        """Where the truth contradicts itself."""
        ...

    def waiting(self) -> int:
        """How many live memories wait for a vector, as after a failure of the embedder."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Redelivery:
    """What a namespace needs so that its targets take up some of its memories again.

    Attributes:
        above: The fresh numbers lie above this one and above every number of the truth.
        memories: The chunks that each may have anywhere. One that the truth has no row of becomes
            a deleted row, so that appliers remove it.
    """

    ns_id: int
    above: int
    memories: Mapping[MemoryId, int]


class TruthRepair(Protocol):
    """Changes to the truth that say nothing new, for the sake of what follows it."""

    def redeliver(self, redelivery: Redelivery) -> int:
        """Give these memories fresh numbers in one transaction; how many got one."""
        ...

    def drop_lost_chunks(self, ns_id: int, memory_id: MemoryId) -> None:
        """Remove the chunks of a memory that is not there or was deleted."""
        ...

    def ask_for_chunks(self, ns_id: int, memory_id: MemoryId) -> None:
        """A live memory without chunks waits for them, as one whose embedder was down."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthSide:
    """All that a check and a repair need of the truth.

    Attributes:
        inventory: What an index has to hold.
        contents: The same where each entry's version is the digest of its vector.
        audit: What else a check asks.
        repair: What a repair changes.
        log: Knows marks and progress.
    """

    inventory: TruthInventory
    contents: TruthInventory
    audit: TruthAudit
    repair: TruthRepair
    log: ChangeLog
