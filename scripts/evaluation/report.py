"""Figures of an evaluation as rows of JSON and as tables for people."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

FLOOR: Final[Mapping[str, float]] = {
    "locomo": 0.441,
    "memorybank-zh": 0.750,
    "memorybank-en": 0.727,
    "madial-zh": 0.543,
    "madial-en": 0.487,
    "beam-128k": 0.416,
    "xquad-zh": 0.980,
    "xquad-en": 0.983,
    "xquad-zh-en": 0.842,
    "xquad-en-zh": 0.629,
    "cmrc2018": 0.986,
    "drcd": 0.960,
}
"""NDCG@10 of exact search fused by reciprocal rank (k = 60): what anything shipped has to reach. Of
the public part of the sets; on another part it is a hint."""

_HEADINGS: Final[Mapping[str, str]] = {
    "ndcg@10": "ndcg@10",
    "ndcg@10 mean of kinds": "of kinds",
    "recall@1": "r@1",
    "recall@5": "r@5",
    "recall@10": "r@10",
    "mrr": "mrr",
    "answered within 1 s": "in 1 s",
    "search p50 ms": "p50 ms",
    "search p95 ms": "p95 ms",
    "degraded": "degraded",
}
_KIND: Final = " of "


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value; ``way`` is how the search was done, empty as shipped."""

    set_name: str
    way: str
    metric: str
    value: float

    @property
    def name(self) -> str:
        """The metric, led by the way if it isn't the shipped one."""
        return f"{self.way}: {self.metric}" if self.way else self.metric


def write_json(file: Path, figures: Iterable[Figure]) -> None:
    """Write the figures as a list of ``set, metric, value``."""
    rows = [
        {"set": figure.set_name, "metric": figure.name, "value": round(figure.value, 4)}
        for figure in figures
    ]
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print the sets as shipped, the ways beside each other, and the kinds of questions."""
    console.print(_main_table(figures))
    if any(figure.way for figure in figures):
        console.print(_ways_table(figures))
    kinds = [figure for figure in figures if not figure.way and _is_of_kind(figure.metric)]
    if kinds:
        console.print(_kinds_table(kinds))


def below_floor(figures: Iterable[Figure]) -> tuple[str, ...]:
    """The sets that are worse than reciprocal rank fusion was."""
    return tuple(
        figure.set_name
        for figure in figures
        if figure.name == "ndcg@10" and round(figure.value, 3) < FLOOR.get(figure.set_name, 0.0)
    )


def _main_table(figures: Sequence[Figure]) -> Table:
    table = Table(title="As shipped", caption="< marks an ndcg@10 below RRF(60) of exact search")
    table.add_column("set")
    table.add_column("RRF(60)", justify="right")
    for heading in _HEADINGS.values():
        table.add_column(heading, justify="right")
    below = below_floor(figures)
    for name, values in _by_set(figures, way="").items():
        floor = FLOOR.get(name)
        cells = [_cell(metric, values) for metric in _HEADINGS]
        if name in below:
            cells[0] = f"[red]< {cells[0]}[/red]"
        table.add_row(name, "" if floor is None else f"{floor:.3f}", *cells)
    return table


def _ways_table(figures: Sequence[Figure]) -> Table:
    table = Table(title="ndcg@10 by way of searching")
    ways = tuple(dict.fromkeys(figure.way for figure in figures))
    table.add_column("set")
    for way in ways:
        table.add_column(way or "as shipped", justify="right")
    columns = [_by_set(figures, way=way) for way in ways]
    for name in columns[0]:
        table.add_row(name, *(_cell("ndcg@10", column.get(name, {})) for column in columns))
    return table


def _kinds_table(figures: Sequence[Figure]) -> Table:
    table = Table(title="By kind of question")
    metrics = tuple(dict.fromkeys(figure.metric.partition(_KIND)[0] for figure in figures))
    for heading in ("set", "kind"):
        table.add_column(heading)
    for metric in metrics:
        table.add_column(metric, justify="right")
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for figure in figures:
        metric, _, kind = figure.metric.partition(_KIND)
        rows.setdefault((figure.set_name, kind), {})[metric] = figure.value
    for names, values in rows.items():
        table.add_row(*names, *(_cell(metric, values) for metric in metrics))
    return table


def _is_of_kind(metric: str) -> bool:
    return _KIND in metric and metric not in _HEADINGS


def _by_set(figures: Iterable[Figure], *, way: str) -> Mapping[str, Mapping[str, float]]:
    sets: dict[str, dict[str, float]] = {}
    for figure in figures:
        if figure.way == way:
            sets.setdefault(figure.set_name, {})[figure.metric] = figure.value
    return sets


def _cell(metric: str, values: Mapping[str, float]) -> str:
    value = values.get(metric)
    if value is None:
        return ""
    return f"{value:.1f}" if metric.endswith(" ms") else f"{value:.3f}"
