"""What crosses the ports: requests, images of rows, clocks, batches."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from memory_tool.model import (
    ArchivePlace,
    Chunk,
    EmbeddingSpace,
    Json,
    Memory,
    MemoryId,
    StoredRow,
    Vector,
    WriteResult,
)
from memory_tool.query import Candidate, Filter
from memory_tool.scope import Namespace

RowKey: TypeAlias = tuple[int, MemoryId]
"""Where a row is kept: the number of its namespace, and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Which live rows a plan has to see: those with one of these hashes, keys or ids."""

    dedup_hashes: tuple[bytes, ...] = ()
    keys: tuple[str, ...] = ()
    ids: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkWords:
    """The tokens of one chunk, joined by one blank."""

    ordinal: int
    words: str
    bigrams: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A row with its whole text, and what came with it from the archive.

    ``versions`` are images of the old versions, oldest first, as the store keeps them.
    """

    row: StoredRow
    tokens: tuple[ChunkWords, ...] = ()
    versions: tuple[Mapping[str, Json], ...] = ()


def _as_it_is(row: StoredRow) -> Loaded:
    return Loaded(row=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """What a plan is made from, read under the namespace's lock.

    Attributes:
        ns_id: The number of the namespace.
        nseq: The last number given out; the plan gives out the next ones without a gap.
        now: The store's clock.
        rows: The rows that the lookup names, live or quarantined, also expired ones.
        whole: Loads what the archive keeps of a row; raises Corrupt or Unavailable where it can't.
        space: The number of the active embedding space; ``None`` until one is recorded.
    """

    ns_id: int
    nseq: int
    now: datetime
    rows: tuple[StoredRow, ...]
    whole: Callable[[StoredRow], Loaded] = _as_it_is
    space: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What is kept beside the row of a memory.

    Attributes:
        versions: What it said before, oldest first.
        relations: Edges to other memories: kind, to, properties, created_at.
        reviews: What somebody has to decide, or decided: kind, proposal, created_at, decided_at.
    """

    versions: tuple[Memory, ...] = ()
    relations: tuple[Mapping[str, Json], ...] = ()
    reviews: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row as it shall be. ``row.nseq`` is its new number.

    Attributes:
        action: Word for the audit: add, update, delete, expire, tier.
        row: The new image of the row.
        chunks: The chunks that replace the old ones, or ``None`` to keep them.
        previous: The image that this one replaces, to be kept as an old version, or ``None``.
        attached: What comes with a new row that was kept elsewhere.
        tokens: Replace the tokens of chunks that are kept, when a text gives way to its summary.
        loaded: What comes back from the archive before the row is changed.
    """

    action: str
    row: StoredRow
    chunks: tuple[Chunk, ...] | None
    previous: StoredRow | None = None
    attached: Attached | None = None
    tokens: tuple[ChunkWords, ...] = ()
    loaded: Loaded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What a commit does: at most one change for each row, in the order of their numbers."""

    changes: tuple[RowChange, ...]
    results: tuple[WriteResult, ...]


Planner: TypeAlias = Callable[[Existing], WritePlan]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFile:
    """A file of the archive: what it is called, what it weighs, and where each memory stands."""

    name: str
    ns_id: int
    sha256: str
    size: int
    places: Mapping[MemoryId, ArchivePlace]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One transaction of one namespace.

    ``idempotency_key`` makes a repetition return the first answer; ``request_hash`` (32 bytes)
    tells a repetition from another request under the same key. ``space`` names the space that the
    vectors of the plan are of (``None``: the active one, whichever it is); should another one be
    active by then, they are not stored, and made later. ``archived`` is the file that the plan's
    rows move to: the store knows of it from this commit on.
    """

    namespace: Namespace
    lookup: Lookup
    plan: Planner
    idempotency_key: str
    request_hash: bytes
    space: str | None = None
    archived: ArchiveFile | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceClock:
    """A namespace with its number, the last number it gave out, and the stamp of that moment."""

    ns_id: int
    namespace: Namespace
    nseq: int
    stamp: int


NO_POINTER: Final = ""
"""The mark of what a target reads before anything was published for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """Which generation of a target is to be read.

    ``locator`` tells this build of the generation from any other: the SHA-256 of a manifest (hex),
    or the name of an index on a server. ``mark`` is that of the history it was built from.
    """

    target: str
    generation: int
    locator: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadView:
    """What a search starts from.

    ``incarnation`` changes when the store is another one than before (restored, restarted): what
    was remembered of it may then describe another history. ``space`` is the number of the active
    embedding space, ``None`` until one is recorded.
    """

    namespaces: tuple[NamespaceClock, ...]
    pointers: Mapping[str, Pointer]
    incarnation: str
    now: datetime
    space: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a snapshot reads first, in one round trip.

    Attributes:
        namespaces: The namespaces that the snapshot may see, by number; never empty.
        marks: (target, mark) of the indexes that were searched.
        letters_of: Targets whose dead letters are wanted.
        since: For each namespace the number above which changed rows are wanted.
        overlay_limit: Most changed rows to read; 0 reads none.
    """

    namespaces: Mapping[int, Namespace]
    marks: tuple[tuple[str, str], ...] = ()
    letters_of: tuple[str, ...] = ()
    since: Mapping[int, int] = field(default_factory=dict)
    overlay_limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayRow:
    """A row changed since an index was built: its numbers and, while it is live, its chunks.

    ``extra`` is what the keyword index holds beside the text: tags, source and metadata strings,
    tokenised and joined by blanks.
    """

    ns_id: int
    memory_id: MemoryId
    nseq: int
    vector_nseq: int
    keyword_nseq: int
    live: bool
    extra: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTokens:
    """The stored tokens of one chunk, for keyword search without a keyword index."""

    ns_id: int
    memory_id: MemoryId
    ordinal: int
    keyword_nseq: int
    words: str
    bigrams: str
    extra: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVectors:
    """Stored embeddings: ``vectors`` has one row for each reference, shape (count, dimension)."""

    references: tuple[Candidate, ...]
    vectors: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page of a listing: newest event time first, then by id.

    ``after`` is the (event time, id) of the last item that was seen.
    """

    condition: Filter
    limit: int
    after: tuple[datetime, MemoryId] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuery:
    """The tokens of a question, each once; they are OR-ed."""

    words: tuple[str, ...]
    bigrams: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBase:
    """Where a target stands: its mark, and the number up to which it holds each namespace."""

    mark: str | None
    clocks: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A row as a target has to hold it. Without ``live`` it has to go from the target.

    ``version`` is the target's own number: ``vector_nseq`` or ``keyword_nseq``. ``chunk_high`` is
    the most chunks that the row ever had: those above its present ones have to go as well.
    """

    ns_id: int
    memory_id: MemoryId
    nseq: int
    version: int
    live: bool
    extra: str
    chunk_high: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBatch:
    """Rows to apply, with the clocks that hold afterwards and the mark to carry.

    Attributes:
        rows: Each changed row once, ordered by (ns_id, nseq); may be read once only.
        clocks: The clock of every namespace that the batch brings forward.
        mark: New and random, already known to the truth.
        base_mark: The mark of the base that the batch builds upon.
        space: The embedding space of the vectors, ``None`` while no vector is stored.
        store: Identity of the store, to be written into the target.
    """

    rows: Iterator[ChangeRow]
    clocks: Mapping[int, int]
    mark: str
    base_mark: str | None
    space: EmbeddingSpace | None
    store: str


class ForeignHistory(Exception):
    """The target's base comes from another history than the truth's: rebuild it.

    A fact that appliers act upon, so it is none of the errors that callers see.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A row, in one version, that a target can never take. Searches read it from the truth."""

    ns_id: int
    memory_id: MemoryId
    version: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a target is behind the truth: numbers not applied, and the age of the oldest."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long changes may wait: a target applies at ``rows`` pending or after ``seconds``.

    ``batch`` is about the most rows that it takes at once: a batch that breaks off starts again.
    """

    rows: int
    seconds: float
    batch: int = 10_000
