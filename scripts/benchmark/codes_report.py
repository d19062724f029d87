"""Kinds of index compared, for people: a table for each set of vectors, and a plot of all."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter
from rich.table import Table

from scripts.benchmark.codes import LOSS_MAX, SCAN, TIMES_LESS, CodesRow

CLAIMED_LOSS_MAX: Final = 0.03
"""The mission's claim: 16 times less memory for less than this."""

_COLUMNS: Final = (
    "kind",
    "bytes",
    "less",
    "loss, codes",
    "rescored",
    "@100",
    "width",
    "build s",
    "p50 ms",
    "100 deep",
    "process MB",
)
_COLOURS: Final = {
    "hnsw32,flat": "#7f7f7f",
    "hnsw32,fp16": "#8c564b",
    "hnsw32,sq8": "#1f77b4",
    "ivf,sq8": "#2ca02c",
    "pq": "#ff7f0e",
    "rabitq": "#d62728",
}
_NAMED_BELOW: Final = ("hnsw32,flat", "hnsw32,sq8")
_NAMED_BESIDE: Final = {"hnsw32,sq8": "right", "ivf,sq8": "left"}
"""Which side of the name is at the point; else its middle."""

_WORDS_AT: Final = 6
"""Between bytes and coarse codes, where no kind is."""

_LOSSES: Final = (0, 0.1, 0.3, 1, 3, 10, 30)
"""Percentages with a label."""


def table_of(rows: Sequence[CodesRow]) -> Table:
    """The rows of one set; what ``compressed`` takes there has a star."""
    data = rows[0].data
    table = Table(title=f"{data}: recall@10 lost by the codes, and after rescoring")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row.kind} *" if row.chosen else row.kind,
            f"{row.bytes_a_vector:,.0f}",
            f"{row.times_less:.1f}",
            f"{row.loss_codes:.1%}",
            f"{row.loss:.1%}",
            f"{1 - row.recall_deep:.1%}",
            str(row.width or ""),
            f"{row.build_seconds:.1f}",
            f"{row.p50_ms:.2f}",
            f"{row.p50_deep_ms:.2f}",
            f"{row.process_mb:,.0f}",
        )
    return table


def plot(rows: Sequence[CodesRow], file: Path) -> None:
    """Write a picture: recall lost over memory saved, a panel for each set."""
    mpl.use("Agg")
    sets = [(data, list(part)) for data, part in groupby(rows, attrgetter("data"))]
    height = -(-len(sets) // 2)
    figure = Figure(figsize=(12, 1.4 + 4.2 * height), layout="constrained")
    panels = figure.subplots(height, 2, squeeze=False).flatten()
    for panel, (data, part) in zip(panels, sets, strict=False):
        _draw(panel, data, rows=part)
    for empty in panels[len(sets) :]:
        empty.set_axis_off()
    figure.suptitle(
        "Recall@10 lost for memory saved: hollow by the codes alone, filled after rescoring;"
        " * what compressed takes",
        fontsize=13,
    )
    figure.savefig(file, dpi=130)


def _draw(panel: Axes, data: str, *, rows: Sequence[CodesRow]) -> None:
    panel.set_title(data, fontsize=11)
    panel.set_xscale("log", base=2)
    panel.set_yscale("symlog", linthresh=1)
    panel.set_xlim(0.5, 45)
    panel.set_ylim(-0.35, 60)
    panel.xaxis.set_major_locator(FixedLocator([1, 2, 4, 8, 16, 32]))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    panel.yaxis.set_major_locator(FixedLocator(_LOSSES))
    panel.yaxis.set_minor_locator(FixedLocator([]))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    panel.set_xlabel("times less memory than floats")
    panel.set_ylabel("recall@10 lost")
    panel.grid(visible=True, color="#e5e5e5", linewidth=0.7)
    panel.axvline(TIMES_LESS, color="#999999", linestyle=":", linewidth=1)
    for loss, text in ((LOSS_MAX, "1 %: compressed"), (CLAIMED_LOSS_MAX, "3 %: the claim")):
        panel.axhline(100 * loss, color="#999999", linestyle=":", linewidth=1)
        panel.text(_WORDS_AT, 104 * loss, text, fontsize=8, color="#666666", va="bottom")
    for row in rows:
        if row.kind != SCAN:
            _draw_kind(panel, row)


def _draw_kind(panel: Axes, row: CodesRow) -> None:
    colour = _COLOURS[row.kind]
    places = [row.times_less, row.times_less]
    losses = [100 * row.loss_codes, 100 * row.loss]
    panel.plot(places, losses, color=colour, linewidth=1.2)
    panel.plot(places[:1], losses[:1], "o", color=colour, markerfacecolor="white", markersize=7)
    panel.plot(places[1:], losses[1:], "o", color=colour, markersize=7)
    # Neighbours in size have their names on different sides.
    below = row.kind in _NAMED_BELOW
    panel.annotate(
        f"{row.kind}{' *' if row.chosen else ''}",
        (row.times_less, min(losses) if below else max(losses)),
        xytext=(0, -8 if below else 8),
        textcoords="offset points",
        ha=_NAMED_BESIDE.get(row.kind, "center"),
        va="top" if below else "bottom",
        fontsize=9,
        color=colour,
    )
