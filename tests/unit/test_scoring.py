"""The mission's formula, with its golden values."""

import pytest

from memory_manage.scoring import ScoreWeights, importance_of, recency_of, score

DAY = 86_400.0


def test_the_golden_value_is_1_03712() -> None:
    """The worked example of the material says 1.07; its own formula gives this."""
    assert score(0.92, 0.95, importance=0.8) == pytest.approx(1.03712, abs=1e-12)


def test_one_day_end_to_end_is_1_02592() -> None:
    """Recency after one day is 0.9, not the 0.95 of the example."""
    assert score(0.92, recency_of(DAY), importance=0.8) == pytest.approx(1.02592, abs=1e-12)


@pytest.mark.parametrize(
    ("age", "recency"),
    [(0, 1.0), (DAY, 0.9), (7 * DAY, 0.9**7), (365 * DAY, 0.1), (-5 * DAY, 1.0)],
)
def test_recency_falls_by_the_day_to_a_floor(age: float, recency: float) -> None:
    """Ages are in seconds; what lies in the future counts as now."""
    assert recency_of(age) == pytest.approx(recency)


@pytest.mark.parametrize(("stars", "share"), [(None, 0.5), (1, 0.2), (4, 0.8), (5, 1.0)])
def test_stars_become_a_share(stars: int | None, share: float) -> None:
    """Five stars are 1, and no rating is neutral."""
    assert importance_of(stars) == pytest.approx(share)


def test_an_unrated_memory_has_the_factor_one() -> None:
    """0.8 + 0.5 x 0.4 = 1: not rating must not change a score."""
    assert score(0.5, 0.5, importance=importance_of(None)) == pytest.approx(0.5)


def test_weights_can_be_replaced() -> None:
    """Whoever wants no recency gets the similarity alone."""
    weights = ScoreWeights(similarity=1.0, recency=0.0)

    assert score(0.7, 0.1, importance=0.5, weights=weights) == pytest.approx(0.7)
