"""Raw cosines on one scale for all embedding models. Pure.

On the calibrated scale 0.7 is the cosine that 98 % of the relevant pairs of a space exceed, 1 is 1,
and 0 lies as far below 0.7 as unrelated texts do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memory_tool.model import Json

ANCHOR: Final = 0.7
CALIBRATION: Final = "calibration"
"""The name of the side structure that is measured for a model which nobody measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Two measured cosines of a space.

    Attributes:
        relevant: What 98 % of relevant pairs exceed; becomes 0.7.
        unrelated: What half of the unrelated pairs exceed; becomes 0.35, half of 0.7.
    """

    relevant: float
    unrelated: float

    def calibrated(self, cosine: float) -> float:
        """The cosine on the common scale, in [0, 1].

        With relevant 0.76 and unrelated 0.72: 0.76 gives 0.7, 0.88 gives 0.85, 0.72 gives 0.35.
        """
        if cosine >= self.relevant:
            above = (cosine - self.relevant) / max(1e-6, 1 - self.relevant)
            return min(1.0, ANCHOR + (1 - ANCHOR) * above)
        below = (self.relevant - cosine) / max(1e-6, self.relevant - self.unrelated)
        return max(0.0, ANCHOR - ANCHOR / 2 * below)


UNKNOWN: Final = Calibration(relevant=0.25, unrelated=0.0)
"""For models that nobody measured here: lenient, since a wrong cut loses what was asked for."""

_MEASURED: Final = {
    # The 2nd percentile of right pairs across languages. Within one language it is .76 (English)
    # and .85 (Chinese); wrong pairs overlap with both, so only what is far off is cut.
    "multilingual-e5-small": Calibration(relevant=0.72, unrelated=0.70),
    "hashing": Calibration(relevant=0.15, unrelated=0.0),
}


def is_known(model: str) -> bool:
    """Whether a model was measured here, on sets of questions and answers."""
    return _last_part(model) in _MEASURED


def calibration_for(model: str, kept: Json = None) -> Calibration:
    """The calibration of a model, by the last part of its name.

    ``kept`` is what :class:`~memory_manage.measuring.MeasuredCalibration` keeps of the store's own
    vectors; it counts where nobody measured the model here.
    """
    if is_known(model) or not isinstance(kept, Mapping):
        return _MEASURED.get(_last_part(model), UNKNOWN)
    relevant, unrelated = kept.get("relevant"), kept.get("unrelated")
    if not isinstance(relevant, float) or not isinstance(unrelated, float):
        return UNKNOWN
    return Calibration(relevant=relevant, unrelated=unrelated)


def _last_part(model: str) -> str:
    return model.rpartition("/")[2].casefold()
