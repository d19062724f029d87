"""Memories as people read them: tables on a terminal, aligned lines elsewhere."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memory_manage.interfaces.cli_session import print_lines
from memory_manage.scoring import DEFAULT_WEIGHTS

if TYPE_CHECKING:
    from memory_manage.results import ArmExplanation, Explanation, Found, MemoryItem

_HEADS: Final = ("score", "id", "when", "type", "memory")


def print_memories(items: "Sequence[MemoryItem]") -> None:
    """One row for each memory: score (if it was searched for), id, event time, type, text."""
    scored = any(item.score is not None for item in items)
    heads = _HEADS if scored else _HEADS[1:]
    rows = [_row(item)[-len(heads) :] for item in items]
    if rows and sys.stdout.isatty():
        _print_table(heads, rows)
    else:
        print_lines(*aligned(rows))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns begin in the same cell, also below Chinese, which is two wide.

    The last column may be of any length.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join(
            [
                *(
                    cell + " " * (width - cell_len(cell))
                    for cell, width in zip(row, widths, strict=False)
                ),
                row[-1],
            ]
        )
        for row in rows
    ]


def print_fields(fields: Mapping[str, str]) -> None:
    """Names and values below each other."""
    print_lines(*aligned(list(fields.items())))


def fields_of(item: "MemoryItem") -> dict[str, str]:
    """What is known of a memory, for people; what it doesn't have is left out."""
    known = {
        name.replace("_", " "): _shown(value)
        for name, value in item.to_dict().items()
        if name != "memory" and value not in (None, "", [], {})
    }
    return {**known, "memory": item.memory}


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)


def explained(found: "Found") -> Iterator[str]:
    """Results with all that their scores were made of, so that they can be recomputed by hand."""
    fusion = {item.explanation.fusion for item in found.results if item.explanation is not None}
    yield f"   {'; '.join([f'{found.strategy}: {found.reason}', *fusion])}"
    for rank, item in enumerate(found.results, start=1):
        tags = f" · {', '.join(item.tags)}" if item.tags else ""
        yield f"{rank}. {one_line(item.memory)}"
        yield f"   {item.type} · {when(_event_time(item))} · {item.id}{tags}"
        if item.explanation is not None and item.score is not None:
            yield from _sum(item.explanation, item.score)
    if not found.results:
        yield "   nothing found"


def _sum(explanation: "Explanation", score: float) -> Iterator[str]:
    weights = DEFAULT_WEIGHTS
    yield (
        f"   score {score:.3f} ="
        f" ({weights.similarity} × relevance {explanation.relevance:.3f}"
        f" + {weights.recency} × recency {explanation.recency:.3f})"
        f" × ({weights.least} + {weights.span} × importance {explanation.importance:.1f})"
    )
    arms = "; ".join(_arm(name, said) for name, said in explanation.arms.items())
    least = ""
    if explanation.calibrated is not None:
        least = f"; similarity {explanation.calibrated:.3f}, least {explanation.threshold}"
    before = ""
    if explanation.turn_before is not None:
        before = f"; turn before {explanation.turn_before:.3f}"
    yield f"   {arms}{least}{before}"


def _arm(name: str, said: "ArmExplanation") -> str:
    measure = "cosine" if name == "vector" else "BM25"
    rank = "not ranked" if said.rank is None else f"rank {said.rank}"
    return f"{name} {rank}, {measure} {said.score:.3f}"


def explanation_key() -> str:
    """What the parts of an explained score mean."""
    weights = DEFAULT_WEIGHTS
    return (
        "relevance: the arms joined as their fusion says, scores scaled over the candidates, and in"
        " dialogues (that + 0.3 × turn before) / 1.3;"
        f" recency: {weights.decay} for each day of age, at least {weights.floor};"
        " importance: stars / 5, or 0.5 where none are given"
    )


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def when(time: datetime) -> str:
    """A time in the zone of the machine, to the minute."""
    return time.astimezone().isoformat(" ", "minutes")


def _event_time(item: "MemoryItem") -> datetime:
    return item.occurred_at or item.created_at


def _row(item: "MemoryItem") -> tuple[str, ...]:
    score = "" if item.score is None else f"{item.score:.3f}"
    return (score, item.id, when(_event_time(item)), item.type, one_line(item.memory))


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=head != "memory", overflow="fold")
    for row in rows:
        # As text, not markup: a memory may hold square brackets.
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)
