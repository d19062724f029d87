"""What the public methods return: frozen objects that also read as mappings."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memory_tool.errors import NotFound
from memory_tool.model import Json, Memory, WriteResult
from memory_tool.query import Degradation


class Record:
    """Reads as a mapping of its fields: ``record["name"]``, ``record.get("name")``."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - each field has its own type
        """The field of that name.

        Raises:
            KeyError: There is none.
        """
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - as above
        """The field of that name, or ``default``."""
        return getattr(self, name) if name in self.keys() else default

    def keys(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(spec.name for spec in dataclasses.fields(self))  # type: ignore[arg-type] # every record is a dataclass

    def __contains__(self, name: object) -> bool:
        """Whether there is a field of that name."""
        return name in self.keys()

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values: times as ISO texts, tuples as lists."""
        return {name: _plain(getattr(self, name)) for name in self.keys()}


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Degradation):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [_plain(item) for item in value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmExplanation(Record):
    """What one arm said: rank from 1 (``None`` when it only completed a score) and raw score."""

    rank: int | None
    score: float
    filled_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Record):
    """Everything that a score was made from; see :mod:`memory_manage.scoring`.

    Attributes:
        arms: What each arm said.
        cosine: Raw similarity to the query.
        calibrated: The same on the scale of the threshold.
        fusion: How the arms were combined.
        relevance: The fused relevance in [0, 1], the formula's similarity.
        turn_before: What the turn before in a dialogue gave to it, in [0, 1]; see
            :mod:`memory_tool.neighbours`.
        recency: The formula's recency.
        importance: The formula's importance in [0, 1].
        threshold: Least calibrated similarity without a keyword hit.
        filters: What had to hold, in words.
    """

    arms: Mapping[str, ArmExplanation]
    cosine: float | None
    calibrated: float | None
    fusion: str
    relevance: float
    turn_before: float | None
    recency: float
    importance: float
    threshold: float
    filters: str
    tier: str
    cache: str = "miss"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem(Record):
    """One memory as callers see it; ``score`` is there when it was searched for."""

    id: str
    memory: str
    type: str
    namespace: str
    version: int
    created_at: datetime
    updated_at: datetime
    occurred_at: datetime | None
    score: float | None = None
    source: Mapping[str, Json] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    importance: int | None = None
    pinned: bool = False
    confidence: float = 1.0
    expires_at: datetime | None = None
    verified_at: datetime | None = None
    tier: str = "hot"
    access_count: int = 0
    last_accessed_at: datetime | None = None
    path: str | None = None
    flags: tuple[str, ...] = ()
    key: str | None = None
    run_id: str | None = None
    conversation_id: str | None = None
    position: int | None = None
    role: str | None = None
    name: str | None = None
    explanation: Explanation | None = None


def item_of(
    memory: Memory, *, score: float | None = None, explanation: Explanation | None = None
) -> MemoryItem:
    """A memory as callers see it."""
    place = memory.turn
    return MemoryItem(
        id=memory.id,
        memory=memory.content,
        type=memory.type.value,
        namespace=str(memory.namespace),
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        occurred_at=memory.occurred_at,
        score=score,
        source=memory.source,
        tags=memory.tags,
        metadata=memory.metadata,
        importance=memory.importance,
        pinned=memory.pinned,
        confidence=memory.confidence,
        expires_at=memory.expires_at,
        verified_at=memory.verified_at,
        tier=memory.tier.value,
        access_count=memory.access_count,
        last_accessed_at=memory.last_accessed_at,
        flags=memory.flags,
        key=memory.key,
        run_id=memory.run_id,
        conversation_id=place.conversation_id if place else None,
        position=place.position if place else None,
        role=place.role if place else None,
        name=place.name if place else None,
        explanation=explanation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Record):
    """The answer of a search: iterable and sized over its results.

    ``confident`` says whether the first result is likely to answer the question; ``degraded``
    names every part that was missing; ``cursor`` asks for the next page.
    """

    results: tuple[MemoryItem, ...]
    strategy: str
    reason: str
    confident: bool
    degraded: tuple[Degradation, ...] = ()
    cursor: str | None = None

    def __iter__(self) -> Iterator[MemoryItem]:
        """The results, best first."""
        return iter(self.results)

    def __len__(self) -> int:
        """How many results this page has."""
        return len(self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Record):
    """A page of a listing, newest first; ``cursor`` is ``None`` on the last one."""

    results: tuple[MemoryItem, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[MemoryItem]:
        """The memories, newest first."""
        return iter(self.results)

    def __len__(self) -> int:
        """How many memories this page has."""
        return len(self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteItem(Record):
    """What became of one input; ``stores`` says for each store whether the item is there yet."""

    id: str | None
    version: int | None
    status: str
    error: str | None = None
    stores: Mapping[str, str] = field(default_factory=dict)


def write_item(result: WriteResult) -> WriteItem:
    """A write result as callers see it."""
    return WriteItem(
        id=result.id,
        version=result.version,
        status=result.status.value,
        error=result.error,
        stores=result.stores,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Record):
    """What became of the inputs, one item for each, in order."""

    results: tuple[WriteItem, ...]

    def __iter__(self) -> Iterator[WriteItem]:
        """The items, in the order of the inputs."""
        return iter(self.results)

    def __len__(self) -> int:
        """How many inputs there were."""
        return len(self.results)

    @property
    def id(self) -> str:
        """The id of the first item that has one.

        Raises:
            NotFound: No item has an id.
        """
        for item in self.results:
            if item.id is not None:
                return item.id
        message = "nothing was stored"
        raise NotFound(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Record):
    """How many memories a deletion removed."""

    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(Record):
    """Figures over a bounded window, in seconds and counts; no content."""

    avg_store_latency: float
    p50_retrieve_latency: float
    p95_retrieve_latency: float
    cache_hit_rate: float
    namespaces: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Record):
    """``ok``, what each store says of itself, and how far the indexes are behind.

    ``conditions`` tells how each index and the embedder did in this process's calls: up, suspect,
    down or catching up; ``lag`` the rows that an index misses yet and the age of the oldest, in
    seconds.
    """

    ok: bool
    stores: Mapping[str, str]
    where: Mapping[str, str]
    conditions: Mapping[str, str]
    lag: Mapping[str, Mapping[str, float]]
