"""One outage: a memory that goes on meanwhile, and what is told of it in the end."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from memory_manage.manager import MemoryManage
from tests.acceptance.asking import MODES, texts
from tests.fault.journal import Journal
from tests.fault.traffic import HEALED_WITHIN, USER, Mode, Traffic

LONG: Final = pytest.mark.skipif(
    not os.environ.get("THREEFOLD_TEST_FAULTS"), reason="a long outage: scripts/outages causes it"
)

COLUMNS: Final = (
    "outage",
    "what the caller saw",
    "lost writes",
    "wrong answers",
    "slowest search",
    "healthy after",
)

# Batches and folds each second, so that an outage of seconds meets some.
_LIVELY: Final = {
    "embedder": "hashing",
    "elasticsearch_replicas": 0,
    "elasticsearch_refresh_seconds": 0.5,
    "fold_seconds": 1.0,
}


class Events(logging.Handler):
    """What the house logs: its events, the conditions that each part went through, and traces."""

    def __init__(self) -> None:
        """Hear of nothing yet."""
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.conditions: dict[str, list[str]] = {}
        self.traces: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note an event."""
        event = record.getMessage()
        self.counts[event] += 1
        if event == "condition":
            part, condition = vars(record)["part"], vars(record)["condition"]
            self.conditions.setdefault(part, []).append(condition)
        if record.exc_info and record.exc_info[0] is not None:
            self.traces.append(f"{event}: {record.exc_info[0].__name__}: {record.exc_info[1]}")

    @contextmanager
    def heard(self) -> Iterator["Events"]:
        """Listen for a while."""
        house = logging.getLogger("threefold")
        level = house.level
        house.addHandler(self)
        house.setLevel(logging.INFO)
        try:
            yield self
        finally:
            house.removeHandler(self)
            house.setLevel(level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A memory under traffic, to break something under it.

    Attributes:
        name: What breaks, in words.
        traffic: The writes and searches that go on.
        events: What was logged meanwhile.
        report: Takes the line of the table.
    """

    name: str
    traffic: Traffic
    events: Events
    report: Callable[[str, object], None]
    errors_allowed: bool = False
    remarks: list[str] = field(default_factory=list)

    @property
    def memory(self) -> MemoryManage:
        """The memory."""
        return self.traffic.memory

    @property
    def journal(self) -> Journal:
        """What the client did and saw."""
        return self.traffic.journal

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that has to come by itself."""
        limit = time.monotonic() + HEALED_WITHIN
        while not holds():
            assert time.monotonic() < limit, self.memory.health()
            time.sleep(0.1)

    def lag(self, part: str) -> float:
        """How many rows an index misses."""
        return self.memory.health().lag[part]["rows"]

    def went(self, part: str, condition: str) -> bool:
        """Whether that is the condition that a part came to last."""
        return self.events.conditions.get(part, ["up"])[-1] == condition

    def settle(self) -> None:
        """Pause the writer and wait until the indexes hold everything."""
        self.traffic.pause()
        self.until(lambda: self.lag("keyword index") == self.lag("vector index") == 0)

    def end(self) -> None:
        """The cause is gone: wait until all is well, report, and see that nothing is lost."""
        seconds = self.traffic.heal()
        journal = self.journal
        there = texts(self.memory.get_all(user_id=USER, limit=10_000))
        self.report(
            "outage",
            (
                self.name,
                _seen(journal, self.remarks),
                len(journal.living - set(there)),
                len(journal.wrong),
                f"{self.traffic.slowest.search:.1f} s",
                f"{seconds:.1f} s",
            ),
        )
        self.traffic.check_whole()
        assert journal.wrong == []
        assert self.events.traces == []
        if not self.errors_allowed:
            assert not journal.refused


def _seen(journal: Journal, remarks: list[str]) -> str:
    whole = journal.notes[""]
    flagged = [f"{parts} {times}" for parts, times in sorted(journal.notes.items()) if parts]
    answers = f"{whole} whole answers"
    if flagged:
        answers += f", flagged: {', '.join(flagged)}"
    refused = [f"{call} {times}" for call, times in sorted(journal.refused.items())]
    return "; ".join([answers, *refused, *remarks])


@contextmanager
def outage_of(
    name: str,
    report: Callable[[str, object], None],
    *,
    data_dir: Path,
    modes: Sequence[Mode] = MODES,
    settled: bool = True,
    errors_allowed: bool = False,
    **settings: Any,  # noqa: ANN401 - those of MemoryManage.open
) -> Iterator[Outage]:
    """A memory with these settings, under traffic; ``settled`` with all its indexes in use."""
    quiet: Callable[[str], None] = lambda _line: None  # noqa: E731 - a default of one use
    opened = {**_LIVELY, "data_dir": str(data_dir), "on_progress": quiet, **settings}
    with Events().heard() as events, MemoryManage.open(**opened) as memory:
        traffic = Traffic(memory, Journal(), modes=modes)
        with traffic.going_on(searchers=2):
            outage = Outage(
                name=name,
                traffic=traffic,
                events=events,
                report=report,
                errors_allowed=errors_allowed,
            )
            if settled:
                traffic.let_pass(0.5)
                outage.settle()
                traffic.resume()
            yield outage
