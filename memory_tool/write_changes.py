"""What a caller wants changed, with everything that was computed before the transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory_tool.model import (
    ArchivePlace,
    Chunk,
    Memory,
    MemoryId,
    MemoryType,
    NewMemory,
    Patch,
    StoredRow,
    Tier,
    WriteDecision,
)
from memory_tool.port_values import ChunkWords

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
