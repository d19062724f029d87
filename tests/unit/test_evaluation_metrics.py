"""The measures by which retrieval is judged."""

import math

import pytest

from scripts.evaluation.metrics import (
    Judged,
    ndcg,
    percentile,
    quality,
    recall,
    reciprocal_rank,
    speed,
)


def judged(ranked: str, relevant: str, *, kind: str = "fact", seconds: float = 0.0) -> Judged:
    """An answer whose keys are single letters."""
    return Judged(kind=kind, ranked=tuple(ranked), relevant=frozenset(relevant), seconds=seconds)


def test_ndcg_discounts_by_the_logarithm_of_the_rank() -> None:
    """Our figures have to be those that others publish: worked out by hand."""
    assert ndcg("axb", {"a", "b"}) == pytest.approx(1.5 / (1 + 1 / math.log2(3)))
    assert ndcg("xa", {"a"}) == pytest.approx(0.63093, abs=1e-5)
    assert ndcg("a", {"a"}) == 1
    assert ndcg("x", {"a"}) == 0


def test_ndcg_looks_at_ten_hits_only() -> None:
    """A hit at rank 11 is on no page."""
    assert ndcg("xxxxxxxxxxa", {"a"}) == 0
    assert ndcg("xxxxxxxxxa", {"a"}) == pytest.approx(1 / math.log2(11))


def test_ten_hits_out_of_more_relevant_ones_are_perfect() -> None:
    """The ideal is cut at ten, or questions with many answers could never reach 1."""
    assert ndcg("abcdefghij", set("abcdefghijklm")) == pytest.approx(1)


def test_recall_is_the_share_of_the_relevant() -> None:
    """Two of three relevant ones in the first five are two thirds, not two fifths."""
    assert recall("axbxxc", {"a", "b", "c"}, cut=5) == pytest.approx(2 / 3)
    assert recall("axbxxc", {"a", "b", "c"}, cut=1) == pytest.approx(1 / 3)


def test_a_memory_found_twice_counts_once_for_recall() -> None:
    """A repetition must not look like a second answer."""
    assert recall("aa", {"a", "b"}, cut=5) == 0.5


def test_reciprocal_rank_is_that_of_the_first_relevant() -> None:
    """The second answer doesn't matter, and a missing one is 0."""
    assert reciprocal_rank("xab", {"a", "b"}) == 0.5
    assert reciprocal_rank("xyz", {"a"}) == 0


def test_questions_without_an_answer_have_no_quality() -> None:
    """Nothing can be right there: counted as 0 they would only lower every mean."""
    figures = quality([judged("a", "a"), judged("x", "")])
    assert figures["ndcg@10"] == 1
    assert quality([judged("x", "")]) == {}


def test_the_mean_of_kinds_weighs_kinds_not_questions() -> None:
    """Three easy questions must not hide that the other kind fails."""
    easy = [judged("a", "a")] * 3
    figures = quality([*easy, judged("x", "a", kind="multi")])
    assert figures["ndcg@10"] == 0.75
    assert figures["ndcg@10 mean of kinds"] == 0.5
    assert figures["recall@5 of multi"] == 0


def test_a_single_kind_has_no_mean_of_kinds() -> None:
    """It would be the same figure under another name."""
    assert "ndcg@10 mean of kinds" not in quality([judged("a", "a")])


def test_percentiles_are_measured_values() -> None:
    """A latency that nobody waited for is no figure."""
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.95) == 4
    assert percentile([7.0], 0.5) == 7


def test_speed_counts_every_question() -> None:
    """One that nothing answers takes its time as well."""
    figures = speed([judged("a", "a", seconds=0.5), judged("", "", seconds=1.5)])
    assert figures["answered within 1 s"] == 0.5
    assert figures["search p95 ms"] == 1500
