"""The thread of a process that applies to the targets of its folder while it holds the lease."""

import threading
import time
from collections.abc import Callable
from typing import Final

from memory_tool.errors import ThreefoldError
from memory_tool.index_jobs.applier import Applier
from memory_tool.log import logger
from memory_tool.ports import Lease

POLL_SECONDS: Final = 1.0
"""How long a write of another process may wait for the index; searches see it at once anyway."""

GROUP_SECONDS: Final = 0.2
"""Writes of this process are collected this long before they are applied."""

CHORE_SECONDS: Final = 60.0
"""How often chores beside applying are looked at."""

CLOSING_LAG: Final = 1000
"""A closing process applies first if more rows than this are pending."""


class BackgroundApplier:
    """Applies in the background. ``wake`` after a commit; ``close`` when the process ends."""

    def __init__(self, applier: Applier, lease: Lease) -> None:
        """Start nothing yet."""
        self._applier = applier
        self._lease = lease
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._chores: list[Callable[[], int]] = []
        self._chores_at = time.monotonic() + CHORE_SECONDS
        self._thread = threading.Thread(target=self._run, name="threefold-applier", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to apply."""
        self._woken.set()

    def distrust(self, target: str, reason: str) -> None:
        """A search found an index that must be rebuilt."""
        if self._applier.distrust(target, reason):
            logger().warning("index_distrusted", target=target, reason=reason)
        self._woken.set()

    def also(self, chore: Callable[[], int]) -> None:
        """Do this too while this process holds the lease: each minute, at once if it helped."""
        self._chores.append(chore)

    def hurry(self) -> None:
        """A search found the indexes far behind: what is pending is due now."""
        self._applier.hurry()
        self._woken.set()

    def apply_now(self) -> bool:
        """Apply everything pending; ``False`` when another process holds the lease."""
        if not self._lease.try_acquire():
            return False
        self._applier.run(force=True)
        return True

    def close(self) -> None:
        """Stop the thread, apply a large backlog, give the lease back. May be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            if self._lease.try_acquire() and self._applier.lag() > CLOSING_LAG:
                self._applier.run(force=True)
        except ThreefoldError as error:
            logger().warning("job_failed", job="apply at close", reason=str(error))
        finally:
            self._applier.close()
            self._lease.release()

    def _run(self) -> None:
        while self._wait():
            try:
                if self._lease.try_acquire():
                    self._applier.run()
                    self._do_chores()
                else:
                    # Who holds the lease meets the same damage in its own searches.
                    self._applier.trust()
            except ThreefoldError as error:
                logger().warning("job_failed", job="apply", reason=str(error))
            except Exception:  # noqa: BLE001 - the loop must outlive any one failure
                logger().exception("job_failed", job="apply")

    def _do_chores(self) -> None:
        if time.monotonic() < self._chores_at:
            return
        # Should one of them fail, the others come with the next round as well.
        self._chores_at = time.monotonic() + CHORE_SECONDS
        helped = [chore() for chore in self._chores if not self._closing.is_set()]
        if any(helped):
            self._chores_at = 0.0

    def _wait(self) -> bool:
        if self._woken.wait(POLL_SECONDS) and not self._closing.is_set():
            self._closing.wait(GROUP_SECONDS)
        self._woken.clear()
        return not self._closing.is_set()
