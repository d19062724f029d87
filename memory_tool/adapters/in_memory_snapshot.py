"""One moment of a truth in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

import numpy as np

from memory_tool.adapters.in_memory_state import NamespaceState, StoreState, is_visible
from memory_tool.filters import matches
from memory_tool.model import MemoryId, StoredRow, Tier
from memory_tool.port_values import ChunkTokens, Opening, OverlayRow, RowKey, StoredVectors
from memory_tool.ports import Snapshot
from memory_tool.query import EVERYTHING, Candidate, Filter, Outline
from memory_tool.space_values import FIRST_SPACE


class InMemorySnapshot(Snapshot):
    """See :class:`memory_tool.ports.RecordSnapshot` and :class:`memory_tool.ports.TokenSearch`."""

    def __init__(self, state: StoreState, now: datetime, opening: Opening) -> None:
        self._now = now
        self._spaces = [
            state.namespaces[ns_id] for ns_id in opening.namespaces if ns_id in state.namespaces
        ]
        self._term_documents = state.term_documents
        self._space = FIRST_SPACE if state.space else None
        self._missing = frozenset(
            target for target, mark in opening.marks if (target, mark) not in state.marks
        )
        self._overlay = self._read_overlay(opening)
        self._undelivered = {
            target: tuple(self._refused(state.letters.get(target, {})))
            for target in opening.letters_of
        }

    @property
    def missing_marks(self) -> frozenset[str]:
        """See :attr:`memory_tool.ports.RecordSnapshot.missing_marks`."""
        return self._missing

    @property
    def space(self) -> int | None:
        """See :attr:`memory_tool.ports.RecordSnapshot.space`."""
        return self._space

    @property
    def clocks(self) -> Mapping[int, int]:
        """See :attr:`memory_tool.ports.RecordSnapshot.clocks`."""
        return {space.ns_id: space.nseq for space in self._spaces}

    @property
    def overlay(self) -> tuple[OverlayRow, ...] | None:
        """See :attr:`memory_tool.ports.RecordSnapshot.overlay`."""
        return self._overlay

    @property
    def undelivered(self) -> Mapping[str, tuple[OverlayRow, ...]]:
        """See :attr:`memory_tool.ports.RecordSnapshot.undelivered`."""
        return self._undelivered

    def outlines(self, keys: Sequence[RowKey], condition: Filter) -> Mapping[MemoryId, Outline]:
        """See :meth:`memory_tool.ports.RecordSnapshot.outlines`."""
        return {row.memory.id: _outline(row) for row in self._seen(keys, condition)}

    def rows(self, keys: Sequence[RowKey]) -> Mapping[MemoryId, StoredRow]:
        """See :meth:`memory_tool.ports.RecordSnapshot.rows`."""
        return {row.memory.id: row for row in self._seen(keys)}

    def matching_keys(self, condition: Filter, limit: int) -> frozenset[RowKey] | None:
        """See :meth:`memory_tool.ports.RecordSnapshot.matching_keys`."""
        found = frozenset((row.ns_id, row.memory.id) for row in self._seen(None, condition))
        return None if len(found) > limit else found

    def vectors(self, keys: Sequence[RowKey] | None, limit: int) -> StoredVectors | None:
        """See :meth:`memory_tool.ports.RecordSnapshot.vectors`."""
        references: list[Candidate] = []
        vectors = []
        for space in self._spaces:
            for row in self._seen_in(space, keys):
                for chunk in space.chunks.get(row.memory.id, ()):
                    if chunk.embedding is not None:
                        key = (space.ns_id, row.memory.id, chunk.ordinal, row.vector_nseq)
                        references.append(Candidate(*key, score=0.0))
                        vectors.append(chunk.embedding)
        if len(references) > limit:
            return None
        stacked = np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
        return StoredVectors(references=tuple(references), vectors=stacked)

    def chunks_with(self, terms: Sequence[str], limit: int) -> tuple[ChunkTokens, ...]:
        """See :meth:`memory_tool.ports.TokenSearch.chunks_with`."""
        rows = (row for space in self._spaces for row in self._seen_in(space))
        return self._with_terms(rows, terms, limit=limit)

    @property
    def lowered(self) -> int:
        """See :attr:`memory_tool.ports.TokenSearch.lowered`."""
        return sum(1 for _ in self._lower())

    def lower_chunks_with(
        self, terms: Sequence[str], limit: int, *, within: frozenset[MemoryId] | None
    ) -> tuple[ChunkTokens, ...]:
        """See :meth:`memory_tool.ports.TokenSearch.lower_chunks_with`."""
        rows = (row for row in self._lower() if within is None or row.memory.id in within)
        return self._with_terms(rows, terms, limit=limit)

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.TokenSearch.term_documents`."""
        wanted = {*terms, ""}
        return {term: count for term, count in self._term_documents.items() if term in wanted}

    def _lower(self) -> Iterator[StoredRow]:
        for space in self._spaces:
            yield from (row for row in self._seen_in(space) if row.memory.tier is not Tier.HOT)

    def _with_terms(
        self, rows: Iterable[StoredRow], terms: Sequence[str], *, limit: int
    ) -> tuple[ChunkTokens, ...]:
        wanted = set(terms)
        spaces = {space.ns_id: space for space in self._spaces}
        found = (
            tokens
            for row in rows
            for tokens in _tokens(spaces[row.ns_id], row)
            if wanted.intersection(
                tokens.words.split() + tokens.bigrams.split() + tokens.extra.split()
            )
        )
        return tuple(islice(found, limit))

    def _seen(
        self, keys: Sequence[RowKey] | None, condition: Filter = EVERYTHING
    ) -> Iterator[StoredRow]:
        for space in self._spaces:
            for row in self._seen_in(space, keys):
                if matches(condition, row):
                    yield row

    def _seen_in(
        self, space: NamespaceState, keys: Sequence[RowKey] | None = None
    ) -> Iterator[StoredRow]:
        if keys is None:
            ids = list(space.rows)
        else:
            ids = [memory_id for ns_id, memory_id in dict.fromkeys(keys) if ns_id == space.ns_id]
        for memory_id in ids:
            row = space.rows.get(memory_id)
            if row is not None and is_visible(row, self._now):
                yield row

    def _refused(self, letters: Mapping[tuple[int, MemoryId], int]) -> Iterator[OverlayRow]:
        for space in self._spaces:
            for row in self._seen_in(space):
                version = letters.get((space.ns_id, row.memory.id))
                if version in (row.vector_nseq, row.keyword_nseq):
                    yield self._overlay_row(space, row)

    def _read_overlay(self, opening: Opening) -> tuple[OverlayRow, ...] | None:
        spaces = [space for space in self._spaces if space.ns_id in opening.since]
        above = sum(max(0, space.nseq - opening.since[space.ns_id]) for space in spaces)
        if above > opening.overlay_limit:
            return None
        return tuple(
            self._overlay_row(space, row)
            for space in spaces
            for row in changed_above(space, opening.since[space.ns_id])
        )

    def _overlay_row(self, space: NamespaceState, row: StoredRow) -> OverlayRow:
        live = is_visible(row, self._now)
        return OverlayRow(
            ns_id=space.ns_id,
            memory_id=row.memory.id,
            nseq=row.nseq,
            vector_nseq=row.vector_nseq,
            keyword_nseq=row.keyword_nseq,
            live=live,
            extra=row.extra,
            chunks=space.chunks.get(row.memory.id, ()) if live else (),
        )


def changed_above(space: NamespaceState, number: int) -> list[StoredRow]:
    """The rows of a namespace with a number above this one, in their order."""
    changed = (row for row in space.rows.values() if row.nseq > number)
    return sorted(changed, key=lambda row: row.nseq)


def _outline(row: StoredRow) -> Outline:
    memory = row.memory
    return Outline(
        id=memory.id,
        ns_id=row.ns_id,
        vector_nseq=row.vector_nseq,
        keyword_nseq=row.keyword_nseq,
        content_hash=row.content_hash,
        type=memory.type,
        importance=memory.importance,
        pinned=memory.pinned,
        confidence=memory.confidence,
        event_time=memory.event_time.timestamp(),
        tokens=len(memory.content.encode()) // 4,
        conversation_id=memory.turn.conversation_id if memory.turn else None,
        position=memory.turn.position if memory.turn else 0,
    )


def _tokens(space: NamespaceState, row: StoredRow) -> Iterator[ChunkTokens]:
    for chunk in space.chunks.get(row.memory.id, ()):
        yield ChunkTokens(
            ns_id=space.ns_id,
            memory_id=row.memory.id,
            ordinal=chunk.ordinal,
            keyword_nseq=row.keyword_nseq,
            words=chunk.words,
            bigrams=chunk.bigrams,
            extra=row.extra,
        )
