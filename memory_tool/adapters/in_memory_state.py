"""A truth in memory: one immutable state, replaced as a whole by every write."""

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from memory_tool.generations import KeptGeneration
from memory_tool.model import (
    Chunk,
    EmbeddingSpace,
    Memory,
    MemoryId,
    State,
    StoredRow,
    Tier,
    WriteResult,
)
from memory_tool.port_values import Pointer
from memory_tool.scope import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The answer that was given under an idempotency key, and to which request."""

    request_hash: bytes
    results: tuple[WriteResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """All that is known of one namespace.

    Attributes:
        purged: The highest number whose deleted row was forgotten.
        versions: Old images of memories, oldest first.
    """

    ns_id: int
    namespace: Namespace
    nseq: int = 0
    stamp: int = 0
    purged: int = 0
    rows: Mapping[MemoryId, StoredRow] = field(default_factory=dict)
    chunks: Mapping[MemoryId, tuple[Chunk, ...]] = field(default_factory=dict)
    versions: Mapping[MemoryId, tuple[Memory, ...]] = field(default_factory=dict)
    receipts: Mapping[str, Receipt] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """A moment of the whole store. Nothing that it holds is ever changed.

    Attributes:
        letters: For each target the version of each row, by namespace and id, that it can't take.
    """

    namespaces: Mapping[int, NamespaceState] = field(default_factory=dict)
    numbers: Mapping[Namespace, int] = field(default_factory=dict)
    marks: frozenset[tuple[str, str]] = frozenset()
    pointers: Mapping[str, Pointer] = field(default_factory=dict)
    progress: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    letters: Mapping[str, Mapping[tuple[int, MemoryId], int]] = field(default_factory=dict)
    generations: tuple[KeptGeneration, ...] = ()
    space: EmbeddingSpace | None = None
    term_documents: Mapping[str, int] = field(default_factory=dict)


class InMemoryStore:
    """What the adapters of one truth share. Thread safe.

    Attributes:
        lock: Held by whoever replaces :attr:`state`.
        state: The current moment.
        identity: What tells this store from every other: 32 hexadecimal digits.
        incarnation: Changes when the store went back to an older moment.
    """

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Start empty; ``clock`` tells the store's time."""
        self.lock = threading.RLock()
        self.state = StoreState()
        self.identity = secrets.token_hex(16)
        self.incarnation = secrets.token_hex(8)
        self._clock = clock
        self._last_number = 0

    def now(self) -> datetime:
        """The store's clock."""
        return self._clock()

    def new_number(self) -> int:
        """The number of a new namespace."""
        with self.lock:
            self._last_number += 1
            return self._last_number

    def dump(self) -> StoreState:
        """A backup of this moment."""
        return self.state

    def restore(self, dump: StoreState) -> None:
        """Go back to the moment of a backup, as if a server had been restored from it."""
        with self.lock:
            self.state = dump
            self._last_number = max(dump.namespaces, default=0)
            self.incarnation = secrets.token_hex(8)


def is_held(row: StoredRow, kind: Literal["vector", "keyword"]) -> bool:
    """Whether an index of that kind has to hold the row: words of hot memories only."""
    return row.state is State.LIVE and (kind == "vector" or row.memory.tier is Tier.HOT)


def is_visible(row: StoredRow, now: datetime) -> bool:
    """Whether a read may see the row."""
    expires_at = row.memory.expires_at
    return row.state is State.LIVE and (expires_at is None or expires_at > now)
