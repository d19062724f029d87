"""A job waits for the indexes between its writes."""

from collections.abc import Callable

import pytest

from memory_tool.errors import Unavailable
from memory_tool.index_jobs import pace as module
from memory_tool.index_jobs.pace import LOOK_EVERY, Pace
from memory_tool.log_ports import ChangeFigures
from memory_tool.port_values import Lag


class Behind(ChangeFigures):
    """Indexes that are so many rows behind, until they are hurried."""

    def __init__(self, **rows: int) -> None:
        self.rows = rows

    def lag(self, target: str) -> Lag:
        """See :meth:`memory_tool.log_ports.ChangeFigures.lag`."""
        return Lag(rows=self.rows[target], seconds=1.0)

    def catch_up(self) -> None:
        """All rows are applied."""
        self.rows = dict.fromkeys(self.rows, 0)


def paced(behind: Behind, hurry: Callable[[], None]) -> Pace:
    """A pace that lets an index be 2,000 rows behind."""
    return Pace(behind, lambda: behind.rows, most=2_000, hurry=hurry)


def test_indexes_that_keep_up_are_not_waited_for() -> None:
    """Nor asked for every few rows: to ask reads the clocks of the store."""
    asked: list[str] = []
    pace = paced(Behind(words=2_000, vectors=10), lambda: asked.append("hurry"))
    for _ in range(20):
        pace.wait(LOOK_EVERY // 2, lambda: True)
    assert asked == []


def test_the_slowest_index_is_waited_for() -> None:
    """So that no search has to make up for more than it may."""
    behind = Behind(words=0, vectors=2_001)
    paced(behind, behind.catch_up).wait(LOOK_EVERY, lambda: True)
    assert behind.rows == {"words": 0, "vectors": 0}


def test_whoever_is_to_stop_does_not_wait() -> None:
    """A worker that ends must not hang on an index that is down."""
    paced(Behind(words=9_999), lambda: None).wait(LOOK_EVERY, lambda: False)


def test_an_index_that_is_down_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again later, and goes on where it was."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(Unavailable, match="9,999 rows behind"):
        paced(Behind(words=9_999), lambda: None).wait(LOOK_EVERY, lambda: True)
