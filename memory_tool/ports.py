"""The ports: what the paths and jobs need from the world. Each docstring is the contract.

Rules that hold for every port: scores point upwards (higher is better); a miss is an empty result,
never ``None`` and never an error; adapters translate their driver's errors into
:class:`~memory_tool.errors.Unavailable` or another error of the house and never retry; every method
is safe to call from several threads.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from memory_tool.model import EmbeddingSpace, Memory, MemoryId, StoredRow, Vector, WriteResult
from memory_tool.port_values import (
    ChunkTokens,
    Commit,
    KeywordQuery,
    Opening,
    OverlayRow,
    PageRequest,
    Pointer,
    ReadView,
    RowKey,
    StoredVectors,
)
from memory_tool.query import Candidate, Filter, Outline
from memory_tool.scope import Scope


class Embedder(Protocol):
    """Turns texts into unit vectors of one embedding space."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of every vector that this embedder makes."""
        ...

    @property
    def max_tokens(self) -> int:
        """Most content tokens of one passage: longer ones would be cut by the model."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """One row for each text, shape (len(texts), dimension), float32, unit length.

        Raises:
            Unavailable: The model can't be reached or failed.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, with the query prefix of the model."""
        ...

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Character offsets (start, stop) of each token of ``text`` without special tokens."""
        ...


class RecordStore(Protocol):
    """The truth: writes, and the door to consistent reads."""

    def commit(self, commit: Commit) -> tuple[WriteResult, ...]:
        """Lock the namespace (made if new), call the plan on what is there, write, acknowledge.

        All or nothing. A committed answer survives a crash of client and server. A repetition
        under the same idempotency key returns the first answer without calling the plan.

        Raises:
            Unavailable: With ``outcome`` ``not_started`` or ``unknown``.
            IdempotencyConflict: The key was used for another request.
        """
        ...

    def view(self, scope: Scope, targets: Sequence[str]) -> "ReadView":
        """The namespaces of ``scope`` with their clocks, and the pointers of ``targets``.

        Raises:
            TooManyNamespaces: More than 1,000.
        """
        ...

    def snapshot(self, opening: "Opening") -> AbstractContextManager["Snapshot"]:
        """One repeatable-read view of the namespaces of ``opening``, until the block ends."""
        ...

    def close(self) -> None:
        """Give back connections that the store opened. May be called twice."""
        ...


class RecordSnapshot(Protocol):
    """One moment of the truth, seen through the namespaces that it was opened for.

    Expired, deleted and quarantined rows, and rows of other namespaces, are never returned except
    where ``overlay`` says that a row is gone. A key with the wrong namespace is a miss.
    """

    @property
    def missing_marks(self) -> frozenset[str]:
        """Targets whose mark the truth does not know: their index comes from another history."""
        ...

    @property
    def space(self) -> int | None:
        """The number of the space that all vectors here are of; ``None`` until one is recorded."""
        ...

    @property
    def clocks(self) -> Mapping[int, int]:
        """The clock of each namespace at this moment."""
        ...

    @property
    def overlay(self) -> tuple[OverlayRow, ...] | None:
        """Rows above ``since``, in order of their numbers; ``None`` when there are too many."""
        ...

    @property
    def undelivered(self) -> Mapping[str, tuple[OverlayRow, ...]] | None:
        """For each target of ``letters_of``, the rows that it can't take, as they are now.

        ``None`` when there are too many.
        """
        ...

    def outlines(self, keys: Sequence[RowKey], condition: Filter) -> Mapping[MemoryId, Outline]:
        """The light columns of those rows that may be seen and meet the condition."""
        ...

    def rows(self, keys: Sequence[RowKey]) -> Mapping[MemoryId, StoredRow]:
        """Those rows that may be seen, whole."""
        ...

    def matching_keys(self, condition: Filter, limit: int) -> frozenset[RowKey] | None:
        """The rows that meet the condition; ``None`` when there are more than ``limit``."""
        ...

    def vectors(self, keys: Sequence[RowKey] | None, limit: int) -> StoredVectors | None:
        """Embeddings of these rows (``None``: of all); ``None`` when more than ``limit``."""
        ...


class TokenSearch(Protocol):
    """Keyword search on stored tokens, for when the keyword index can't answer.

    Another ability of a snapshot; every adapter of this house has it.
    """

    def chunks_with(self, terms: Sequence[str], limit: int) -> tuple[ChunkTokens, ...]:
        """Chunks with at least one of the terms among their words, bigrams or extra words."""
        ...

    @property
    def lowered(self) -> int:
        """How many memories that may be seen are warm or cold: no keyword index holds their words.

        About so many: expired ones are counted until they are deleted. 0 is exact.
        """
        ...

    def lower_chunks_with(
        self, terms: Sequence[str], limit: int, *, within: frozenset[MemoryId] | None
    ) -> tuple[ChunkTokens, ...]:
        """Like :meth:`chunks_with`, of warm and cold memories only; ``within`` keeps to these."""
        ...

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """How many chunks hold each term, as counted last; the key ``""`` counts all chunks."""
        ...


class Snapshot(RecordSnapshot, TokenSearch, Protocol):
    """What :meth:`RecordStore.snapshot` opens: reading and searching one moment of the truth."""


@runtime_checkable
class RecordReader(Protocol):
    """Reading without searching. Every method sees only what its scope covers."""

    def fetch(self, scope: Scope, ids: Sequence[MemoryId]) -> Mapping[MemoryId, StoredRow]:
        """The live rows of these ids; others are left out."""
        ...

    def page(self, scope: Scope, request: PageRequest) -> tuple[StoredRow, ...]:
        """Live rows that meet the condition, at most ``limit``."""
        ...

    def history(self, scope: Scope, memory_id: MemoryId) -> tuple[Memory, ...]:
        """Old versions that are kept and the current one, oldest first; empty when unknown."""
        ...

    def deleted(self, scope: Scope, ids: Sequence[MemoryId]) -> frozenset[MemoryId]:
        """Those of these ids that were deleted and are still remembered as such."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Figures without content: ``namespaces``, ``memories``."""
        ...


@runtime_checkable
class SpaceRegistry(Protocol):
    """Which embedding space the store's vectors are in."""

    def active_space(self) -> EmbeddingSpace | None:
        """The recorded space, or ``None`` in a store without vectors."""
        ...

    def record_space(self, space: EmbeddingSpace) -> EmbeddingSpace:
        """Record ``space`` if none is, and return the recorded one."""
        ...


class VectorView(Protocol):
    """One generation of a vector index; may be searched from several threads."""

    @property
    def remote(self) -> bool:
        """Whether a server answers, as late as the network likes.

        Then what another arm found is compared by the vectors of the truth, which is asked anyway,
        and not by another request to the server.
        """
        ...

    @property
    def mark(self) -> str | None:
        """The mark of the history it was built from; ``None`` for an empty index."""
        ...

    def clock(self, ns_id: int) -> int:
        """The number up to which it holds the namespace; 0 when it never saw it."""
        ...

    def search(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """The ``depth`` chunks nearest to ``vector`` (inner product), best first.

        ``within`` keeps to these memories, exactly, however few they are. Rows that were replaced
        or deleted since the generation was built may be among the candidates: their version tells.
        """
        ...

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """The inner product of every chunk of these (ns_id, memory) that the generation holds."""
        ...


class VectorIndex(Protocol):
    """The copy that is searched by meaning."""

    @property
    def target(self) -> str:
        """The name under which the store keeps its pointer and progress."""
        ...

    def view(self, pointer: Pointer | None) -> VectorView:
        """The generation that the pointer names, loaded on first use; an empty one for ``None``.

        Raises:
            Corrupt: A file is missing, damaged, of another store or another embedding space.
        """
        ...

    def close(self) -> None:
        """Let go of files and memory. May be called twice."""
        ...


class KeywordView(Protocol):
    """What the opened searcher of a keyword index sees: all that it says, or more."""

    @property
    def remote(self) -> bool:
        """Whether a server answers: as late as the network likes, and it may refuse rows."""
        ...

    @property
    def mark(self) -> str | None:
        """The mark of the history it follows; ``None`` for an empty index."""
        ...

    def clock(self, ns_id: int) -> int:
        """The number up to which its searcher sees the namespace; 0 when it never saw it."""
        ...

    def search(
        self,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """The ``depth`` best chunks by BM25 over words, bigrams and extra words, best first."""
        ...

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """How many chunks hold each term in a field; the key ``""`` counts all chunks."""
        ...


@runtime_checkable
class JointSearch(Protocol):
    """Another ability of a vector view: it takes a keyword search along in one request."""

    def joins(self, keyword: KeywordView) -> bool:
        """Whether that view is of the same server."""
        ...

    def search_both(
        self,
        vector: Vector,
        keyword: KeywordView,
        *,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        depth: int,
        within: frozenset[MemoryId] | None,
    ) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
        """The candidates of both arms: nearest chunks, and chunks with the words."""
        ...


class KeywordIndex(Protocol):
    """The copy that is searched by words."""

    @property
    def target(self) -> str:
        """The name under which the store keeps its progress."""
        ...

    def view(self, pointer: Pointer | None = None) -> KeywordView:
        """What can be seen now; reloads when another process committed.

        An index on a server is the one that the pointer names; a folder knows by itself.

        Raises:
            Corrupt: The index is missing or damaged.
            Unavailable: The index can't be reached.
        """
        ...

    def close(self) -> None:
        """Let go of files and threads. May be called twice."""
        ...


@runtime_checkable
class Identified(Protocol):
    """A store that tells who it is."""

    def identity(self) -> str:
        """What tells it from every other: 32 hexadecimal digits."""
        ...
