"""What a job is: a kind of work on a target for a period; and what it takes to do it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

Every: TypeAlias = Literal["minute", "hour", "day", "moment"]
"""How long a period is; a moment is never the same twice."""

MayGoOn: TypeAlias = Callable[[], bool]
"""Asked before each step: is this process still the one to do it, and not about to end?"""

Outcome: TypeAlias = Literal["done", "done before", "left to another process"]
"""What became of a job that was offered and should be done at once."""

STORE: Final = "store"
"""The target of jobs that are of the store as a whole."""

_FORMS: Final = {
    "minute": "%Y-%m-%dT%H:%M",
    "hour": "%Y-%m-%dT%H",
    "day": "%Y-%m-%d",
    "moment": "%Y-%m-%dT%H:%M:%S.%f",
}


def period_of(now: datetime, every: Every) -> str:
    """The name of the period that holds this moment, in UTC; later ones sort behind."""
    return now.astimezone(UTC).strftime(_FORMS[every])


def beginning_of(period: str) -> datetime:
    """The moment with which a period of this name begins."""
    return datetime.fromisoformat(period).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One kind of work on one target for one period."""

    kind: str
    target: str
    period: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What became of an offer: the job, and whether it had been done before."""

    job: Job
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """How a process does a kind of job.

    Attributes:
        kind: The kind.
        target: The target of the jobs that it does.
        every: The length of their periods.
        run: Does it, from the beginning if it was left half done. Asks before each step whether to
            go on, and returns early if not.
        by_itself: Appliers offer each period by themselves; else only who wants it does.
    """

    kind: str
    target: str
    every: Every
    run: Callable[[MayGoOn], None]
    by_itself: bool = True
