"""The ports of whoever works in the background: leases, jobs, and the register of targets.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memory_tool.job_values import Every, Job, Offer
from memory_tool.ports import VectorIndex


class Lease(Protocol):
    """The right to be the only one who does something.

    Whoever holds it keeps it until it is released or its process dies or stands still too long. It
    spares work; that nothing goes wrong when two believe to hold it is what marks are for.
    """

    def try_acquire(self) -> bool:
        """Take it without waiting, or say ``False``; holding it still is ``True``."""
        ...

    def release(self) -> None:
        """Give it back. Harmless when it isn't held, or when nobody can be told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJob:
    """A job that is ours to do while we hold its lease."""

    job: Job
    lease: Lease


class Jobs(Protocol):
    """What is to be done, each period once, by whichever process comes first."""

    def offer(self, kind: str, target: str, *, every: Every) -> Offer:
        """Put down the job of the present period, by the store's clock, unless it is there."""
        ...

    def claim(self, wanted: Sequence[tuple[str, str]]) -> ClaimedJob | None:
        """An open job of one of these (kind, target) that nobody is at, newest period first."""
        ...

    def finish(self, kind: str, target: str, *, period: str | None = None) -> None:
        """The open periods of this (kind, target) are done, all or up to this one.

        The newest covers the older ones. What was offered while it was done begins later: somebody
        wants it done once more.
        """
        ...

    def put_off(self, job: Job) -> None:
        """It failed: offer it to nobody for a minute."""
        ...


class TargetRegistry(Protocol):
    """Which targets are followed by anybody."""

    def note_seen(self, targets: Sequence[str]) -> None:
        """These are brought forward by a process that lives. Harmless for unknown ones."""
        ...

    def retire(self) -> tuple[str, ...]:
        """Forget pointers, progress and marks of targets unseen for a day; which these were.

        Nothing waits for them any more. Should one come back, its mark is unknown, so that its
        files are refused and built anew.
        """
        ...


@runtime_checkable
class Scrubbed(VectorIndex, Protocol):
    """An index whose files can be read for damage before a search meets it."""

    def scrub(self) -> None:
        """Read everything of the generation that was viewed last.

        Raises:
            Corrupt: Some of it is damaged.
        """
        ...
