"""The arms of one search: what each proposes, from its index or, without one, from the truth."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from memory_tool.bm25 import CorpusStatistics, best
from memory_tool.fusion import best_first
from memory_tool.model import MemoryId, Vector
from memory_tool.overlay import OverlayState
from memory_tool.port_values import ChunkTokens, KeywordQuery, RowKey
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
    """The index views of one search, and why an arm has none."""

    vector: VectorView | None = None
    keyword: KeywordView | None = None
    reasons: dict[Arm, str] = field(default_factory=dict)

    def fail(self, arm: Arm, reason: str) -> None:
        """Do without the arm's index in this search."""
        self.reasons.setdefault(arm, reason)

    def floor(self, ns_id: int) -> int:
        """The number above which some index misses rows of the namespace."""
        views = (self.vector, self.keyword)
        return min((view.clock(ns_id) for view in views if view is not None), default=0)

    def marks(self, targets: Mapping[Arm, str]) -> tuple[tuple[str, str], ...]:
        """(target, mark) of each view that carries one."""
        views = {Arm.VECTOR: self.vector, Arm.KEYWORD: self.keyword}
        return tuple(
            (targets[arm], view.mark)
            for arm, view in views.items()
            if view is not None and view.mark is not None
        )

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
    index is told; ``None`` where it has to be checked afterwards.
    """

    ns_ids: tuple[int, ...]
    vector: Vector | None
    keywords: KeywordQuery
    matching: frozenset[RowKey] | None
    within: frozenset[MemoryId] | None
    depth: int

    @property
    def terms(self) -> tuple[str, ...]:
        """Every term, for look-ups by term."""
        return (*self.keywords.words, *self.keywords.bigrams)


def vector_answer(
    asked: Asked, view: VectorView, *, proposed: Sequence[Candidate], states: States
) -> ArmAnswer:
    """The index's candidates, less what changed since, and what is newer than the index."""
    vector = asked.vector
    if vector is None:
        return ArmAnswer(candidates=())
    changed = _changed(states, view.clock, arm=Arm.VECTOR)
    kept = [found for found in proposed if found.memory_id not in changed]
    newer = [
        found
        for ns_id, state in states.items()
        for found in state.nearest(
            vector, above=view.clock(ns_id), depth=asked.depth, within=asked.within
        )
    ]

    def similar(ids: Sequence[tuple[int, MemoryId]]) -> Iterable[Candidate]:
        named = frozenset(memory_id for _, memory_id in ids)
        old = [pair for pair in ids if pair[1] not in changed]
        yield from view.scores(vector, old)
        for ns_id, state in states.items():
            wanted = named & changed.keys()
            if wanted:
                yield from state.nearest(
                    vector, above=view.clock(ns_id), depth=len(state.numbers), within=wanted
                )

    return ArmAnswer(candidates=_cut([*kept, *newer], asked.depth), similar=similar)


def keyword_answer(
    asked: Asked, view: KeywordView, *, proposed: Sequence[Candidate], states: States
) -> ArmAnswer:
    """The index's candidates, less what changed since, and BM25 over what is newer."""
    changed = _changed(states, view.clock, arm=Arm.KEYWORD)
    kept = [found for found in proposed if found.memory_id not in changed]
    newer = [
        tokens
        for ns_id, state in states.items()
        for tokens in state.tokens_above(view.clock(ns_id), asked.within)
    ]
    if not newer:
        return ArmAnswer(candidates=tuple(kept))
    counts = view.term_documents(asked.terms)
    scored = _bm25(asked, newer, counts=counts)
    return ArmAnswer(candidates=_cut([*kept, *scored], asked.depth))


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
    # einsum, not BLAS: on a busy machine waiting for its threads costs more than the sum.
    scores = np.einsum("nd,d->n", stored.vectors, vector) if stored.references else ()
    found = [
        Candidate(at.ns_id, at.memory_id, at.ordinal, at.version, float(score))
        for at, score in zip(stored.references, scores, strict=True)
    ]
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
    return best(asked.keywords, chunks, statistics=statistics, depth=asked.depth)


def _changed(states: States, clock: Callable[[int], int], *, arm: Arm) -> Mapping[MemoryId, object]:
    changed: dict[MemoryId, object] = {}
    for ns_id, state in states.items():
        changed.update(state.changed_above(clock(ns_id), arm))
    return changed


def _cut(candidates: Sequence[Candidate], depth: int) -> tuple[Candidate, ...]:
    return tuple(best_first(candidates)[:depth])
