"""From hits to the few answers worth showing: threshold, duplicates, score, pinned first. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from memory_manage.calibration import Calibration
from memory_manage.scoring import (
    DEFAULT_WEIGHTS,
    ScoreWeights,
    importance_of,
    recency_of,
    score,
)
from memory_tool.query import Hit

CONFIDENT: Final = 0.8
"""Calibrated similarity from which the first result counts as an answer: half-way between the least
relevant pairs (0.7) and near paraphrases (0.9)."""


class Scored(NamedTuple):
    """A hit with its score and the parts that made it."""

    hit: Hit
    score: float
    calibrated: float | None
    recency: float
    importance: float

    @property
    def has_keyword(self) -> bool:
        """Whether an exact word was found in it."""
        return self.hit.keyword_rank is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRules:
    """How hits are ranked: the reference time in seconds since 1970, and the constants."""

    now: float
    calibration: Calibration
    threshold: float
    weights: ScoreWeights = DEFAULT_WEIGHTS


def ranked(hits: Sequence[Hit], rules: RankRules) -> tuple[Scored, ...]:
    """The hits worth showing, best first, pinned ones before the others.

    A hit below the threshold stays if it holds a word of the question; of equal texts the best
    scored one stays.
    """
    scored = [_scored(hit, rules) for hit in hits]
    shown = [item for item in scored if _is_shown(item, rules.threshold)]
    shown.sort(key=lambda item: (not item.hit.outline.pinned, -item.score, item.hit.outline.id))
    seen: set[bytes] = set()
    unique = []
    for item in shown:
        text = item.hit.outline.content_hash
        if text not in seen:
            seen.add(text)
            unique.append(item)
    return tuple(unique)


def is_confident(results: Sequence[Scored]) -> bool:
    """Whether the best result is likely to answer the question."""
    return any(item.calibrated is not None and item.calibrated >= CONFIDENT for item in results[:1])


def _scored(hit: Hit, rules: RankRules) -> Scored:
    recency = recency_of(rules.now - hit.outline.event_time, weights=rules.weights)
    importance = importance_of(hit.outline.importance)
    calibrated = None if hit.cosine is None else rules.calibration.calibrated(hit.cosine)
    return Scored(
        hit=hit,
        score=score(hit.relevance, recency, importance=importance, weights=rules.weights),
        calibrated=calibrated,
        recency=recency,
        importance=importance,
    )


def _is_shown(item: Scored, threshold: float) -> bool:
    return item.calibrated is None or item.calibrated >= threshold or item.has_keyword
