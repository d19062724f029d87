"""What a check finds: values that name a place, what is there and what should be. Never content.

An index may be late: what it has not applied yet is no finding. Pure.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from memory_tool.model import MemoryId


class Level(enum.IntEnum):
    """How closely a check looks. Each level does what the ones before it do, and finds it finer."""

    COUNTS = 1
    FINGERPRINTS = 2
    ITEMS = 3
    QUERIES = 4
    ORPHANS = 5


class Drift(enum.StrEnum):
    """A way in which an index, or the truth itself, is not what it should be."""

    DAMAGED = "damaged files"
    FOREIGN_STORE = "index of another store"
    FOREIGN_MARK = "mark of another history"
    OTHER_SPACE = "another embedding space"
    OTHER_DEFINITION = "made with other settings"
    UNKNOWN_NAMESPACE = "unknown namespace"
    BELOW_PURGED = "clock below what was purged"
    LOW_RECALL = "low recall"

    CLOCK_AHEAD = "clock too high"
    PROGRESS_AHEAD = "progress too high"

    COUNT = "other count"
    FINGERPRINT = "other fingerprint"

    MISSING = "missing entry"
    ORPHAN = "entry without a memory"
    DELETED = "deleted memory still there"
    NOT_HELD = "memory that should not be there"
    WRONG_NAMESPACE = "wrong namespace"
    WRONG_VERSION = "wrong version"
    SURPLUS_ORDINAL = "ordinal that should be gone"
    WRONG_VECTOR = "wrong vector"
    NOT_FOUND = "not found by its own words"

    NUMBER_ABOVE_CLOCK = "number above the clock"
    CHUNK_HIGH_LOW = "chunk_high too low"
    LOST_CHUNKS = "chunks without a memory"
    NO_CHUNKS = "memory without chunks"


REBUILT: Final = frozenset(
    {
        Drift.DAMAGED,
        Drift.FOREIGN_STORE,
        Drift.FOREIGN_MARK,
        Drift.OTHER_SPACE,
        Drift.OTHER_DEFINITION,
        Drift.UNKNOWN_NAMESPACE,
        Drift.BELOW_PURGED,
        Drift.LOW_RECALL,
    }
)
"""What is wrong with an index as a whole: it is built again."""

REDELIVERED: Final = frozenset(
    {
        Drift.MISSING,
        Drift.ORPHAN,
        Drift.DELETED,
        Drift.NOT_HELD,
        Drift.WRONG_NAMESPACE,
        Drift.WRONG_VERSION,
        Drift.SURPLUS_ORDINAL,
        Drift.WRONG_VECTOR,
        Drift.NOT_FOUND,
        Drift.NUMBER_ABOVE_CLOCK,
        Drift.CHUNK_HIGH_LOW,
    }
)
"""What is wrong with a memory: it is delivered again under a fresh number."""

Place: TypeAlias = tuple[Drift, str, int | None, MemoryId | None]

TRUTH: Final = "truth"
"""The target of findings about the truth itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        drift: The way in which it is not.
        target: The index; ``TRUTH`` for the truth itself.
        ns_id: The namespace, where it is about one.
        memory_id: The memory, where it is about one.
        found: What is there, in words.
        expected: What should be there.
        highest: The highest number met there, above which a fresh one has to lie.
        chunks: One more than the highest ordinal met there.
    """

    drift: Drift
    target: str
    ns_id: int | None = None
    memory_id: MemoryId | None = None
    found: str = ""
    expected: str = ""
    highest: int = 0
    chunks: int = 0

    @property
    def place(self) -> "Place":
        """What two looks at the same thing agree about, though their words may differ."""
        return self.drift, self.target, self.ns_id, self.memory_id

    def to_dict(self) -> dict[str, object]:
        """For JSON; what it is not about is left out."""
        told = {
            "drift": str(self.drift),
            "target": self.target,
            "namespace": self.ns_id,
            "memory": self.memory_id,
            "found": self.found,
            "expected": self.expected,
        }
        return {name: value for name, value in told.items() if value not in (None, "")}


def each_once(findings: Iterable[Finding]) -> list[Finding]:
    """Of several about the same place the first: a memory is repaired as a whole."""
    places: dict[Place, Finding] = {}
    for finding in findings:
        places.setdefault(finding.place, finding)
    return list(places.values())


def confirmed(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """What both of two looks found: what was under way at the first is settled at the second."""
    seen = {finding.place for finding in first}
    return [finding for finding in second if finding.place in seen]
