"""Rows of a benchmark: a figure, what it is compared with, and the ratio that has to hold."""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. ``ratio`` is value / against for times and value / against for rates too."""

    what: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a row has to reach: its ratio (or value) at most or at least ``bound``."""

    kind: Literal["at most", "at least"]
    bound: float
    of: Literal["ratio", "value"] = "ratio"

    def met(self, row: Row) -> bool:
        """Whether the row reaches it."""
        figure = row.ratio if self.of == "ratio" else row.value
        if figure is None:
            return True
        return figure <= self.bound if self.kind == "at most" else figure >= self.bound


_ON_SERVERS: Final = {
    **{
        f"hybrid search{vectors}": Goal(kind="at most", bound=1.5)
        for vectors in (", Elasticsearch", ", FAISS")
    },
    **{
        f"recall@10{among}{vectors}": Goal(kind="at least", bound=0.98, of="value")
        for among in ("", " in 1 % namespace", " with a 1 % filter")
        for vectors in (", Elasticsearch", ", FAISS")
    },
    "bulk of texts": Goal(kind="at least", bound=0.6),
}

GOALS: Final[Mapping[str, Goal]] = {
    **_ON_SERVERS,
    "hybrid search": Goal(kind="at most", bound=2.5),
    "vector search": Goal(kind="at most", bound=2.5),
    "keyword search": Goal(kind="at most", bound=2.5),
    "hybrid search in 1 % namespace": Goal(kind="at most", bound=2.5),
    "durable add": Goal(kind="at most", bound=4.0),
    "delete": Goal(kind="at most", bound=3.0),
    "recall@10": Goal(kind="at least", bound=0.98, of="value"),
    "recall@10 in 1 % namespace": Goal(kind="at least", bound=1.0, of="value"),
    "recall@10 with a 1 % filter": Goal(kind="at least", bound=0.98, of="value"),
    "bulk add, indexed": Goal(kind="at least", bound=0.8),
    "bulk add, index deferred": Goal(kind="at least", bound=0.4),
    "reopen": Goal(kind="at most", bound=150.0, of="value"),
    "client memory for each memory": Goal(kind="at most", bound=700.0, of="value"),
    "disk for each memory": Goal(kind="at most", bound=5000.0, of="value"),
}
"""Those of the project's performance design, for 100,000 memories."""


def seconds_of(calls: Sequence[Callable[[], object]]) -> list[float]:
    """How long each call took."""
    taken = []
    for call in calls:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return taken


def median_of(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def p95_of(values: Sequence[float]) -> float:
    """What 95 % stay within."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def compared(
    what: str,
    rounds: Sequence[tuple[Sequence[float], float]],
    *,
    against: str,
) -> list[Row]:
    """Rows from rounds of (our seconds, the limit's median seconds): the median of the ratios.

    Both sides of a ratio come from the same round, a moment apart, so a busy machine slows both.
    """
    ratios = [median_of(ours) / limit for ours, limit in rounds]
    ours = [second for taken, _ in rounds for second in taken]
    return [
        Row(
            what=what,
            value=median_of(ours) * 1000,
            unit="ms p50",
            against=against,
            ratio=median_of(ratios),
        ),
        Row(what=f"{what}, p95", value=p95_of(ours) * 1000, unit="ms p95"),
    ]


def write_json(rows: Sequence[Row], file: Path) -> None:
    """All rows as a JSON list."""
    file.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def missed(rows: Sequence[Row]) -> list[str]:
    """A line for each goal that is not reached."""
    lines = []
    for row in rows:
        goal = GOALS.get(row.what)
        if goal is not None and not goal.met(row):
            figure = row.ratio if goal.of == "ratio" else row.value
            lines.append(f"{row.what}: {goal.of} {figure:.3g}, wanted {goal.kind} {goal.bound:g}")
    return lines
