"""How often memories are returned, collected in the process and written now and then.

To write at each read would make reads as dear as writes. What a process that is killed had not
written yet is lost, at most a minute: counts say what is used, they promise nothing.
"""

import threading
import time
from collections.abc import Iterable
from typing import Final

from memory_tool.errors import ThreefoldError
from memory_tool.log import logger
from memory_tool.port_values import RowKey
from memory_tool.tier_ports import UseLog

FLUSH_SECONDS: Final = 60.0
FLUSH_MEMORIES: Final = 1_000
"""Memories that are held at most before they are written, about 100 kB."""


class UseCounts:
    """Collects uses and writes them by itself. Thread safe; reads never wait for it."""

    def __init__(self, log: UseLog | None, *, seconds: float = FLUSH_SECONDS) -> None:
        """Without a ``log`` nothing is counted."""
        self._log = log
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[RowKey, tuple[int, float]] = {}
        self._timer: threading.Timer | None = None
        self._closed = False

    def note(self, keys: Iterable[RowKey]) -> None:
        """These memories were returned just now."""
        if self._log is None:
            return
        now = time.monotonic()
        with self._lock:
            for key in keys:
                self._held[key] = (self._held.get(key, (0, now))[0] + 1, now)
            if not self._held or self._closed:
                return
            if len(self._held) >= FLUSH_MEMORIES:
                self._start(0.0)
            elif self._timer is None:
                self._start(self._seconds)

    def _start(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self.flush)
        self._timer.name = "threefold-use"
        self._timer.daemon = True
        self._timer.start()

    def flush(self) -> None:
        """Write what was collected. If that fails it is lost, and said in the log."""
        with self._lock:
            held, self._held = self._held, {}
            self._timer = None
        if self._log is None or not held:
            return
        now = time.monotonic()
        try:
            self._log.add({key: (count, now - at) for key, (count, at) in held.items()})
        except ThreefoldError as error:
            logger().warning("uses_lost", memories=len(held), reason=str(error))

    def close(self) -> None:
        """Write the rest and count no more. May be called twice."""
        with self._lock:
            self._closed = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
        self.flush()
