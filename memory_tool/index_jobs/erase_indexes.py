"""What erasing does to the indexes: all of them anew, and nothing kept for a way back."""

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory_tool.assembly import Background
from memory_tool.erase_ports import ErasedTargets
from memory_tool.erase_values import Place
from memory_tool.index_jobs.target_group import ERASED, INCREMENTAL
from memory_tool.job_ports import Jobs

WAIT_SECONDS: Final = 60.0
"""How long other processes may take before their indexes are said to be waiting."""

_LOOK_SECONDS: Final = 0.5

_GONE: Final = "nobody follows it: its host is gone, or was another store's; its files are refused"


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFrom:
    """What erasing from indexes works with.

    Attributes:
        background: Builds the indexes of this process.
        jobs: Tell other processes.
        targets: Which indexes there are, and which were built since.
        leave_spaces: Lets go of indexes of embedding spaces that are kept for a way back.
    """

    background: Background
    jobs: Jobs
    targets: ErasedTargets
    leave_spaces: Callable[[], None]


class EraseIndexes:
    """Builds the indexes of this process anew and asks others to do it with theirs."""

    def __init__(self, parts: ErasedFrom, *, wait_seconds: float = WAIT_SECONDS) -> None:
        """``wait_seconds`` is how long others are waited for."""
        self._parts = parts
        self._wait_seconds = wait_seconds

    def run(self) -> Sequence[Place]:
        """Do it; a place for each index."""
        parts = self._parts
        since = parts.targets.now()
        parts.leave_spaces()
        ours = {name for group in parts.background.targets.values() for name in group}
        known = parts.targets.known()
        wanted = [target for target, followed in known.items() if followed or target in ours]
        for target in wanted:
            if target not in ours:
                parts.jobs.offer(ERASED, target, every="moment")
        parts.background.do(ERASED, again=True, may_go_on=_always)
        clean = self._waited_for(frozenset(wanted), since)
        places = [_place(target, done=target in clean) for target in wanted]
        gone = sorted(known.keys() - set(wanted))
        return [*places, *(Place(name=one, state="not ours", said=_GONE) for one in gone)]

    def _waited_for(self, wanted: AbstractSet[str], since: datetime) -> AbstractSet[str]:
        parts, end = self._parts, time.monotonic() + self._wait_seconds
        while True:
            # What is kept is too old now, and whoever holds a lease removes it.
            parts.targets.age_kept(since)
            parts.background.do(INCREMENTAL, again=True, may_go_on=_always)
            clean = parts.targets.built_since(since)
            if wanted <= clean or time.monotonic() > end:
                return clean
            time.sleep(_LOOK_SECONDS)


def _place(target: str, *, done: bool) -> Place:
    if done:
        return Place(name=target, state="done", said="built anew, older generations removed")
    said = "another process was asked to build it anew"
    return Place(name=target, state="waiting", said=said)
