"""The nouns of asking: filters, strategies, candidates, hits and answers."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from memory_tool.model import Memory, MemoryId, MemoryType, Vector
from memory_tool.scope import Scope

Scalar: TypeAlias = bool | int | float | str | datetime | None


Operator = Literal[
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains", "exists"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One condition on one field. ``metadata`` tells a metadata name from a field of the record.

    ``value`` is a tuple for ``in`` and ``nin``.
    """

    name: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]
    metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """True when every part is; an empty one is true."""

    parts: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """True when at least one part is."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotThis:
    """True when the part is not."""

    part: "Filter"


Filter: TypeAlias = Comparison | AllOf | AnyOf | NotThis


EVERYTHING: Final = AllOf()


class Arm(enum.StrEnum):
    """One of the parallel searches."""

    VECTOR = "vector"
    KEYWORD = "keyword"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciprocalRank:
    """Fusion by rank: the sum of 1 / (k + rank) over the arms. k = 60 is the usual constant."""

    k: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """Fusion by score: each arm scaled to [0, 1] over the candidates, then weighted and added."""

    vector: float = 0.6
    keyword: float = 0.4


Fusion: TypeAlias = ReciprocalRank | WeightedSum


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one query is searched, as a value."""

    name: str
    arms: tuple[Arm, ...]
    fusion: Fusion


FUSION: Final = WeightedSum(vector=0.6, keyword=0.4)
"""Measured best over conversational and passage sets; ARCHITECTURE.md has the table."""

KEYWORD: Final = Strategy(name="keyword", arms=(Arm.KEYWORD,), fusion=FUSION)
VECTOR: Final = Strategy(name="vector", arms=(Arm.VECTOR,), fusion=FUSION)
HYBRID: Final = Strategy(name="hybrid", arms=(Arm.VECTOR, Arm.KEYWORD), fusion=FUSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question for the read path.

    Attributes:
        vector: A query embedding made by the caller, in the store's space; not yet checked.
        space: The name of its space.
        keyword_text: What the keyword arm searches when it differs from ``text``.
        limit: Hits that are wanted; fewer make the arms ask for more.
        depth: Candidates that each arm fetches.
    """

    text: str
    scope: Scope
    strategy: Strategy
    filter: Filter = EVERYTHING
    limit: int = 5
    depth: int = 100
    vector: Vector | None = None
    space: str | None = None
    keyword_text: str | None = None


class Candidate(NamedTuple):
    """A chunk that an arm proposes. ``version`` is the arm's own number of the row it indexed.

    ``score`` is comparable within the arm only; higher is better. Candidates, outlines and hits are
    named tuples: a search makes hundreds, and they are made four times as fast.
    """

    ns_id: int
    memory_id: MemoryId
    ordinal: int
    version: int
    score: float


class Outline(NamedTuple):
    """The light columns of a row: all that ranking needs, without content.

    ``importance`` is in stars (1 to 5) or ``None``; ``event_time`` is in seconds since 1970, UTC;
    ``tokens`` is about the length of the text, four bytes each; ``position`` counts from 0.
    """

    id: MemoryId
    ns_id: int
    vector_nseq: int
    keyword_nseq: int
    content_hash: bytes
    type: MemoryType
    importance: int | None
    pinned: bool
    confidence: float
    event_time: float
    tokens: int = 0
    conversation_id: str | None = None
    position: int = 0


class Hit(NamedTuple):
    """A memory that a search found, before the brain ranks it.

    Attributes:
        outline: Its light columns.
        ordinal: Its best chunk.
        relevance: The fused score in [0, 1].
        vector_rank: Its rank from 1 in the vector arm; ``None`` when that arm didn't find it.
        cosine: Raw similarity of its best chunk, found or completed afterwards.
        keyword_rank: Its rank from 1 in the keyword arm.
        keyword_score: What BM25 said.
        turn_before: What the turn before in its dialogue gave, where dialogues were found.
    """

    outline: Outline
    ordinal: int
    relevance: float
    vector_rank: int | None
    cosine: float | None
    keyword_rank: int | None
    keyword_score: float | None
    turn_before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A hit of the page that was asked for, with its memory."""

    hit: Hit
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """A part of an answer that is missing or came another way: which arm, and why."""

    part: str
    reason: str

    def __str__(self) -> str:
        """``vector: reason``."""
        return f"{self.part}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the read path found: the page, all hits that were ranked, and what was missing."""

    found: tuple[Found, ...]
    ranked: tuple[Hit, ...] = ()
    degraded: tuple[Degradation, ...] = ()
