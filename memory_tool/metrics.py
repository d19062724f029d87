"""Latencies over a bounded window, without content."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WINDOW: Final = 1000
"""Latencies kept for each operation: enough for a steady 99th percentile, 8 kB each."""


class Metrics:
    """What ``stats()`` reports. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, deque[float]] = {}

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        """Keep how long the block took, if it succeeded."""
        start = time.perf_counter()
        yield
        self.observe(operation, time.perf_counter() - start)

    def observe(self, operation: str, seconds: float) -> None:
        """Keep one latency."""
        with self._lock:
            self._seconds.setdefault(operation, deque(maxlen=WINDOW)).append(seconds)

    def mean(self, operation: str) -> float:
        """Mean seconds over the window; 0 when there are none."""
        values = self._values(operation)
        return sum(values) / len(values) if values else 0.0

    def percentile(self, operation: str, share: float) -> float:
        """The latency that ``share`` (0 to 1) of the window stays within, in seconds."""
        values = sorted(self._values(operation))
        if not values:
            return 0.0
        return values[min(len(values) - 1, int(share * len(values)))]

    def _values(self, operation: str) -> list[float]:
        with self._lock:
            return list(self._seconds.get(operation, ()))
