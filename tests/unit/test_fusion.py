"""Fusion: ranks, scaled scores, completed similarities."""

import pytest

from memory_tool.fusion import Ranking, fuse, ranking
from memory_tool.model import MemoryId, MemoryType
from memory_tool.query import Arm, Candidate, Outline, ReciprocalRank, WeightedSum


def candidate(name: str, score: float, *, ordinal: int = 0) -> Candidate:
    """A chunk of the memory ``name``."""
    return Candidate(1, name, ordinal, 1, score)


def outline(name: str) -> Outline:
    """Light columns of the memory ``name``."""
    return Outline(
        id=name,
        ns_id=1,
        vector_nseq=1,
        keyword_nseq=1,
        content_hash=name.encode(),
        type=MemoryType.SEMANTIC,
        importance=None,
        pinned=False,
        confidence=1.0,
        event_time=0.0,
    )


def fused(
    vector: Ranking, keyword: Ranking, *filled: Candidate, fusion: ReciprocalRank | WeightedSum
) -> dict[MemoryId, float]:
    """Relevance by memory."""
    names = {*vector, *keyword}
    hits = fuse(
        {Arm.VECTOR: vector, Arm.KEYWORD: keyword},
        {found.memory_id: found for found in filled},
        fusion=fusion,
        outlines={name: outline(name) for name in names},
    )
    return {hit.outline.id: hit.relevance for hit in hits}


def test_a_memory_ranks_by_its_best_chunk() -> None:
    """Three chunks of one memory must not take three places."""
    found = ranking([candidate("a", 0.2), candidate("b", 0.5), candidate("a", 0.9, ordinal=3)])

    assert {name: (rank, best.ordinal) for name, (rank, best) in found.items()} == {
        "a": (1, 3),
        "b": (2, 0),
    }


def test_equal_scores_are_ordered_by_id() -> None:
    """An answer must not depend on the order in which an index returned it."""
    assert list(ranking([candidate("b", 1.0), candidate("a", 1.0)])) == ["a", "b"]


def test_reciprocal_rank_gives_the_textbook_values() -> None:
    """With k = 60; first in both arms is 1."""
    both = ranking([candidate("a", 9.0), candidate("b", 5.0)])
    one = ranking([candidate("a", 0.9)])

    relevance = fused(one, both, fusion=ReciprocalRank(k=60))

    assert relevance["a"] == pytest.approx(1.0)
    assert relevance["b"] == pytest.approx((1 / 62) / (2 / 61))


def test_a_weighted_sum_scales_each_arm() -> None:
    """Cosines from their least to their greatest, BM25 from zero."""
    vector = ranking([candidate("a", 0.9), candidate("b", 0.8)])
    keyword = ranking([candidate("b", 4.0), candidate("a", 1.0)])

    relevance = fused(vector, keyword, fusion=WeightedSum(vector=0.6, keyword=0.4))

    assert relevance == pytest.approx({"a": 0.6 + 0.4 * 0.25, "b": 0.4})


def test_a_completed_similarity_counts_like_a_found_one() -> None:
    """What only the keyword arm found must not be scored as if it were unlike the question."""
    vector = ranking([candidate("a", 0.9), candidate("b", 0.7)])
    keyword = ranking([candidate("c", 2.0)])

    weights = WeightedSum(vector=0.6, keyword=0.4)
    relevance = fused(vector, keyword, candidate("c", 0.8), fusion=weights)

    assert relevance["c"] == pytest.approx(0.6 * 0.5 + 0.4)


def test_a_single_arm_uses_the_whole_scale() -> None:
    """Without the other arm its weight must not lower every relevance."""
    hits = fuse(
        {Arm.KEYWORD: ranking([candidate("a", 3.0)])},
        {},
        fusion=WeightedSum(vector=0.6, keyword=0.4),
        outlines={"a": outline("a")},
    )

    assert [hit.relevance for hit in hits] == [1.0]
    assert hits[0].cosine is None
    assert hits[0].keyword_rank == 1
