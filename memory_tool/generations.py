"""Builds of an index: which one is read, which is being built, which are kept for a way back. Pure.

A successor is followed under a name of its own until it is read: so whatever the truth knows of it
(marks, progress, rows that it can't take) is kept apart from what searches rely on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from memory_tool.port_values import Pointer

Origin: TypeAlias = Literal["incremental", "full"]
"""Whether a generation was brought forward from another one, or built from nothing."""

Way: TypeAlias = Literal["hourly", "daily"]
"""Where to go back to: what was read at the end of the last hour, or the last full build."""

KEPT: Final = timedelta(hours=40)
"""How long a generation may stay that is brought forward no more. What was deleted has to be gone
from every file within 48 hours: it may have waited an hour for its last fold, that fold an hour,
and whoever removes the generation looks each hour and may be late."""

_SUCCESSOR: Final = "next/"
"""In front, for the end of a vector target's name says which embedding space it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGeneration:
    """A generation, as the truth notes it.

    Attributes:
        made_at: When it began to be read, or was copied.
        left_at: Since when it stays as it is; ``None`` for the one that is read.
    """

    pointer: Pointer
    origin: Origin
    made_at: datetime
    left_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What was measured of a build before anybody was sent to it.

    Attributes:
        generation: Its number.
        rows: Chunks that it holds.
        kind: What it is: the kind of index, for people.
        recall: Share of the ten nearest rows found, of the worst graph; ``None`` where nothing is
            approximate or the server sees to it.
        width: How widely that one is searched to reach it: ef, nprobe, or the rows proposed.
    """

    generation: int
    rows: int
    kind: str
    recall: float | None = None
    width: int | None = None


def successor_name(target: str) -> str:
    """The name under which what is being built is followed."""
    return f"{_SUCCESSOR}{target}"


def worth_keeping(
    kept: Iterable[KeptGeneration], *, read: int, now: datetime
) -> tuple[KeptGeneration, ...]:
    """What is kept beside the generation ``read``, if it is young enough.

    The last hourly one and the last daily one; and the newest one, which somebody may be opening
    just now, and which may be the last hourly one when the hour is over.
    """
    others = [one for one in kept if one.pointer.generation != read and _is_young(one, now)]
    found = (
        way_back(others, "hourly", read=read, now=now),
        way_back(others, "daily", read=read, now=now),
        _newest(others),
    )
    return tuple(dict.fromkeys(one for one in found if one is not None))


def way_back(
    kept: Iterable[KeptGeneration], way: Way | str, *, read: int, now: datetime
) -> KeptGeneration | None:
    """The generation to go back to, if there is one.

    Hourly is the newest of those made before this hour began: one of a minute ago would be no way
    back from anything.
    """
    hour = now.replace(minute=0, second=0, microsecond=0)
    found = [
        one
        for one in kept
        if one.pointer.generation != read
        and _is_young(one, now)
        and (one.origin == "full" if way == "daily" else one.made_at < hour)
    ]
    return _newest(found)


def older_than_full(kept: Iterable[KeptGeneration], *, read: int) -> tuple[KeptGeneration, ...]:
    """All but what is read and the last full build: what may hold something that was erased."""
    others = [one for one in kept if one.pointer.generation != read]
    # The one that is read is the newest full build itself, unless it was brought forward since.
    full = _newest(one for one in kept if one.origin == "full")
    return tuple(one for one in others if one != full)


def _is_young(one: KeptGeneration, now: datetime) -> bool:
    return one.left_at is None or now - one.left_at < KEPT


def _newest(kept: Iterable[KeptGeneration]) -> KeptGeneration | None:
    return max(kept, key=lambda one: (one.made_at, one.pointer.generation), default=None)
