"""Ranked lists into one. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from memory_tool.model import MemoryId
from memory_tool.query import Arm, Candidate, Fusion, Hit, Outline, ReciprocalRank

Ranking: TypeAlias = Mapping[MemoryId, tuple[int, Candidate]]
"""For each memory its rank from 1 and its best chunk in one arm, best first."""

NOT_RANKED: Final[tuple[None, None]] = (None, None)


def ranking(candidates: Sequence[Candidate]) -> Ranking:
    """Chunks by falling score become memories by their best chunk.

    Equal scores are ordered by id, so that an answer never depends on the order of arrival.
    """
    best: dict[MemoryId, tuple[int, Candidate]] = {}
    for candidate in best_first(candidates):
        if candidate.memory_id not in best:
            best[candidate.memory_id] = (len(best) + 1, candidate)
    return best


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By falling score, then by id and chunk."""
    return sorted(candidates, key=_order)


def _order(candidate: Candidate) -> tuple[float, MemoryId, int]:
    return (-candidate.score, candidate.memory_id, candidate.ordinal)


def fuse(
    rankings: Mapping[Arm, Ranking],
    filled: Mapping[MemoryId, Candidate],
    *,
    fusion: Fusion,
    outlines: Mapping[MemoryId, Outline],
) -> list[Hit]:
    """One list of hits; the brain orders them.

    Args:
        rankings: What each arm found.
        filled: Similarities of memories that only the keyword arm found.
        fusion: How to combine.
        outlines: The light columns of every memory in the rankings.
    """
    if isinstance(fusion, ReciprocalRank):
        relevances = _by_rank(rankings, fusion.k)
    else:
        weights = {Arm.VECTOR: fusion.vector, Arm.KEYWORD: fusion.keyword}
        relevances = _by_score(rankings, filled, weights=weights)
    vector, keyword = rankings.get(Arm.VECTOR, {}), rankings.get(Arm.KEYWORD, {})
    hits = []
    for memory_id, relevance in relevances.items():
        near_rank, near = vector.get(memory_id, NOT_RANKED)
        near = near or filled.get(memory_id)
        said_rank, said = keyword.get(memory_id, NOT_RANKED)
        best = near or said
        hits.append(
            Hit(
                outlines[memory_id],
                best.ordinal if best else 0,
                relevance,
                near_rank,
                near.score if near else None,
                said_rank,
                said.score if said else None,
            )
        )
    return hits


def _by_rank(rankings: Mapping[Arm, Ranking], k: int) -> dict[MemoryId, float]:
    """Reciprocal rank fusion, scaled so that first in every arm is 1.

    With two arms and k = 60, first and third: (1/61 + 1/63) / (2/61) = 0.984; second in one arm
    only: (1/62) / (2/61) = 0.492.
    """
    most = len(rankings) / (k + 1)
    sums: dict[MemoryId, float] = {}
    for found in rankings.values():
        for memory_id, (rank, _) in found.items():
            sums[memory_id] = sums.get(memory_id, 0.0) + 1 / (k + rank) / most
    return sums


def _by_score(
    rankings: Mapping[Arm, Ranking],
    filled: Mapping[MemoryId, Candidate],
    *,
    weights: Mapping[Arm, float],
) -> dict[MemoryId, float]:
    used = {arm: weight for arm, weight in weights.items() if arm in rankings}
    total = sum(used.values()) or 1.0
    sums: dict[MemoryId, float] = {}
    for arm, weight in used.items():
        scores = {memory_id: found.score for memory_id, (_, found) in rankings[arm].items()}
        if arm is Arm.VECTOR:
            scores |= {memory_id: found.score for memory_id, found in filled.items()}
        for memory_id, scaled in _scaled(scores, from_zero=arm is Arm.KEYWORD).items():
            sums[memory_id] = sums.get(memory_id, 0.0) + weight / total * scaled
    return sums


def _scaled(scores: Mapping[MemoryId, float], *, from_zero: bool) -> dict[MemoryId, float]:
    """Scores in [0, 1]. BM25 has a true zero; the cosines of one query fill a narrow band."""
    if not scores:
        return {}
    low = 0.0 if from_zero else min(scores.values())
    width = max(scores.values()) - low
    if width <= 0:
        return dict.fromkeys(scores, 1.0)
    return {memory_id: (score - low) / width for memory_id, score in scores.items()}
