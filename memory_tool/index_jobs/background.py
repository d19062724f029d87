"""The threads of a process that bring indexes forward and do jobs while callers read and write."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from memory_tool.errors import ThreefoldError, Unavailable
from memory_tool.index_jobs.agenda import LOOK_SECONDS, Agenda
from memory_tool.index_jobs.target_group import TargetGroup
from memory_tool.job_values import STORE, Duty, MayGoOn, Outcome
from memory_tool.log import logger
from memory_tool.progress import Watch

_T = TypeVar("_T")

POLL_SECONDS: Final = 1.0
"""How long a write of another process may wait for the index; searches see it at once anyway."""

GROUP_SECONDS: Final = 0.2
"""Writes of this process are collected this long before they are applied."""

BACK_OFF_SECONDS: Final = 10.0
"""Longest wait for a store that can't be reached; the wait doubles with each failure."""


class BackgroundApplier:
    """A thread for each group of targets, and one for the jobs of the store as a whole.

    So a long fold of one index keeps no other waiting, and an engine that is down only its own.
    ``wake`` after a commit; ``close`` when the process ends.
    """

    def __init__(self, groups: Sequence[TargetGroup], agenda: Agenda) -> None:
        """Start nothing yet; ``agenda`` has the duties of the store as a whole."""
        self._groups = tuple(groups)
        self._agenda = agenda
        self._started = False
        self._closed = False
        self._loops = [
            *(_Loop(group.name, group.turn, seconds=POLL_SECONDS) for group in self._groups),
            _Loop(STORE, agenda.look, seconds=LOOK_SECONDS),
        ]

    @property
    def targets(self) -> Mapping[str, Sequence[str]]:
        """The targets of each group."""
        return {group.name: group.targets for group in self._groups}

    def start(self) -> None:
        """Start the threads."""
        self._started = True
        for loop in self._loops:
            loop.start()

    def alive(self) -> bool:
        """Whether every thread is."""
        return all(loop.alive() for loop in self._loops)

    def wake(self) -> None:
        """There is something to apply."""
        for loop in self._loops[:-1]:
            loop.wake()

    def distrust(self, target: str, reason: str) -> None:
        """A search found an index that must be rebuilt."""
        news = [group.distrust(target, reason) for group in self._groups if target in group.targets]
        if any(news):
            logger().warning("index_distrusted", target=target, reason=reason)
        self._told()

    def hurry(self) -> None:
        """A search found the indexes far behind: what is pending is due now."""
        for group in self._groups:
            group.hurry()
        self._told()

    def also(self, duty: Duty) -> None:
        """Do this too, for the store as a whole."""
        self._agenda.also(duty)

    def whenever(self, changed: Callable[[], None]) -> None:
        """The spaces that it follows never change."""

    def apply_now(self) -> bool:
        """Apply everything pending; ``False`` when another process holds a lease."""
        return all(self._each(lambda group: group.apply_now(keep=self._started)).values())

    def mend(self, targets: Sequence[str], reason: str) -> bool:
        """Build these targets anew; ``False`` when another process holds a lease, which is told."""

        def built(group: TargetGroup) -> bool:
            own = [target for target in targets if target in group.targets]
            return not own or group.mend(own, reason, keep=self._started)

        return all(self._each(built).values())

    def once(self, may_go_on: MayGoOn) -> Mapping[str, bool]:
        """Apply everything, do the jobs that are due: for each group, whether it was done here."""
        try:
            return self._each(lambda group: group.once(may_go_on))
        finally:
            self._agenda.offer_due()
            self._agenda.do_open(may_go_on)

    def do(self, kind: str, *, again: bool, may_go_on: MayGoOn) -> Mapping[str, Outcome]:
        """Offer a kind of job for every group and do it here, unless another process does."""
        return self._each(lambda group: group.do(kind, again=again, may_go_on=may_go_on))

    def watch(self, watch: Watch) -> None:
        """Tell of each step of every group from now on."""
        for group in self._groups:
            group.watch(watch)

    def stop(self) -> None:
        """Finish the batch at hand, end the threads, give the leases back. May be called twice."""
        self._end(catch_up=False)

    def close(self) -> None:
        """Like :meth:`stop`, but apply a large backlog first. May be called twice."""
        self._end(catch_up=self._started)

    def _each(self, act: Callable[[TargetGroup], _T]) -> dict[str, _T]:
        """What each group answers; the first failure is raised when all have had their turn."""
        answers: dict[str, _T] = {}
        failures: list[ThreefoldError] = []
        for group in self._groups:
            try:
                answers[group.name] = act(group)
            except ThreefoldError as error:
                logger().warning("job_failed", job=group.name, reason=str(error))
                failures.append(error)
        if failures:
            raise failures[0]
        return answers

    def _end(self, *, catch_up: bool) -> None:
        if self._closed:
            return
        self._closed = True
        for loop in self._loops:
            loop.ask_to_stop()
        for loop in self._loops:
            loop.join()
        for group in self._groups:
            try:
                if catch_up:
                    group.catch_up()
            except ThreefoldError as error:
                logger().warning("job_failed", job="apply at close", reason=str(error))
            finally:
                group.close()

    def _told(self) -> None:
        """Whoever applies has to know."""
        if self._started:
            self.wake()
            return
        for group in self._groups:
            # Who can't be told now is told by the next search.
            with suppress(Unavailable):
                group.pass_on()


class _Loop:
    """A thread that takes turn after turn, at once after a write, and outlives failures."""

    def __init__(self, name: str, turn: Callable[[MayGoOn], None], *, seconds: float) -> None:
        self._name = name
        self._turn = turn
        self._seconds = seconds
        self._failures = 0
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"threefold-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Take the next turn soon."""
        self._woken.set()

    def ask_to_stop(self) -> None:
        """Take no further turn; the one at hand is told not to go on."""
        self._closing.set()
        self._woken.set()

    def join(self) -> None:
        """Wait for the turn at hand."""
        if self._thread.is_alive():
            self._thread.join()

    def _may_go_on(self) -> bool:
        return not self._closing.is_set()

    def _run(self) -> None:
        while self._wait():
            try:
                self._turn(self._may_go_on)
                self._failures = 0
            except ThreefoldError as error:
                self._failures += 1
                logger().warning("job_failed", job=self._name, reason=str(error))
            except Exception:  # noqa: BLE001 - the loop must outlive any one failure
                self._failures += 1
                logger().exception("job_failed", job=self._name)

    def _wait(self) -> bool:
        if self._failures:
            # A write must not wake it: what is down stays down for a while.
            wait = self._seconds * 2 ** min(self._failures, 10)
            self._closing.wait(min(wait, BACK_OFF_SECONDS))
        elif self._woken.wait(self._seconds) and self._may_go_on():
            self._closing.wait(GROUP_SECONDS)
        self._woken.clear()
        return self._may_go_on()
