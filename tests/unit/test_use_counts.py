"""Uses are collected, and written in one go."""

import threading
from collections.abc import Mapping

from memory_tool.errors import Unavailable
from memory_tool.port_values import RowKey
from memory_tool.tier_ports import UseLog
from memory_tool.use_counts import FLUSH_MEMORIES, UseCounts


class Written(UseLog):
    """Keeps what it is told, unless it is down."""

    def __init__(self, *, down: bool = False) -> None:
        self.calls: list[Mapping[RowKey, tuple[int, float]]] = []
        self.came = threading.Event()
        self._down = down

    def add(self, uses: Mapping[RowKey, tuple[int, float]]) -> None:
        """See :meth:`memory_tool.tier_ports.UseLog.add`."""
        if self._down:
            message = "away"
            raise Unavailable(message)
        self.calls.append(uses)
        self.came.set()


def test_reads_write_nothing_until_the_end() -> None:
    """A write for each read would make reads as dear as writes."""
    log = Written()
    counts = UseCounts(log)
    for _ in range(3):
        counts.note([(1, "a"), (1, "b")])
    counts.note([(2, "a")])
    assert log.calls == []
    counts.close()
    counts.close()
    (written,) = log.calls
    assert {key: count for key, (count, _) in written.items()} == {
        (1, "a"): 3,
        (1, "b"): 3,
        (2, "a"): 1,
    }
    assert all(0 <= ago < 60 for _, ago in written.values())


def test_after_a_while_they_are_written() -> None:
    """Though nobody reads any more."""
    log = Written()
    counts = UseCounts(log, seconds=0.01)
    counts.note([(1, "a")])
    assert log.came.wait(10)
    counts.close()
    assert len(log.calls) == 1


def test_many_are_written_at_once() -> None:
    """What is held stays small."""
    log = Written()
    counts = UseCounts(log)
    counts.note((1, str(number)) for number in range(FLUSH_MEMORIES))
    assert log.came.wait(10)
    counts.close()
    assert [len(call) for call in log.calls] == [FLUSH_MEMORIES]


def test_what_cannot_be_written_is_lost_and_stops_nobody() -> None:
    """A count is not worth an error."""
    counts = UseCounts(Written(down=True))
    counts.note([(1, "a")])
    counts.close()
    UseCounts(None).note([(1, "a")])
