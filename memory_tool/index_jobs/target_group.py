"""Targets that one process at a time brings forward: those of a folder, or a shared one."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from memory_tool.errors import Unavailable
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.applier import Applier
from memory_tool.job_ports import Jobs, Lease
from memory_tool.job_values import Duty, MayGoOn, Outcome
from memory_tool.log import logger

INCREMENTAL: Final = "incremental"
FULL: Final = "full"
MEND: Final = "mend"

SEEN_SECONDS: Final = 600.0
"""How often a living holder says that its targets are followed; they are retired after a day."""

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
    ) -> None:
        """Hold nothing yet; ``name`` is the target of the group's jobs."""
        self.name = name
        self._applier = applier
        self._lease = lease
        self._note_seen = note_seen
        self._seen_at = 0.0
        self._held = False
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
            self._apply(self._lease.try_acquire, force=True)
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
            self._apply(still, force=True)
            self._agenda.offer_due()
            self._agenda.do_open(still)
            return True
        finally:
            self.close()

    def do(self, kind: str, *, again: bool, may_go_on: MayGoOn) -> Outcome:
        """Offer the present period of a job (a further one with ``again``) and do it, if we may."""
        offer = self._agenda.offer(kind, self.name, every="moment" if again else None)
        if offer.done:
            return "done before"
        if not self._acquire():
            return "left to another process"
        try:
            still = self._while_held(may_go_on)
            self._say_seen()
            done = self._agenda.do_open(still, kind=kind)
            return "done" if done else "left to another process"
        finally:
            self.close()

    def rebuild(self, may_go_on: MayGoOn, *, targets: Sequence[str], reason: str) -> None:
        """Reset targets and apply everything anew, as the lease's holder.

        Raises:
            Unavailable: It could not be done.
        """
        for target in targets:
            self._applier.distrust(target, reason)
        self._apply(may_go_on, force=True)
        left = self._applier.rebuilding.intersection(targets)
        if left and may_go_on():
            message = f"{', '.join(sorted(left))} could not be rebuilt"
            raise Unavailable(message, store=self.name)

    def catch_up(self) -> None:
        """Apply before the process ends, if much is pending that nobody else applies."""
        if self._acquire() and self._applier.lag() > CLOSING_LAG:
            self._applier.run(force=True)

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

    def _apply(self, may_go_on: MayGoOn, *, force: bool = False) -> None:
        self._applier.run(force=force, may_go_on=may_go_on)
        for target in self._applier.take_rebuilt():
            # Who asked for it while it was built asked for this.
            self._agenda.settle(MEND, target)

    def _duties(self) -> list[Duty]:
        def mending(target: str) -> Duty:
            run = partial(self.rebuild, targets=(target,), reason="a search elsewhere met damage")
            return Duty(kind=MEND, target=target, every="minute", run=run, by_itself=False)

        forward = partial(self._apply, force=True)
        anew = partial(self.rebuild, targets=self.targets, reason="a full rebuild was asked for")
        return [
            Duty(kind=INCREMENTAL, target=self.name, every="hour", run=forward),
            Duty(kind=FULL, target=self.name, every="day", run=anew, by_itself=False),
            *map(mending, self.targets),
        ]
