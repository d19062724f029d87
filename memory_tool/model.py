"""The nouns of the house: what is stored, what is asked, what comes back."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_tool.scope import Namespace

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


Vector: TypeAlias = NDArray[np.float32]
"""One embedding of shape (dimension,), or several of shape (count, dimension); unit length."""


MemoryId: TypeAlias = str
"""32 lower-case hexadecimal digits: a UUID without hyphens."""


class MemoryType(enum.StrEnum):
    """What kind of memory a text is."""

    CONVERSATION = "conversation"
    EVENT = "event"
    KNOWLEDGE = "knowledge"
    PREFERENCE = "preference"
    OBSERVATION = "observation"
    SEMANTIC = "semantic"
    REFLECTION = "reflection"
    PROCEDURE = "procedure"


class State(enum.StrEnum):
    """Whether a row may be seen. Only ``LIVE`` rows are ever returned."""

    LIVE = "live"
    QUARANTINED = "quarantined"
    DELETED = "deleted"


class Tier(enum.StrEnum):
    """Where a memory is searched: both indexes, vectors only, or an archive."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class OnDuplicate(enum.StrEnum):
    """What a write does when the same text is already stored."""

    SKIP = "skip"
    UPDATE = "update"
    FAIL = "fail"
    KEEP = "keep"


class Status(enum.StrEnum):
    """What became of one item of a write."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    UPDATED = "updated"
    DELETED = "deleted"
    ALREADY_DELETED = "already_deleted"
    SKIPPED = "skipped"
    FAILED = "failed"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpace:
    """Which vectors may be compared: model, revision, dimension, prefixes and normalisation."""

    model: str
    dimension: int
    revision: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    normalised: bool = True

    @property
    def name(self) -> str:
        """``model@revision/dimension``: what people see and what stores record."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.model}{revision}/{self.dimension}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The place of a message in its conversation."""

    conversation_id: str
    position: int
    role: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory about to be stored. Times are aware datetimes.

    Attributes:
        importance: One to five stars, or ``None`` for not rated.
        confidence: Between 0 and 1.
        ttl: How long it may be seen, by the store's clock, in place of ``expires_at``.
        embedding: Shape (dimension,), made in ``space``; left out, the store's embedder makes it.
        space: Name of the embedding space of ``embedding``.
    """

    content: str
    type: MemoryType | None = None
    importance: int | None = None
    pinned: bool = False
    confidence: float = 1.0
    source: Mapping[str, Json] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    ttl: timedelta | None = None
    key: str | None = None
    run_id: str | None = None
    turn: Turn | None = None
    on_duplicate: OnDuplicate = OnDuplicate.SKIP
    embedding: Vector | None = None
    space: str | None = None


class Unset(enum.Enum):
    """Stands for "leave as it is", where ``None`` is a value."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What an update changes; what is ``UNSET`` stays. ``metadata`` is merged one level deep."""

    content: str | Unset = UNSET
    type: MemoryType | Unset = UNSET
    importance: int | Unset | None = UNSET
    pinned: bool | Unset = UNSET
    confidence: float | Unset = UNSET
    source: Mapping[str, Json] | Unset = UNSET
    tags: tuple[str, ...] | Unset = UNSET
    metadata: Mapping[str, Json] | Unset = UNSET
    occurred_at: datetime | Unset | None = UNSET
    expires_at: datetime | Unset | None = UNSET
    verified_at: datetime | Unset | None = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a memory that is embedded and indexed: ``content[start:stop]``.

    ``words`` and ``bigrams`` are its tokens joined by one blank, ``embedding`` is missing when the
    embedder failed.
    """

    ordinal: int
    start: int
    stop: int
    language: str
    words: str
    bigrams: str
    embedding: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored memory, as one version of it reads.

    Attributes:
        access_count: How often a search or a look-up returned it; counted in batches, so the last
            minute may be missing.
        flags: What a reader has to know: ``archive_unavailable``, where the text is a summary
            because the archive that has the whole can't be read.
    """

    id: MemoryId
    namespace: Namespace
    content: str
    type: MemoryType
    version: int
    created_at: datetime
    updated_at: datetime
    importance: int | None = None
    pinned: bool = False
    confidence: float = 1.0
    source: Mapping[str, Json] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    verified_at: datetime | None = None
    key: str | None = None
    run_id: str | None = None
    turn: Turn | None = None
    tier: Tier = Tier.HOT
    access_count: int = 0
    last_accessed_at: datetime | None = None
    flags: tuple[str, ...] = ()

    @property
    def event_time(self) -> datetime:
        """When it happened, else when it was stored: what time words and recency look at."""
        return self.occurred_at or self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePlace:
    """Where the archive keeps a memory: a line of a part of a file, and what it has to read like.

    Attributes:
        at: Where the part begins, in bytes.
        line: Which line of the part, from 0.
        sha256: Of the line, without its end; hexadecimal.
    """

    file: str
    at: int
    line: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A memory with what the store keeps beside it.

    Attributes:
        nseq: Number of the last change of any kind, dense within the namespace.
        vector_nseq: Number of the last change of what the vector index holds.
        keyword_nseq: Number of the last change of what the keyword index holds.
        dedup_hash: The content hash if it has to be unique among live rows, else ``None``.
        extra: Tokens of tags, source path and metadata strings, joined by blanks.
        chunk_high: Most chunks that the memory ever had.
        archive: Where the whole text and the old versions of a cold memory are kept.
    """

    memory: Memory
    ns_id: int
    state: State
    nseq: int
    vector_nseq: int
    keyword_nseq: int
    content_hash: bytes
    dedup_hash: bytes | None = None
    extra: str = ""
    chunk_high: int = 1
    archive: ArchivePlace | None = None


class Verdict(enum.StrEnum):
    """What the brain decides about a new memory: store it, keep the old one, change it, refuse."""

    ADD = "add"
    SKIP = "skip"
    UPDATE = "update"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDecision:
    """The verdict on one new memory; ``target`` is the old row for all but ``ADD``."""

    verdict: Verdict
    target: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What became of one item: its id and version, or why it failed.

    ``stores`` says for each store whether the item is there yet: ``written``, ``pending`` (the
    index follows; searches see the item all the same) or ``none``.
    """

    status: Status
    id: MemoryId | None = None
    version: int | None = None
    error: str | None = None
    stores: Mapping[str, str] = field(default_factory=dict)
