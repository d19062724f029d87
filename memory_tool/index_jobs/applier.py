"""Targets follow the log: one look at what is pending, one batch for each target that is due.

A target that is built anew goes on following while its successor is built, batch by batch in turn:
so no index that searches read falls behind, however long the building takes.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias, TypeVar

from memory_tool.breaker import Breaker, Condition
from memory_tool.errors import Corrupt, ThreefoldError, Unavailable
from memory_tool.generations import Way, successor_name
from memory_tool.index_jobs.renewals import Renewals, enough
from memory_tool.index_jobs.tally import Tally
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.port_values import ForeignHistory, Patience, TargetBase
from memory_tool.progress import Watch
from memory_tool.renewal_ports import Renewable

Building: TypeAlias = Literal["all", "needed", "none"]
"""Which successors to bring forward: all, or those without which searches have no index."""

FIRST_ROWS: Final = 50_000
"""More than this is not applied to an empty index, but built before anybody reads it."""

_T = TypeVar("_T")
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
        renewals: Renewals | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the parts; nothing is read yet. A target without a renewal can only be emptied."""
        self._log = log
        self._targets = tuple(targets)
        self._renewals = renewals or Renewals()
        self._clock = clock
        self._tally = Tally(clock)
        self._waiting_since: dict[str, float] = {}
        self._distrusted: dict[str, str] = {}
        self._rebuilding: set[str] = set()
        self._rebuilt: set[str] = set()
        self._begun_again: set[str] = set()
        self._hurried = False
        # One failure is enough to let a target rest: nobody waits for it, as a search would.
        self._breakers = {t.name: Breaker(failures=1, clock=clock) for t in self._targets}
        self._owners = {successor_name(name): name for name in self._breakers}
        self._lock = threading.Lock()

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets."""
        return tuple(target.name for target in self._targets)

    @property
    def rebuilding(self) -> frozenset[str]:
        """Targets that hold nothing, or nothing to be relied on, and are being built."""
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

    def watch(self, watch: Watch) -> None:
        """Tell of each step from now on."""
        self._tally.watch = watch

    def being_built(self) -> frozenset[str]:
        """Targets that have a successor."""
        return self.between(Renewals.being_built)

    def renew(self, target: str, reason: str, *, afresh: bool = False) -> None:
        """Build a target anew while it is read; one that can't be is emptied at the next run.

        ``afresh`` goes on with no build that was begun before.
        """
        begin = partial(Renewals.begin, target=target, reason=reason, afresh=afresh)
        if not self.between(begin):
            self.distrust(target, reason)

    def run(
        self, *, force: bool = False, building: Building = "all", may_go_on: MayGoOn = _always
    ) -> int:
        """Apply what is due, and build what is being built; the number of batches applied.

        A target that fails keeps no other one from going on. It rests, longer with each failure,
        before it is tried again.

        Args:
            force: Apply everything, to targets that rest too, and tell what went wrong.
            building: Which successors to bring forward as well, until they are read.
            may_go_on: Asked before each batch: a lease may have been lost, or the process be about
                to end.

        Raises:
            ThreefoldError: With ``force``: what the first of the targets failed with.
        """
        hurried = self.calm()
        failures: dict[str, Exception] = {}

        def forward(target: IndexTarget) -> int:
            return self._bring_forward(target, force=force or hurried, may_go_on=may_go_on)

        def following(target: IndexTarget) -> int:
            return self._bring_forward(target, force=False, may_go_on=may_go_on)

        def build(target: IndexTarget) -> int:
            return self._build(target, building=building, may_go_on=may_go_on)

        applied = before = self._each(forward, force=force, failures=failures)
        while building != "none" and (steps := self._each(build, force=force, failures=failures)):
            applied += steps + self._each(following, force=False, failures=failures)
        if force and applied > before:
            # What was switched to is brought to the end as well.
            applied += self._each(forward, force=force, failures=failures)
        if force and failures:
            raise next(iter(failures.values()))
        return applied

    def _each(
        self, act: Callable[[IndexTarget], int], *, force: bool, failures: dict[str, Exception]
    ) -> int:
        """Let every target have its turn, but for those that failed or rest; the sum of it."""
        total = 0
        for target in self._targets:
            name = target.name
            if name in failures or not (force or self._breakers[name].allows()):
                continue
            try:
                # One step at a time: whoever applies now must not wait for a whole rebuild.
                with self._lock:
                    total += act(target)
            except Exception as error:  # noqa: BLE001 - the others must go on, whatever it is
                self._let_rest(name, error)
                failures[name] = error
        return total

    def between(self, act: Callable[[Renewals], _T]) -> _T:
        """Do something with the renewals while nothing is applied, as the holder of the lease."""
        with self._lock:
            return act(self._renewals)

    def compare(self) -> None:
        """Hold every index that is read against the truth; distrust those that differ."""
        for target in self._targets:
            fault = self.between(partial(Renewals.fault, target=target))
            if fault is not None:
                self.distrust(target.name, fault)

    def set_back(self, way: Way) -> None:
        """Let searches read earlier generations of all targets.

        Raises:
            NotFound: A target has none.
            WriteConflict: One may hold rows that were purged since.
        """
        self.between(partial(Renewals.go_back, way=way))
        self._rebuilding.clear()

    def _owner(self, name: str) -> str:
        """The target that a successor is built for; a target is its own."""
        return self._owners.get(name, name)

    def _let_rest(self, name: str, error: Exception) -> None:
        breaker = self._breakers[self._owner(name)]
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
            self._renewals.close()

    def lag(self) -> int:
        """Numbers that the furthest target still has before it."""
        bases = [self._base(target, _always) for target in self._targets]
        return max((self._log.pending(base.clocks) for base in bases if base), default=0)

    def _bring_forward(self, target: IndexTarget, *, force: bool, may_go_on: MayGoOn) -> int:
        reason = self._distrusted.pop(target.name, None)
        if reason is not None:
            self._reset(target, reason, may_go_on=may_go_on)
        batches = 0
        while not self._is_lost(target) and (base := self._known_base(target, may_go_on)):
            pending = self._log.pending(base.clocks)
            if self._is_built_first(target, base, pending=pending):
                break
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

    def _is_lost(self, target: IndexTarget) -> bool:
        """Whether it can't be brought forward, but has to be built anew."""
        return target.name in self._rebuilding and self._renewals.of(target.name) is not None

    def _is_built_first(self, target: IndexTarget, base: TargetBase, *, pending: int) -> bool:
        """Whether so much is missing that nobody should read it before it is whole."""
        renewal = self._renewals.of(target.name)
        if base.mark is not None or renewal is None:
            return False
        if pending <= min(target.patience.batch, FIRST_ROWS) and renewal.successor() is None:
            return False
        renewal.begin()
        self._rebuilding.add(target.name)
        return True

    def _build(self, target: IndexTarget, *, building: Building, may_go_on: MayGoOn) -> int:
        """One step of its successor; 0 when there is nothing to do."""
        renewal = self._renewals.of(target.name)
        if renewal is None or not (building == "all" or target.name in self._rebuilding):
            return 0
        successor = renewal.successor()
        if successor is None:
            # Another process finished it.
            self._note_whole(target.name)
            return 0
        base = self._known_base(successor, may_go_on)
        if base is None or not may_go_on():
            return 0
        pending = self._log.pending(base.clocks)
        if pending <= (0 if base.mark is None else self._enough(target, successor)):
            self._switch(target, renewal, successor=successor)
        elif not self._apply(successor, base, pending=pending, may_go_on=may_go_on):
            self._begin_again(target.name)
        self._note_success(target.name)
        return 1

    def _begin_again(self, name: str) -> None:
        """Once: what is damaged again is not cured by it."""
        if name in self._begun_again:
            self._begun_again.discard(name)
            message = f"what is built for {name} is damaged again and again"
            raise Unavailable(message, store=name)
        self._begun_again.add(name)

    def _enough(self, target: IndexTarget, successor: IndexTarget) -> int:
        lost = target.name in self._rebuilding
        read = None if lost else self._log.pending(target.base().clocks)
        return enough(successor.patience, read=read)

    def _switch(self, target: IndexTarget, renewal: Renewable, *, successor: IndexTarget) -> None:
        begun = self._clock()
        try:
            quality = self._renewals.switch(renewal, successor)
        except Corrupt as error:
            logger().warning("index_refused", target=target.name, reason=str(error))
            successor.reset()
            raise
        self._note_whole(target.name)
        self._begun_again.discard(target.name)
        # What was said of it while it was built was said of its predecessor.
        self._distrusted.pop(target.name, None)
        self._tally.built(
            successor.name,
            target.name,
            quality=quality,
            verified=self._renewals.verifying,
            since=begun,
        )

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
        name = target.name
        try:
            with (
                self._log.changes(
                    name, target.kind, base=base, limit=_limit(target.patience, pending)
                ) as batch,
                self._tally.counted(
                    name, self._owner(name), batch=batch, base=base, pending=pending
                ) as counted,
            ):
                target.apply(counted, self._log)
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
        renewal = self._renewals.of(target.name)
        if renewal is not None:
            self._rebuilding.add(target.name)
            renewal.begin()
            return None
        if target.name not in self._owners:
            self._rebuilding.add(target.name)
        target.reset()
        return _EMPTY
