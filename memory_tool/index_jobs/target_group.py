"""Targets that one process at a time brings forward: those of a folder, or a shared one."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from memory_tool.errors import NotFound, Unavailable, WriteConflict
from memory_tool.generations import Way
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.applier import Applier, Building
from memory_tool.index_jobs.renewals import Renewals
from memory_tool.job_ports import Jobs, Lease
from memory_tool.job_values import Duty, MayGoOn, Outcome, beginning_of
from memory_tool.log import logger
from memory_tool.progress import Watch

INCREMENTAL: Final = "incremental"
FULL: Final = "full"
ANEW: Final = "anew"
"""A full build that somebody asks for: it leaves out none that was built a short while ago."""

ERASED: Final = "erased"
"""A build after an erasure: from nothing, with nothing older kept beside it."""

MEND: Final = "mend"
TIDY: Final = "tidy"
BACK: Final[Mapping[Way, str]] = {"hourly": "back-hourly", "daily": "back-daily"}

SEEN_SECONDS: Final = 600.0
"""How often a living holder says that its targets are followed; they are retired after a day."""

NONE: Final[AbstractSet[str]] = frozenset()

CLOSING_LAG: Final = 1000
"""A closing process applies first if more rows than this are pending."""


class TargetGroup:
    """Some targets with their applier, under one lease. Thread safe.

    Only the lease's holder touches the targets. The others tell it, by a job, what their searches
    found.
    """

    def __init__(
        self,
        name: str,
        *,
        applier: Applier,
        lease: Lease,
        jobs: Jobs,
        note_seen: Callable[[Sequence[str]], None] = lambda _targets: None,
        daily: bool = False,
    ) -> None:
        """Hold nothing yet.

        Args:
            name: The target of the group's jobs.
            applier: Brings the targets forward.
            lease: The right to do so.
            jobs: The jobs of the store.
            note_seen: Told which targets are followed.
            daily: Whether full builds are offered each day by themselves.
        """
        self.name = name
        self._daily = daily
        self._applier = applier
        self._lease = lease
        self._note_seen = note_seen
        self._seen_at = 0.0
        self._held = False
        self._asked = False
        self._agenda = Agenda(jobs, self._duties())

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets."""
        return self._applier.targets

    def also(self, duty: Duty) -> None:
        """Another duty of the lease's holder."""
        self._agenda.also(duty)

    def distrust(self, target: str, reason: str) -> bool:
        """A search found an index that must be rebuilt; whether that was news."""
        return self._applier.distrust(target, reason)

    def hurry(self) -> None:
        """A search found the indexes far behind."""
        self._applier.hurry()

    def turn(self, may_go_on: MayGoOn) -> None:
        """Apply what is due and do open jobs, if the lease is ours or can be had."""
        if not self._acquire():
            self.pass_on()
            return
        still = self._while_held(may_go_on)
        self._say_seen()
        self._apply(still)
        self._agenda.look(still)

    def pass_on(self) -> None:
        """Tell the lease's holder what searches found here: it may never search itself."""
        for target in self._applier.trust():
            self._agenda.offer(MEND, target)
        if self._applier.calm():
            self._agenda.offer(INCREMENTAL, self.name, every="minute")

    def apply_now(self, *, keep: bool) -> bool:
        """Apply everything pending; ``False`` when another process does it.

        ``keep`` holds on to the lease: this process brings the targets forward from now on.
        """
        if not self._acquire():
            self.pass_on()
            return False
        try:
            self._apply(self._lease.try_acquire, force=True, building="needed")
            return self._lease.try_acquire()
        finally:
            if not keep:
                self.close()

    def mend(self, targets: Sequence[str], reason: str, *, keep: bool) -> bool:
        """Rebuild targets now; ``False`` when another process holds the lease: it is told.

        ``keep`` holds on to the lease.
        """
        if not self._acquire():
            for target in targets:
                self._agenda.offer(MEND, target, every="moment")
            return False
        try:
            self.rebuild(self._lease.try_acquire, targets=targets, reason=reason)
            return True
        finally:
            if not keep:
                self.close()

    def once(self, may_go_on: MayGoOn) -> bool:
        """Apply everything and do the jobs that are due; ``False`` when another process does."""
        if not self._acquire():
            return False
        try:
            still = self._while_held(may_go_on)
            self._say_seen()
            self._apply(still, force=True, building="needed")
            self._agenda.offer_due()
            self._agenda.do_open(still)
            return True
        finally:
            self.close()

    def do(self, kind: str, *, again: bool, may_go_on: MayGoOn) -> Outcome:
        """Offer the present period of a job (a further one with ``again``) and do it, if we may."""
        kind = ANEW if again and kind == FULL else kind
        offer = self._agenda.offer(kind, self.name, every="moment" if again else None)
        if offer.done:
            return "done before"
        if not self._acquire():
            return "left to another process"
        try:
            still = self._while_held(may_go_on)
            self._say_seen()
            self._asked = True
            done = self._agenda.do_open(still, kind=kind)
            return "done" if done else "left to another process"
        finally:
            self._asked = False
            self.close()

    def rebuild(self, may_go_on: MayGoOn, *, targets: Sequence[str], reason: str) -> None:
        """Build targets anew that can't be relied on, as the lease's holder.

        Raises:
            Unavailable: It could not be done.
        """
        for target in targets:
            self._applier.distrust(target, reason)
        self._apply(may_go_on, force=True)
        self._see_that_done(self._applier.rebuilding, targets, may_go_on=may_go_on)

    def renew(self, may_go_on: MayGoOn, *, by_itself: bool) -> None:
        """Build all targets anew while they are read, as the lease's holder.

        What was begun before and left is brought to its end first, and is as good as built now; the
        others may never have been begun.

        Args:
            may_go_on: Asked before each batch.
            by_itself: Leave out those that were built from nothing not long ago.

        Raises:
            Unavailable: It could not be done.
        """
        self._renew(
            may_go_on, but=lambda: self._applier.between(Renewals.fresh) if by_itself else NONE
        )

    def _renew(self, may_go_on: MayGoOn, *, but: Callable[[], AbstractSet[str]]) -> None:
        begun = self._applier.being_built()
        if begun:
            self._build(begun, may_go_on)
            if not may_go_on():
                return
        targets = frozenset(self.targets) - begun - but()
        for target in sorted(targets):
            self._applier.renew(target, "a full build was asked for")
        self._build(targets, may_go_on)

    def _build(self, targets: AbstractSet[str], may_go_on: MayGoOn) -> None:
        self._apply(may_go_on, force=True)
        left = self._applier.being_built() | self._applier.rebuilding
        self._see_that_done(left, targets, may_go_on=may_go_on)

    def _anew(self, may_go_on: MayGoOn) -> None:
        """What was built since it was asked for is done: whoever did that was stopped."""
        asked_at = beginning_of(self._agenda.period(ANEW, self.name))
        built = partial(Renewals.built_since, since=asked_at)
        self._renew(may_go_on, but=lambda: self._applier.between(built))

    def _erase(self, may_go_on: MayGoOn, *, targets: Sequence[str]) -> None:
        for target in targets:
            self._applier.renew(target, "something was erased", afresh=True)
        self._build(frozenset(targets), may_go_on)
        if may_go_on():
            self._applier.between(partial(Renewals.keep_only_new, targets=targets))

    def watch(self, watch: Watch) -> None:
        """Tell of each step from now on."""
        self._applier.watch(watch)

    def _see_that_done(
        self, left: AbstractSet[str], targets: Iterable[str], *, may_go_on: MayGoOn
    ) -> None:
        missing = sorted(left & set(targets))
        if missing and may_go_on():
            message = f"{', '.join(missing)} could not be rebuilt"
            raise Unavailable(message, store=self.name)

    def _hour(self, may_go_on: MayGoOn) -> None:
        self._apply(may_go_on, force=True, building="needed")
        if may_go_on():
            self._applier.compare()
            self._applier.between(Renewals.keep)

    def _back(self, _may_go_on: MayGoOn, *, way: Way) -> None:
        try:
            self._applier.set_back(way)
        except (NotFound, WriteConflict):
            # Nor could it be done in a minute.
            self._agenda.settle(BACK[way], self.name)
            raise

    def catch_up(self) -> None:
        """Apply before the process ends, if much is pending that nobody else applies."""
        if self._acquire() and self._applier.lag() > CLOSING_LAG:
            self._applier.run(force=True, building="none")

    def close(self) -> None:
        """Let go of the targets and give the lease back. May be called twice."""
        self._applier.close()
        self._lease.release()
        self._note_held(held=False)

    def _acquire(self) -> bool:
        held = self._lease.try_acquire()
        self._note_held(held=held)
        return held

    def _note_held(self, *, held: bool) -> None:
        if held != self._held:
            self._held = held
            # Whoever held it in between may have let the targets go unseen.
            self._seen_at = 0.0
            if not held:
                self._applier.close()
            logger().info("lease_taken" if held else "lease_gone", group=self.name)

    def _while_held(self, may_go_on: MayGoOn) -> MayGoOn:
        return lambda: may_go_on() and self._lease.try_acquire()

    def _say_seen(self) -> None:
        now = time.monotonic()
        if not self._seen_at or now - self._seen_at >= SEEN_SECONDS:
            self._note_seen(self.targets)
            self._seen_at = now

    def _apply(
        self, may_go_on: MayGoOn, *, force: bool = False, building: Building = "all"
    ) -> None:
        self._applier.run(force=force, building=building, may_go_on=may_go_on)
        for target in self._applier.take_rebuilt():
            # Who asked for it while it was built asked for this.
            self._agenda.settle(MEND, target)

    def _duties(self) -> list[Duty]:
        def mending(target: str) -> Duty:
            run = partial(self.rebuild, targets=(target,), reason="a search elsewhere met damage")
            return Duty(kind=MEND, target=target, every="minute", run=run, by_itself=False)

        def day(may_go_on: MayGoOn) -> None:
            self.renew(may_go_on, by_itself=not self._asked)

        def erasing(name: str, targets: Sequence[str]) -> Duty:
            run = partial(self._erase, targets=targets)
            return Duty(kind=ERASED, target=name, every="moment", run=run, by_itself=False)

        def tidy(_may_go_on: MayGoOn) -> None:
            self._applier.between(Renewals.tidy)

        def back(way: Way) -> Duty:
            run = partial(self._back, way=way)
            return Duty(kind=BACK[way], target=self.name, every="moment", run=run, by_itself=False)

        return [
            Duty(kind=INCREMENTAL, target=self.name, every="hour", run=self._hour),
            Duty(kind=FULL, target=self.name, every="day", run=day, by_itself=self._daily),
            Duty(kind=ANEW, target=self.name, every="moment", run=self._anew, by_itself=False),
            Duty(kind=TIDY, target=self.name, every="day", run=tidy),
            *map(back, BACK),
            *map(mending, self.targets),
            *(erasing(target, (target,)) for target in self.targets),
            erasing(self.name, self.targets),
        ]
