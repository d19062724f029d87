"""The score of a hit: similarity, recency and importance. Pure.

    score = (similarity * 0.8 + recency * 0.2) * (0.8 + importance * 0.4)

Similarity is the fused relevance of the search in [0, 1], not a raw cosine: the cosines of one
embedding model fill a narrow band, and recency would decide alone.
"""

from dataclasses import dataclass
from typing import Final

SECONDS_A_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """The constants of the formula.

    Attributes:
        similarity: Weight of the similarity. At 0.8, a hit of similarity 0.92 and recency 0.95 has
            0.926 before importance; a day-old one of 0.9 has 0.916. Raise it where old facts are as
            good as new ones.
        recency: Weight of the recency; the two weights add up to 1.
        decay: What is left of recency after a day: 0.9 leaves 0.9 after one day, 0.478 after seven.
        floor: Least recency: 0.1 is reached after 22 days, so age never hides a memory wholly.
        least: Factor of importance 0: 0.8. With ``span`` 0.4 one star gives 0.88, five stars 1.2,
            and an unrated memory (0.5) exactly 1.
        span: Difference between the factors of importance 1 and 0.
    """

    similarity: float = 0.8
    recency: float = 0.2
    decay: float = 0.9
    floor: float = 0.1
    least: float = 0.8
    span: float = 0.4


DEFAULT_WEIGHTS: Final = ScoreWeights()
UNRATED: Final = 0.5
STARS: Final = 5


def score(
    similarity: float,
    recency: float,
    *,
    importance: float,
    weights: ScoreWeights = DEFAULT_WEIGHTS,
) -> float:
    """The formula. Similarity 0.92, recency 0.95 and importance 0.8 give 1.03712."""
    base = similarity * weights.similarity + recency * weights.recency
    return base * (weights.least + importance * weights.span)


def recency_of(age_seconds: float, *, weights: ScoreWeights = DEFAULT_WEIGHTS) -> float:
    """0.9 for each day, at least 0.1; what lies in the future counts as now."""
    days = max(0.0, age_seconds / SECONDS_A_DAY)
    return max(weights.floor, float(weights.decay**days))


def importance_of(stars: int | None) -> float:
    """Stars as a share: five are 1, one is 0.2, none given is 0.5, which is neutral."""
    return UNRATED if stars is None else stars / STARS
