"""Cosines on the common scale."""

import pytest

from memory_manage.calibration import ANCHOR, UNKNOWN, Calibration, calibration_for

MEASURED = Calibration(relevant=0.76, unrelated=0.72)


@pytest.mark.parametrize(
    ("cosine", "calibrated"), [(1.0, 1.0), (0.88, 0.85), (0.76, 0.7), (0.72, 0.35), (0.5, 0.0)]
)
def test_the_scale_has_its_anchors(cosine: float, calibrated: float) -> None:
    """0.7 is what 98 % of the relevant pairs exceed, half of it the median of the others."""
    assert MEASURED.calibrated(cosine) == pytest.approx(calibrated)


def test_the_offline_model_has_a_calibration_of_its_own() -> None:
    """Its cosines lie so high that a raw 0.7 would cut nothing."""
    assert calibration_for("intfloat/multilingual-e5-small") != UNKNOWN


def test_an_unmeasured_model_cuts_little() -> None:
    """A wrong cut loses what was asked for."""
    assert calibration_for("somebody/new-model").calibrated(0.3) > ANCHOR
