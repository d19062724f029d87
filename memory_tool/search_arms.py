"""The arms of one search: what each proposes, from its index or, without one, from the truth."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from memory_tool.bm25 import CorpusStatistics, FieldParameters, best
from memory_tool.errors import Corrupt, InputError, Unavailable
from memory_tool.fusion import best_first
from memory_tool.lower_tiers import look_lower
from memory_tool.model import MemoryId, Vector
from memory_tool.overlay import OverlayState
from memory_tool.port_values import ChunkTokens, KeywordQuery, Pointer, RowKey, StoredVectors
from memory_tool.ports import KeywordView, Snapshot, VectorView
from memory_tool.query import Arm, Candidate, Degradation

EXACT_VECTORS: Final = 20_000
"""Most vectors that are read from PostgreSQL for one search: 15 MB, a tenth of a second."""

FALLBACK_CHUNKS: Final = 5_000
"""Most chunks that are scored in Python for one search."""

States: TypeAlias = Mapping[int, OverlayState]
Similar: TypeAlias = Callable[[Sequence[tuple[int, MemoryId]]], Iterable[Candidate]]
"""Gives the similarity of chunks of named memories, to complete what another arm found."""


@dataclass(slots=True, kw_only=True)
class Opened:
    """The index views of one search, and why an arm has none; which generations it looked at."""

    pointers: Mapping[str, Pointer | None] = field(default_factory=dict)
    vector: VectorView | None = None
    keyword: KeywordView | None = None
    reasons: dict[Arm, str] = field(default_factory=dict)

    def fail(self, arm: Arm, reason: str) -> None:
        """Do without the arm's index in this search, however deep it goes on."""
        self.reasons.setdefault(arm, reason)
        if arm is Arm.VECTOR:
            self.vector = None
        else:
            self.keyword = None

    def views(self) -> Mapping[Arm, VectorView | KeywordView]:
        """The views that can be searched."""
        views = {Arm.VECTOR: self.vector, Arm.KEYWORD: self.keyword}
        return {arm: view for arm, view in views.items() if view is not None}

    def marks(self, targets: Mapping[Arm, str]) -> tuple[tuple[str, str], ...]:
        """(target, mark) of each view that carries one."""
        marks = {targets[arm]: view.mark for arm, view in self.views().items()}
        return tuple((target, mark) for target, mark in marks.items() if mark is not None)

    def remote(self, targets: Mapping[Arm, str]) -> tuple[str, ...]:
        """The targets that a server keeps, which may refuse rows."""
        return tuple(targets[arm] for arm, view in self.views().items() if view.remote)

    def strangers(self, missing: frozenset[str], targets: Mapping[Arm, str]) -> tuple[Arm, ...]:
        """Fail the arms whose mark the truth does not know, and name them."""
        found = tuple(arm for arm, target in targets.items() if target in missing)
        for arm in found:
            self.fail(arm, "the index comes from another history")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmAnswer:
    """What one arm proposes.

    Attributes:
        candidates: Chunks with scores of this arm; not yet checked against the truth.
        similar: Completes similarities; only the vector arm can.
        degraded: What was missing.
    """

    candidates: tuple[Candidate, ...]
    similar: Similar | None = None
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question as the arms take it.

    ``matching`` are the rows that the filter leaves, ``within`` their ids, which are all that an
    index is told; ``None`` where it has to be checked afterwards. ``limit`` hits are wanted of
    ``depth`` candidates.
    """

    ns_ids: tuple[int, ...]
    vector: Vector | None
    keywords: KeywordQuery
    matching: frozenset[RowKey] | None
    within: frozenset[MemoryId] | None
    depth: int
    wanted: tuple[Arm, ...]
    bm25: FieldParameters
    limit: int = 10

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Those of the strategy that have something to look for."""
        has = {Arm.VECTOR: self.vector is not None, Arm.KEYWORD: bool(self.terms)}
        return tuple(arm for arm in self.wanted if has[arm])

    @property
    def terms(self) -> tuple[str, ...]:
        """Every term, for look-ups by term."""
        return (*self.keywords.words, *self.keywords.bigrams)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newer:
    """What an index lacks, from the truth: rows above its clocks, and rows that it can't take."""

    states: States
    refused: States
    snapshot: Snapshot

    def above(self, clock: Callable[[int], int]) -> Iterable[tuple[OverlayState, int]]:
        """Each overlay with the number above which its rows count."""
        yield from ((state, clock(ns_id)) for ns_id, state in self.states.items())
        yield from ((state, -1) for state in self.refused.values())


def vector_answer(
    asked: Asked, view: VectorView, *, proposed: Sequence[Candidate], newer: Newer
) -> ArmAnswer:
    """The index's candidates, less what changed since, and what is newer than the index."""
    vector = asked.vector
    if vector is None:
        return ArmAnswer(candidates=())
    states = newer.states
    changed = _changed(states, view.clock, arm=Arm.VECTOR)
    kept = [found for found in proposed if found.memory_id not in changed]
    added = [
        found
        for state, above in newer.above(view.clock)
        for found in state.nearest(vector, above=above, depth=asked.depth, within=asked.within)
    ]

    def similar(ids: Sequence[tuple[int, MemoryId]]) -> Iterable[Candidate]:
        named = frozenset(memory_id for _, memory_id in ids)
        old = [pair for pair in ids if pair[1] not in changed]
        if view.remote:
            yield from _scored_by_truth(vector, set(old), snapshot=newer.snapshot)
        else:
            yield from view.scores(vector, old)
        for ns_id, state in states.items():
            wanted = named & changed.keys()
            if wanted:
                yield from state.nearest(
                    vector, above=view.clock(ns_id), depth=len(state.numbers), within=wanted
                )

    return ArmAnswer(candidates=_cut([*kept, *added], asked.depth), similar=similar)


def _scored_by_truth(
    vector: Vector, keys: AbstractSet[RowKey], *, snapshot: Snapshot
) -> list[Candidate]:
    """The exact inner product of every chunk of these memories, by their stored embeddings."""
    stored = snapshot.vectors(sorted(keys), EXACT_VECTORS) if keys else None
    return [] if stored is None else _inner_products(vector, stored)


def _inner_products(vector: Vector, stored: StoredVectors) -> list[Candidate]:
    # einsum, not BLAS: on a busy machine waiting for its threads costs more than the sum.
    scores = np.einsum("nd,d->n", stored.vectors, vector) if stored.references else ()
    return [
        Candidate(at.ns_id, at.memory_id, at.ordinal, at.version, float(score))
        for at, score in zip(stored.references, scores, strict=True)
    ]


def keyword_answer(
    asked: Asked, view: KeywordView, *, proposed: Sequence[Candidate], newer: Newer
) -> ArmAnswer:
    """The index's candidates, less what changed since, and BM25 over what the index lacks.

    That is what is newer, and what is warm or cold.
    """
    changed = _changed(newer.states, view.clock, arm=Arm.KEYWORD)
    kept = [found for found in proposed if found.memory_id not in changed]
    added = [
        tokens
        for state, above in newer.above(view.clock)
        for tokens in state.tokens_above(above, asked.within)
    ]
    lowered = newer.snapshot.lowered
    if not added and not lowered:
        return ArmAnswer(candidates=tuple(kept))
    try:
        counts = view.term_documents(asked.terms)
    except (Corrupt, InputError, Unavailable):
        # It answered a moment ago. How rare a word is, the truth knows as well.
        counts = newer.snapshot.term_documents(asked.terms)
    if not lowered:
        scored = _bm25(asked, added, counts=counts)
        return ArmAnswer(candidates=_cut([*kept, *scored], asked.depth))
    found = look_lower(
        asked.keywords, counts, snapshot=newer.snapshot, within=asked.within, known=added
    )
    scored = best(
        asked.keywords,
        [*added, *found.chunks],
        statistics=found.statistics,
        depth=asked.depth,
        parameters=asked.bm25,
    )
    candidates = _cut([*kept, *scored], asked.depth)
    least = candidates[asked.limit - 1].score if len(candidates) >= asked.limit else 0.0
    return ArmAnswer(candidates=candidates, degraded=found.missing(least, parameters=asked.bm25))


def vectors_from_truth(asked: Asked, snapshot: Snapshot, *, reason: str) -> ArmAnswer:
    """Exact search over stored embeddings, when the index can't answer."""
    vector = asked.vector
    if vector is None:
        return ArmAnswer(candidates=())
    keys = None if asked.matching is None else sorted(asked.matching)
    stored = snapshot.vectors(keys, EXACT_VECTORS)
    if stored is None:
        missing = Degradation(part="vector", reason=f"{reason}; too many vectors to read instead")
        return ArmAnswer(candidates=(), degraded=(missing,))
    found = _inner_products(vector, stored)
    by_memory: dict[MemoryId, list[Candidate]] = {}
    for candidate in found:
        by_memory.setdefault(candidate.memory_id, []).append(candidate)

    def similar(wanted: Sequence[tuple[int, MemoryId]]) -> Iterable[Candidate]:
        for _, memory_id in wanted:
            yield from by_memory.get(memory_id, ())

    note = Degradation(part="vector", reason=f"{reason}; exact search in PostgreSQL instead")
    return ArmAnswer(candidates=_cut(found, asked.depth), similar=similar, degraded=(note,))


def keywords_from_truth(asked: Asked, snapshot: Snapshot, *, reason: str) -> ArmAnswer:
    """BM25 over stored tokens, when the index can't answer."""
    chunks = snapshot.chunks_with(asked.terms, FALLBACK_CHUNKS) if asked.terms else ()
    cut = f"; only {FALLBACK_CHUNKS:,} chunks were read" if len(chunks) >= FALLBACK_CHUNKS else ""
    if asked.within is not None:
        chunks = tuple(chunk for chunk in chunks if chunk.memory_id in asked.within)
    scored = _bm25(asked, chunks, counts=snapshot.term_documents(asked.terms))
    note = Degradation(part="keyword", reason=f"{reason}; search in PostgreSQL instead{cut}")
    return ArmAnswer(candidates=_cut(scored, asked.depth), degraded=(note,))


def _bm25(
    asked: Asked, chunks: Sequence[ChunkTokens], *, counts: Mapping[str, int]
) -> tuple[Candidate, ...]:
    statistics = CorpusStatistics.recorded(asked.keywords, chunks, term_documents=counts)
    return best(
        asked.keywords,
        chunks,
        statistics=statistics,
        depth=asked.depth,
        parameters=asked.bm25,
    )


def _changed(states: States, clock: Callable[[int], int], *, arm: Arm) -> Mapping[MemoryId, object]:
    changed: dict[MemoryId, object] = {}
    for ns_id, state in states.items():
        changed.update(state.changed_above(clock(ns_id), arm))
    return changed


def _cut(candidates: Sequence[Candidate], depth: int) -> tuple[Candidate, ...]:
    return tuple(best_first(candidates)[:depth])
