"""How good rankings are. Pure.

Relevance is binary; a question that nothing answers has no quality.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

CUT: Final = 10
"""How many hits count for NDCG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The answer to one question, beside what it should have been.

    Attributes:
        kind: The category of the question.
        ranked: Keys of the hits, best first.
        relevant: Keys of the memories that answer it.
        seconds: How long the search took.
        degraded: Whether a part of the search was missing.
    """

    kind: str
    ranked: tuple[str, ...]
    relevant: frozenset[str]
    seconds: float = 0.0
    degraded: bool = False


def ndcg(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """NDCG of the first ten: a hit at rank r gains 1 / log2(r + 1); as a share of the ideal.

    With two relevant, at ranks 1 and 3: (1 + 0.5) / (1 + 0.631) = 0.920.
    """
    gained = sum(_gain(rank) for rank, key in enumerate(ranked[:CUT], start=1) if key in relevant)
    return gained / sum(map(_gain, range(1, min(len(relevant), CUT) + 1)))


def recall(ranked: Sequence[str], relevant: Collection[str], *, cut: int) -> float:
    """The share of the relevant ones among the first ``cut`` hits."""
    return len(set(ranked[:cut]) & set(relevant)) / len(relevant)


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """One over the rank of the first relevant hit; 0 when there is none."""
    return next((1 / rank for rank, key in enumerate(ranked, start=1) if key in relevant), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of ``values`` does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def quality(judged: Sequence[Judged]) -> Mapping[str, float]:
    """The means over the questions that something answers; nothing when there are none.

    ``ndcg@10 mean of kinds`` weighs every kind the same, however many questions it has.
    """
    answered = [item for item in judged if item.relevant]
    if not answered:
        return {}
    figures = {name: _mean(measure, answered) for name, measure in _MEASURES.items()}
    by_kind = _by_kind(answered)
    if len(by_kind) > 1:
        of_kinds = {kind: _mean(_MEASURES["ndcg@10"], items) for kind, items in by_kind.items()}
        figures["ndcg@10 mean of kinds"] = fmean(of_kinds.values())
        for kind, items in by_kind.items():
            for name in _OF_EACH_KIND:
                figures[f"{name} of {kind}"] = _mean(_MEASURES[name], items)
    return figures


def speed(judged: Sequence[Judged]) -> Mapping[str, float]:
    """Latency in milliseconds over all questions, and the shares that were quick and degraded."""
    if not judged:
        return {}
    seconds = [item.seconds for item in judged]
    return {
        "answered within 1 s": fmean(second <= 1 for second in seconds),
        "search p50 ms": 1000 * percentile(seconds, 0.50),
        "search p95 ms": 1000 * percentile(seconds, 0.95),
        "degraded": fmean(item.degraded for item in judged),
    }


_MEASURES: Final[Mapping[str, Callable[[Judged], float]]] = {
    "ndcg@10": lambda item: ndcg(item.ranked, item.relevant),
    "recall@1": lambda item: recall(item.ranked, item.relevant, cut=1),
    "recall@5": lambda item: recall(item.ranked, item.relevant, cut=5),
    "recall@10": lambda item: recall(item.ranked, item.relevant, cut=10),
    "mrr": lambda item: reciprocal_rank(item.ranked, item.relevant),
}
_OF_EACH_KIND: Final = ("ndcg@10", "recall@5", "recall@10")


def _gain(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _mean(measure: Callable[[Judged], float], judged: Iterable[Judged]) -> float:
    return fmean(map(measure, judged))


def _by_kind(judged: Iterable[Judged]) -> Mapping[str, Sequence[Judged]]:
    kinds: defaultdict[str, list[Judged]] = defaultdict(list)
    for item in judged:
        kinds[item.kind].append(item)
    return kinds
