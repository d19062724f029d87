"""Targets follow the log: one look at what is pending, one batch for each target that is due."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from memory_tool.breaker import Breaker, Condition
from memory_tool.errors import Corrupt, ThreefoldError
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.port_values import ForeignHistory, Patience, TargetBase

_EMPTY: Final = TargetBase(mark=None, clocks={})


def _always() -> bool:
    return True


def _limit(patience: Patience, pending: int) -> int:
    # A batch reads past all that is pending: a tenth of it at a time keeps a rebuild linear.
    return max(patience.batch, pending // 10)


class Applier:
    """Brings targets forward. Only the holder of their lease runs it. Thread safe."""

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
        self._rebuilt: set[str] = set()
        self._hurried = False
        # One failure is enough to let a target rest: nobody waits for it, as a search would.
        self._breakers = {t.name: Breaker(failures=1, clock=clock) for t in self._targets}
        self._lock = threading.Lock()

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets."""
        return tuple(target.name for target in self._targets)

    @property
    def rebuilding(self) -> frozenset[str]:
        """Targets that were reset and hold nothing yet."""
        return frozenset(self._rebuilding)

    def distrust(self, target: str, reason: str) -> bool:
        """Rebuild a target from nothing at the next run; whether that was news."""
        news = target not in self._distrusted
        self._distrusted[target] = reason
        return news

    def trust(self) -> tuple[str, ...]:
        """Forget whom to distrust, and name them: another process applies now."""
        targets = tuple(self._distrusted)
        for target in targets:
            self._distrusted.pop(target, None)
        return targets

    def hurry(self) -> None:
        """At the next run everything pending is due."""
        self._hurried = True

    def calm(self) -> bool:
        """Forget a hurry, and say whether there was one: another process applies now."""
        hurried, self._hurried = self._hurried, False
        return hurried

    def take_rebuilt(self) -> frozenset[str]:
        """Targets that were rebuilt since this was asked last."""
        rebuilt, self._rebuilt = self._rebuilt, set()
        return frozenset(rebuilt)

    def run(self, *, force: bool = False, may_go_on: MayGoOn = _always) -> int:
        """Apply what is due; the number of batches applied.

        A target that fails keeps no other one from going on. It rests, longer with each failure,
        before it is tried again.

        Args:
            force: Apply everything, to targets that rest too, and tell what went wrong.
            may_go_on: Asked before each batch: a lease may have been lost, or the process be about
                to end.

        Raises:
            ThreefoldError: With ``force``: what the first of the targets failed with.
        """
        with self._lock:
            hurried = self.calm()
            applied, failures = 0, []
            for target in self._targets:
                if not force and not self._breakers[target.name].allows():
                    continue
                try:
                    applied += self._bring_forward(
                        target, force=force or hurried, may_go_on=may_go_on
                    )
                except Exception as error:  # noqa: BLE001 - the others must go on, whatever it is
                    self._let_rest(target.name, error)
                    failures.append(error)
            if force and failures:
                raise failures[0]
            return applied

    def _let_rest(self, name: str, error: Exception) -> None:
        breaker = self._breakers[name]
        if breaker.condition is not Condition.DOWN:
            # Said once, not with each try. Where it failed is worth knowing of our own faults only.
            fault = not isinstance(error, ThreefoldError | OSError)
            reason = f"{type(error).__name__}: {error}"
            logger().warning("target_failed", target=name, reason=reason, exc_info=fault)
        breaker.failed()

    def _note_success(self, name: str) -> None:
        breaker = self._breakers[name]
        if breaker.condition is Condition.DOWN:
            logger().info("target_recovered", target=name)
        breaker.succeeded()
        breaker.caught_up()

    def close(self) -> None:
        """Let go of every target, so that the next holder of the lease can apply."""
        with self._lock:
            for target in self._targets:
                target.close()

    def lag(self) -> int:
        """Numbers that the furthest target still has before it."""
        bases = [self._base(target, _always) for target in self._targets]
        return max((self._log.pending(base.clocks) for base in bases if base), default=0)

    def _bring_forward(self, target: IndexTarget, *, force: bool, may_go_on: MayGoOn) -> int:
        reason = self._distrusted.pop(target.name, None)
        if reason is not None:
            self._reset(target, reason, may_go_on=may_go_on)
        batches = 0
        while (base := self._known_base(target, may_go_on)) is not None:
            pending = self._log.pending(base.clocks)
            if pending == 0:
                self._note_whole(target.name)
            if not self._is_due(target.name, target.patience, pending=pending, force=force):
                self._note_success(target.name)
                break
            if not may_go_on():
                break
            if not self._apply(target, base, pending=pending, may_go_on=may_go_on):
                break
            batches += 1
            self._waiting_since.pop(target.name, None)
        return batches

    def _is_due(self, name: str, patience: Patience, *, pending: int, force: bool) -> bool:
        if pending == 0:
            self._waiting_since.pop(name, None)
            return False
        since = self._waiting_since.setdefault(name, self._clock())
        # Until a lost index is there again, searches do without: that can't wait.
        hurry = force or name in self._rebuilding
        return hurry or pending >= patience.rows or self._clock() - since >= patience.seconds

    def _known_base(self, target: IndexTarget, may_go_on: MayGoOn) -> TargetBase | None:
        base = self._base(target, may_go_on)
        if base is None or base.mark is None or self._log.knows(target.name, base.mark):
            return base
        # Nothing may be pending though all is wrong: a restored store has the same numbers again.
        return self._reset(target, "its mark is of another history", may_go_on=may_go_on)

    def _base(self, target: IndexTarget, may_go_on: MayGoOn) -> TargetBase | None:
        try:
            return target.base()
        except Corrupt as error:
            return self._reset(target, str(error), may_go_on=may_go_on)

    def _apply(
        self, target: IndexTarget, base: TargetBase, *, pending: int, may_go_on: MayGoOn
    ) -> bool:
        try:
            with self._log.changes(
                target.name, target.kind, base=base, limit=_limit(target.patience, pending)
            ) as batch:
                target.apply(batch, self._log)
        except ForeignHistory as error:
            return (
                self._reset(target, str(error), may_go_on=may_go_on) is not None
                and base.mark is not None
            )
        except Corrupt as error:
            self._reset(target, str(error), may_go_on=may_go_on)
            # The next attempt may end the same way: then it is the server that won't have it.
            self._let_rest(target.name, error)
            return False
        self._note_whole(target.name)
        # What was said of it while it was rebuilt was said of its predecessor.
        self._distrusted.pop(target.name, None)
        logger().info("applied", target=target.name, pending=pending)
        return True

    def _note_whole(self, name: str) -> None:
        if name in self._rebuilding:
            self._rebuilding.discard(name)
            self._rebuilt.add(name)

    def _reset(self, target: IndexTarget, reason: str, *, may_go_on: MayGoOn) -> TargetBase | None:
        """Empty the target, and return its base; ``None`` when it isn't ours any more."""
        # Whoever lost the lease may find what its successor did, and must not undo it.
        if not may_go_on():
            return None
        logger().warning("target_reset", target=target.name, reason=reason)
        self._rebuilding.add(target.name)
        target.reset()
        return _EMPTY
