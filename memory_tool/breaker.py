"""A circuit breaker: whoever is down is not asked by every caller, nor forgotten."""

import enum
import threading
import time
from collections.abc import Callable
from typing import Final

FAILURES: Final = 3
"""Failures in a row after which a part counts as down: one may be chance, and each further one
costs a search its whole deadline."""

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 30.0
"""Seconds until a part that is down is tried again: doubled with each failure, up to this. So a
part that comes back is noticed within half a minute, at the price of one slow call in each."""


class Condition(enum.StrEnum):
    """How a part is doing: it answers, it failed just now, it is down, it is back but behind."""

    UP = "up"
    SUSPECT = "suspect"
    DOWN = "down"
    CATCHING_UP = "catching up"


class Breaker:
    """The condition of one part, from how calls to it went. Thread safe."""

    def __init__(
        self,
        *,
        failures: int = FAILURES,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[Condition], None] = lambda _condition: None,
    ) -> None:
        """Start ``up``; down after so many failures in a row.

        ``on_change`` hears of each new condition.
        """
        self._most = failures
        self._clock = clock
        self._on_change = on_change
        self._lock = threading.Lock()
        self._condition = Condition.UP
        self._failures = 0
        self._wait = FIRST_WAIT
        self._again_at = 0.0
        self._trying = False

    @property
    def condition(self) -> Condition:
        """How the part is doing."""
        return self._condition

    def allows(self) -> bool:
        """Whether to ask. While the part is down, one caller may try in each wait."""
        with self._lock:
            if self._condition is not Condition.DOWN:
                return True
            if self._clock() < self._again_at:
                return False
            self._again_at = self._clock() + self._wait
            self._trying = True
            return True

    def succeeded(self) -> None:
        """It answered. One that was down is back, but may not hold yet what it missed."""
        if self._condition is Condition.UP:
            return
        with self._lock:
            self._failures = 0
            if self._condition is Condition.SUSPECT:
                self._become(Condition.UP)
            elif self._condition is Condition.DOWN:
                self._become(Condition.CATCHING_UP)

    def caught_up(self) -> None:
        """What it misses is little enough to be added to its answers."""
        if self._condition is not Condition.CATCHING_UP:
            return
        with self._lock:
            if self._condition is Condition.CATCHING_UP:
                self._become(Condition.UP)

    def failed(self) -> None:
        """It did not answer, or too late."""
        with self._lock:
            self._failures += 1
            if self._condition is Condition.DOWN:
                # Many callers may have been waiting when it went down: they are no further tries.
                if self._trying:
                    self._trying = False
                    self._wait = min(2 * self._wait, LONGEST_WAIT)
                    self._again_at = self._clock() + self._wait
            elif self._condition is Condition.CATCHING_UP or self._failures >= self._most:
                self._trying = False
                self._wait = FIRST_WAIT
                self._again_at = self._clock() + self._wait
                self._become(Condition.DOWN)
            elif self._condition is Condition.UP:
                self._become(Condition.SUSPECT)

    def _become(self, condition: Condition) -> None:
        self._condition = condition
        self._on_change(condition)
