"""Targets follow the log: one look at what is pending, one batch for each target that is due."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from memory_tool.errors import Corrupt
from memory_tool.log import logger
from memory_tool.port_values import ForeignHistory, Patience, TargetBase
from memory_tool.ports import ChangeLog, IndexTarget

BATCH_ROWS: Final[Mapping[str, int]] = {"keyword": 10_000, "vector": 10_000_000}
"""Rows of one batch. A keyword batch is one commit, whose fixed part (on a server 0.2 s) is then a
tenth of it; a fold reads everything in one snapshot."""

_EMPTY: Final = TargetBase(mark=None, clocks={})


def _limit(kind: str, pending: int) -> int:
    # A batch reads past all that is pending: a tenth of it at a time keeps a rebuild linear.
    return max(BATCH_ROWS[kind], pending // 10)


class Applier:
    """Brings targets forward. Only the holder of the data folder's lease runs it. Thread safe."""

    def __init__(
        self,
        log: ChangeLog,
        targets: Sequence[IndexTarget],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the parts; nothing is read yet."""
        self._log = log
        self._targets = tuple(targets)
        self._clock = clock
        self._waiting_since: dict[str, float] = {}
        self._distrusted: dict[str, str] = {}
        self._rebuilding: set[str] = set()
        self._hurried = False
        self._lock = threading.Lock()

    def distrust(self, target: str, reason: str) -> None:
        """Rebuild a target from nothing at the next run."""
        self._distrusted[target] = reason

    def trust(self) -> None:
        """Forget whom to distrust: another process applies now."""
        self._distrusted.clear()

    def hurry(self) -> None:
        """At the next run everything pending is due."""
        self._hurried = True

    def run(self, *, force: bool = False) -> int:
        """Apply what is due (everything with ``force``); the number of batches applied.

        Raises:
            Unavailable: The record store can't be reached.
        """
        with self._lock:
            force, self._hurried = force or self._hurried, False
            return sum(self._bring_forward(target, force=force) for target in self._targets)

    def close(self) -> None:
        """Let go of every target, so that the next holder of the lease can apply."""
        with self._lock:
            for target in self._targets:
                target.close()

    def lag(self) -> int:
        """Numbers that the furthest target still has before it."""
        return max((self._log.pending(self._base(t).clocks) for t in self._targets), default=0)

    def _bring_forward(self, target: IndexTarget, *, force: bool) -> int:
        if target.name in self._distrusted:
            self._reset(target, self._distrusted.pop(target.name))
        batches = 0
        while True:
            base = self._known_base(target)
            pending = self._log.pending(base.clocks)
            if not self._is_due(target.name, target.patience, pending=pending, force=force):
                return batches
            if not self._apply(target, base, pending=pending):
                return batches
            batches += 1
            self._waiting_since.pop(target.name, None)

    def _is_due(self, name: str, patience: Patience, *, pending: int, force: bool) -> bool:
        if pending == 0:
            self._waiting_since.pop(name, None)
            return False
        since = self._waiting_since.setdefault(name, self._clock())
        # Until a lost index is there again, searches do without: that can't wait.
        hurry = force or name in self._rebuilding
        return hurry or pending >= patience.rows or self._clock() - since >= patience.seconds

    def _known_base(self, target: IndexTarget) -> TargetBase:
        base = self._base(target)
        if base.mark is None or self._log.knows(target.name, base.mark):
            return base
        # Nothing may be pending though all is wrong: a restored store has the same numbers again.
        self._reset(target, "its mark is of another history")
        return _EMPTY

    def _base(self, target: IndexTarget) -> TargetBase:
        try:
            return target.base()
        except Corrupt as error:
            self._reset(target, str(error))
            return _EMPTY

    def _apply(self, target: IndexTarget, base: TargetBase, *, pending: int) -> bool:
        try:
            with self._log.changes(
                target.name, target.kind, base=base, limit=_limit(target.kind, pending)
            ) as batch:
                target.apply(batch, self._log)
        except ForeignHistory as error:
            self._reset(target, str(error))
            return base.mark is not None
        except Corrupt as error:
            self._reset(target, str(error))
            return False
        self._rebuilding.discard(target.name)
        # What was said of it while it was rebuilt was said of its predecessor.
        self._distrusted.pop(target.name, None)
        logger().info("applied", target=target.name, pending=pending)
        return True

    def _reset(self, target: IndexTarget, reason: str) -> None:
        logger().warning("target_reset", target=target.name, reason=reason)
        self._rebuilding.add(target.name)
        target.reset()
