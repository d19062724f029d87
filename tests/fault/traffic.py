"""Writes and searches that go on while something breaks, as a good client makes them.

A write that is refused is tried again under the same idempotency key until it is acknowledged.
Every answer is held against what had been acknowledged when it was asked for, flagged or not: the
truth stands in for an index, so a flagged answer is as whole as any other, as long as the store is
as small as these are.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from typing import Final, Literal, TypeAlias, TypeVar

from memory_manage.manager import MemoryManage
from memory_manage.results import Found, Health
from memory_tool.errors import Unavailable
from tests.acceptance.asking import MODES, texts
from tests.fault.journal import Journal

T = TypeVar("T")
Mode: TypeAlias = Literal["keyword", "vector", "hybrid"]

USER: Final = "u"
QUESTION: Final = "a note about the harbour"
_WRITE_PAUSE: Final = 0.05
_SEARCH_PAUSE: Final = 0.1
_ENOUGH: Final = 800
"""Memories from which on each new one is deleted again: one answer has to hold them all."""

_POLL: Final = 0.1
HEALED_WITHIN: Final = 60.0
"""Seconds after which an outage has to be over by itself; it is for hangs, not for speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """The longest that a caller waited for an answer, in seconds."""

    search: float = 0.0
    write: float = 0.0


class Traffic:
    """One writer and some searchers over a memory, in threads of their own."""

    def __init__(
        self, memory: MemoryManage, journal: Journal, *, modes: Sequence[Mode] = MODES
    ) -> None:
        """Start nothing yet; searches go in these modes, one after the other."""
        self.memory = memory
        self.journal = journal
        self.slowest = Slowest()
        self._numbers = count()
        self._modes = cycle(modes)
        self._paused = threading.Event()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._written = 0
        self._failures: list[BaseException] = []

    @contextmanager
    def going_on(self, *, searchers: int = 1) -> Iterator["Traffic"]:
        """Write and search until the end of the block; an unexpected error there fails it."""
        jobs: list[Callable[[], None]] = [self._write_on, *[self._search_on] * searchers]
        threads = [threading.Thread(target=self._guarded, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
        for failure in self._failures:
            raise failure

    def let_pass(self, seconds: float, *, writes: int = 5) -> None:
        """Wait so long, and until so many writes more were acknowledged."""
        wanted = self._written + writes
        end = time.monotonic() + seconds
        limit = end + HEALED_WITHIN
        while time.monotonic() < end or self._written < wanted:
            if self._failures or time.monotonic() > limit:
                break
            time.sleep(_POLL)

    def pause(self) -> None:
        """Write no more; what was begun is acknowledged when this returns."""
        self._paused.set()
        with self._writing:
            pass

    def resume(self) -> None:
        """Write on."""
        self._paused.clear()

    def heal(self, within: float = HEALED_WITHIN) -> float:
        """Write no more and wait until all is well; seconds until it was.

        All is well when every store answers, every index is up and lags by nothing.
        """
        self.pause()
        start = time.monotonic()
        while not _is_well(health := self.memory.health()):
            assert time.monotonic() < start + within, f"not healed after {within:g} s: {health}"
            time.sleep(_POLL)
        return time.monotonic() - start

    def check_whole(self) -> None:
        """Every mode finds all that was acknowledged, nothing is there twice, and nobody says no.

        To be called when all is well and nothing is written.
        """
        expected = sorted(self.journal.living)
        listed = texts(self.memory.get_all(user_id=USER, limit=10_000))
        assert sorted(listed) == expected
        for mode in MODES:
            found = self.memory.search(
                QUESTION, user_id=USER, mode=mode, limit=1000, threshold=0.0, on_degraded="raise"
            )
            assert sorted(texts(found)) == expected, mode

    def search(self) -> Found | None:
        """Ask in the next mode, and compare."""
        asked = self.journal.moment()
        mode = next(self._modes)
        start = time.monotonic()
        try:
            answer = self.memory.search(
                QUESTION, user_id=USER, mode=mode, limit=1000, threshold=0.0
            )
        except Unavailable as error:
            self.journal.refuse("search", error)
            return None
        finally:
            self._note(search=time.monotonic() - start)
        parts = "+".join(sorted({note.part for note in answer.degraded}))
        self.journal.compare(texts(answer), asked=asked, how=mode, notes=parts)
        return answer

    def write(self) -> None:
        """Store some more, and delete something now and then."""
        number = next(self._numbers)
        full = len(self.journal.living) > _ENOUGH
        many = 5 if number % 9 == 8 and not full else 1
        new = [f"note {number}.{place} about the harbour" for place in range(many)]
        self.journal.begin(new)
        key = f"write {number}"
        written = self._insist(
            lambda: self.memory.add_many(new, user_id=USER, idempotency_key=key), "add"
        )
        if written is None:
            return
        assert {item.status for item in written} == {"added"}, written
        self.journal.acknowledge(new)
        self._written += 1
        if full or number % 7 == 6:
            self.journal.begin_deletion(new[0])
            gone = written.results[0].id or ""
            if self._insist(lambda: self.memory.delete(gone, user_id=USER), "delete") is not None:
                self.journal.acknowledge_deletion(new[0])

    def write_many(self, count: int) -> None:
        """Store so many more at once, from the calling thread."""
        new = [f"one of many notes {number} about the harbour" for number in range(count)]
        self.journal.begin(new)
        written = self.memory.add_many(new, user_id=USER)
        assert {item.status for item in written} == {"added"}
        self.journal.acknowledge(new)

    def _insist(self, call: Callable[[], T], name: str) -> T | None:
        while not self._ended.is_set():
            start = time.monotonic()
            try:
                return call()
            except Unavailable as error:
                self.journal.refuse(name, error)
                time.sleep(_POLL)
            finally:
                self._note(write=time.monotonic() - start)
        return None

    def _note(self, *, search: float = 0.0, write: float = 0.0) -> None:
        before = self.slowest
        self.slowest = Slowest(search=max(search, before.search), write=max(write, before.write))

    def _write_on(self) -> None:
        while not self._ended.wait(_WRITE_PAUSE):
            with self._writing:
                if not self._paused.is_set():
                    self.write()

    def _search_on(self) -> None:
        while not self._ended.wait(_SEARCH_PAUSE):
            self.search()

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - the test's thread raises it
            self._failures.append(error)


def _is_well(health: Health) -> bool:
    return (
        health.ok
        and set(health.conditions.values()) == {"up"}
        and all(lag["rows"] == 0 for lag in health.lag.values())
    )
