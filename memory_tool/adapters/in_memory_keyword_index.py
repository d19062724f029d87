"""A keyword index in memory: all tokens, ranked by BM25 at each search."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from memory_tool.bm25 import FIELDS, CorpusStatistics, best
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import MemoryId
from memory_tool.port_values import (
    ChangeBatch,
    ChangeRow,
    ChunkTokens,
    KeywordQuery,
    Patience,
    Pointer,
    TargetBase,
)
from memory_tool.ports import KeywordIndex, KeywordView
from memory_tool.query import Candidate

PATIENCE: Final = Patience(rows=50, seconds=0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordState:
    """What one batch left. Nothing that it holds is ever changed."""

    mark: str | None = None
    store: str = ""
    clocks: Mapping[int, int] = field(default_factory=dict)
    chunks: Mapping[tuple[int, MemoryId], tuple[ChunkTokens, ...]] = field(default_factory=dict)


EMPTY: Final = KeywordState()


class InMemoryKeywordFolder:
    """What an index and its target share, as a data folder would keep it."""

    def __init__(self) -> None:
        self.state = EMPTY

    def dump(self) -> KeywordState:
        """A backup of this moment."""
        return self.state

    def restore(self, dump: KeywordState) -> None:
        """Go back to the moment of a backup; ``EMPTY`` loses the folder."""
        self.state = dump


class InMemoryKeywordIndex(KeywordIndex):
    """See :class:`memory_tool.ports.KeywordIndex`."""

    def __init__(self, folder: InMemoryKeywordFolder, *, target: str) -> None:
        self._folder = folder
        self._target = target

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.KeywordIndex.target`."""
        return self._target

    def view(self, pointer: Pointer | None = None) -> "InMemoryKeywordView":  # noqa: ARG002 - a folder knows by itself
        """See :meth:`memory_tool.ports.KeywordIndex.view`."""
        return InMemoryKeywordView(self._folder.state)

    def close(self) -> None:
        """Nothing to let go of."""


class InMemoryKeywordView(KeywordView):
    """See :class:`memory_tool.ports.KeywordView`."""

    def __init__(self, state: KeywordState) -> None:
        self._state = state

    @property
    def remote(self) -> bool:
        """No."""
        return False

    @property
    def mark(self) -> str | None:
        """See :attr:`memory_tool.ports.KeywordView.mark`."""
        return self._state.mark

    def clock(self, ns_id: int) -> int:
        """See :meth:`memory_tool.ports.KeywordView.clock`."""
        return self._state.clocks.get(ns_id, 0)

    def search(
        self,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.KeywordView.search`."""
        everything = list(self._documents())
        wanted = set(ns_ids)
        among = [
            document
            for document in everything
            if document.ns_id in wanted and (within is None or document.memory_id in within)
        ]
        # How rare a word is, is counted over all namespaces, as a real index does.
        return best(
            query, among, statistics=CorpusStatistics.counted(query, everything), depth=depth
        )

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.KeywordView.term_documents`."""
        documents = list(self._documents())
        fields: list[Counter[str]] = [
            Counter(
                token
                for document in documents
                for token in set(getattr(document, name).split()).intersection(terms)
            )
            for name in FIELDS
        ]
        counts = {term: max(field[term] for field in fields) for term in terms}
        return {**counts, "": len(documents)}

    def _documents(self) -> Iterator[ChunkTokens]:
        for chunks in self._state.chunks.values():
            yield from chunks


class InMemoryKeywordTarget(IndexTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`."""

    def __init__(self, folder: InMemoryKeywordFolder, *, name: str) -> None:
        self._folder = folder
        self._name = name
        self._applying = threading.Lock()

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["keyword"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return "keyword"

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        return PATIENCE

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        state = self._folder.state
        return TargetBase(mark=state.mark, clocks=state.clocks)

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        self._folder.state = EMPTY

    def close(self) -> None:
        """Nothing is held between two batches."""

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.apply`.

        Raises:
            Corrupt: The index belongs to another store.
            Unavailable: The index is no longer the base of the batch.
        """
        with self._applying:
            self._folder.state = _applied(self._folder.state, batch)
        log.note_progress(self._name, batch.clocks)


def _applied(base: KeywordState, batch: ChangeBatch) -> KeywordState:
    """The state after ``base`` that holds the batch."""
    if base.mark is not None and base.store != batch.store:
        message = f"the index belongs to the store {base.store}, not to {batch.store}"
        raise Corrupt(message)
    # A batch may come twice: then the index stands on its mark already.
    if base.mark not in (batch.base_mark, batch.mark):
        message = "the index moved on since the batch was read"
        raise Unavailable(message, store="memory")
    chunks = dict(base.chunks)
    for row in batch.rows:
        chunks.pop((row.ns_id, row.memory_id), None)
        tokens = tuple(_tokens(row)) if row.live else ()
        if tokens:
            chunks[row.ns_id, row.memory_id] = tokens
    return KeywordState(
        mark=batch.mark,
        store=batch.store,
        clocks={**base.clocks, **batch.clocks},
        chunks=chunks,
    )


def _tokens(row: ChangeRow) -> Iterator[ChunkTokens]:
    """The documents of a row. One without any token would only make every word rarer."""
    for chunk in row.chunks:
        if chunk.words or chunk.bigrams or row.extra:
            yield ChunkTokens(
                ns_id=row.ns_id,
                memory_id=row.memory_id,
                ordinal=chunk.ordinal,
                keyword_nseq=row.version,
                words=chunk.words,
                bigrams=chunk.bigrams,
                extra=row.extra,
            )
