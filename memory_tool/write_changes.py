"""What a caller wants changed, with everything that was computed before the transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from memory_tool.model import (
    ArchivePlace,
    Chunk,
    Memory,
    MemoryId,
    MemoryType,
    NewMemory,
    Patch,
    State,
    StoredRow,
    Tier,
    Vector,
    WriteDecision,
)
from memory_tool.port_values import Attached, ChunkWords

Decide: TypeAlias = Callable[[NewMemory, Sequence[StoredRow]], WriteDecision]
"""The brain's rule for one new memory, given the live rows with its key or its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A new memory with everything that was computed before the transaction.

    ``dedup_hash`` is the content hash where it has to be unique, else ``None``.
    """

    memory_id: MemoryId
    new: NewMemory
    type: MemoryType
    content_hash: bytes
    dedup_hash: bytes | None
    extra: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a memory was where it was kept before.

    ``memory_id`` is ``None`` where it had no id like ours.
    """

    memory_id: MemoryId | None
    created_at: datetime
    updated_at: datetime
    version: int = 1
    verified_at: datetime | None = None
    state: State = State.LIVE
    attached: Attached = field(default_factory=Attached)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A chunk as it was cut elsewhere: ``content[start:stop]`` with its vector of unit length."""

    start: int
    stop: int
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A memory on its way in from elsewhere, before anything was computed.

    Attributes:
        parts: Its chunks, if they came with vectors.
        space: Name of the space of these vectors; in another one than the store's they are of no
            use, and the text is cut and embedded anew.
    """

    new: NewMemory
    kept: Kept
    parts: tuple[Part, ...] = ()
    space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(Put):
    """A memory that was kept elsewhere: what it was there stays, but for its numbers.

    The same again, under its id in the same version, changes nothing; another version fails.
    """

    kept: Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """A patch of one memory. ``chunks`` and ``content_hash`` are there when the text changes."""

    memory_id: MemoryId
    patch: Patch
    expected_version: int | None = None
    content_hash: bytes | None = None
    chunks: tuple[Chunk, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """A deletion of one memory."""

    memory_id: MemoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The vectors that a memory lacks, if it still says the text with this hash."""

    memory_id: MemoryId
    content_hash: bytes
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A memory goes to another tier, if it still is as it was read: with the number ``nseq``.

    Attributes:
        summary: Stands for the text in the cold tier; ``None`` where the text stays, or returns.
        tokens: Those of the summary, for each chunk.
        archive: Where the whole text is kept, in the cold tier.
    """

    memory_id: MemoryId
    tier: Tier
    nseq: int
    summary: str | None = None
    tokens: tuple[ChunkWords, ...] = ()
    archive: ArchivePlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """A memory that expired is deleted, unless it was given more time."""

    memory_id: MemoryId


Change: TypeAlias = Put | Revise | Remove | Complete | Move | Retire
Extra: TypeAlias = Callable[[Memory], str]
"""Tokens of what stands beside the text of a memory: tags, source path, metadata strings."""
