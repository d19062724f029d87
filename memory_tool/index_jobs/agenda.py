"""What a process can do of the jobs that are offered: offers those that are due, does open ones."""

import time
from collections.abc import Sequence
from typing import Final

from memory_tool.job_ports import ClaimedJob, Jobs
from memory_tool.job_values import Duty, Every, Job, MayGoOn, Offer
from memory_tool.log import logger

LOOK_SECONDS: Final = 5.0
"""How often open jobs are looked for."""

OFFER_SECONDS: Final = 60.0
"""How often periods are offered; first after a while, so that short commands aren't kept."""


class Agenda:
    """The duties of a process, or of one group of targets, one job after the other."""

    def __init__(self, jobs: Jobs, duties: Sequence[Duty] = ()) -> None:
        """Do nothing yet."""
        self._jobs = jobs
        self._duties = {(duty.kind, duty.target): duty for duty in duties}
        self._begun: dict[tuple[str, str], str] = {}
        now = time.monotonic()
        self._look_at = now + LOOK_SECONDS
        self._offer_at = now + OFFER_SECONDS

    def also(self, duty: Duty) -> None:
        """Another duty."""
        self._duties[duty.kind, duty.target] = duty

    def look(self, may_go_on: MayGoOn) -> None:
        """Offer and do what is due, if it is time to look."""
        now = time.monotonic()
        if now >= self._offer_at:
            self._offer_at = now + OFFER_SECONDS
            self.offer_due()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self.do_open(may_go_on)

    def offer(self, kind: str, target: str, *, every: Every | None = None) -> Offer:
        """Offer one job of the present period, which is as long as its duty says, or ``every``."""
        return self._jobs.offer(kind, target, every=every or self._duties[kind, target].every)

    def offer_due(self) -> None:
        """Offer the present period of everything that nobody has to ask for."""
        for duty in self._duties.values():
            if duty.by_itself:
                self._jobs.offer(duty.kind, duty.target, every=duty.every)

    def settle(self, kind: str, target: str) -> None:
        """It was done without having been claimed."""
        self._jobs.finish(kind, target)

    def period(self, kind: str, target: str) -> str:
        """The period of the job of this kind that was begun last."""
        return self._begun[kind, target]

    def do_open(self, may_go_on: MayGoOn, *, kind: str | None = None) -> tuple[Job, ...]:
        """Do open jobs (of one kind only, if it is named) until there is none; those done."""
        wanted = [known for known in self._duties if kind in (None, known[0])]
        done: list[Job] = []
        while may_go_on() and (claimed := self._jobs.claim(wanted)) is not None:
            if self._do(claimed, may_go_on):
                done.append(claimed.job)
        return tuple(done)

    def _do(self, claimed: ClaimedJob, may_go_on: MayGoOn) -> bool:
        job, lease = claimed.job, claimed.lease

        def still() -> bool:
            return may_go_on() and lease.try_acquire()

        try:
            done = still()
            if done:
                self._begun[job.kind, job.target] = job.period
                self._duties[job.kind, job.target].run(still)
                done = still()
            if done:
                self._jobs.finish(job.kind, job.target, period=job.period)
                logger().info("job_done", job=job.kind, target=job.target, period=job.period)
        except Exception:
            self._jobs.put_off(job)
            raise
        finally:
            lease.release()
        return done
