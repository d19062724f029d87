"""Ranked lists into one. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memory_tool.model import Arm, ArmScore, Candidate, Fusion, MemoryId, ReciprocalRank

Ranking: TypeAlias = Mapping[MemoryId, tuple[int, Candidate]]
"""For each memory its rank from 1 and its best chunk in one arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A memory with its relevance in [0, 1] and what each arm said."""

    memory_id: MemoryId
    ordinal: int
    relevance: float
    arms: Mapping[Arm, ArmScore]


def ranking(candidates: Sequence[Candidate]) -> Ranking:
    """Chunks by falling score become memories by their best chunk.

    Equal scores are ordered by id, so that an answer never depends on the order of arrival.
    """
    ordered = sorted(candidates, key=lambda found: (-found.score, found.memory_id, found.ordinal))
    best: dict[MemoryId, tuple[int, Candidate]] = {}
    for candidate in ordered:
        if candidate.memory_id not in best:
            best[candidate.memory_id] = (len(best) + 1, candidate)
    return best


def fuse(
    rankings: Mapping[Arm, Ranking],
    filled: Mapping[MemoryId, Candidate],
    fusion: Fusion,
) -> list[Fused]:
    """One list, best first.

    Args:
        rankings: What each arm found.
        filled: Similarities of memories that only the keyword arm found.
        fusion: How to combine.
    """
    if isinstance(fusion, ReciprocalRank):
        relevances = _by_rank(rankings, fusion.k)
    else:
        weights = {Arm.VECTOR: fusion.vector, Arm.KEYWORD: fusion.keyword}
        relevances = _by_score(rankings, filled, weights)
    fused = [
        Fused(
            memory_id=memory_id,
            ordinal=_ordinal(memory_id, rankings, filled),
            relevance=relevance,
            arms=_arms(memory_id, rankings, filled),
        )
        for memory_id, relevance in relevances.items()
    ]
    return sorted(fused, key=lambda item: (-item.relevance, item.memory_id))


def _by_rank(rankings: Mapping[Arm, Ranking], k: int) -> dict[MemoryId, float]:
    """Reciprocal rank fusion, scaled so that first in every arm is 1.

    With two arms and k = 60, first and third: (1/61 + 1/63) / (2/61) = 0.984; second in one arm
    only: (1/62) / (2/61) = 0.492.
    """
    most = len(rankings) / (k + 1)
    sums: dict[MemoryId, float] = {}
    for found in rankings.values():
        for memory_id, (rank, _) in found.items():
            sums[memory_id] = sums.get(memory_id, 0.0) + 1 / (k + rank)
    return {memory_id: total / most for memory_id, total in sums.items()}


def _by_score(
    rankings: Mapping[Arm, Ranking],
    filled: Mapping[MemoryId, Candidate],
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
    """Scores in [0, 1]. BM25 has a true zero; cosines of one query fill a narrow band of their own."""
    if not scores:
        return {}
    low = 0.0 if from_zero else min(scores.values())
    width = max(scores.values()) - low
    if width <= 0:
        return dict.fromkeys(scores, 1.0)
    return {memory_id: (score - low) / width for memory_id, score in scores.items()}


def _ordinal(
    memory_id: MemoryId, rankings: Mapping[Arm, Ranking], filled: Mapping[MemoryId, Candidate]
) -> int:
    for arm in (Arm.VECTOR, Arm.KEYWORD):
        if memory_id in rankings.get(arm, {}):
            return rankings[arm][memory_id][1].ordinal
    return filled[memory_id].ordinal


def _arms(
    memory_id: MemoryId, rankings: Mapping[Arm, Ranking], filled: Mapping[MemoryId, Candidate]
) -> Mapping[Arm, ArmScore]:
    scores = {
        arm: ArmScore(rank=found[memory_id][0], score=found[memory_id][1].score)
        for arm, found in rankings.items()
        if memory_id in found
    }
    if Arm.VECTOR not in scores and memory_id in filled:
        scores[Arm.VECTOR] = ArmScore(rank=None, score=filled[memory_id].score, filled_in=True)
    return scores
