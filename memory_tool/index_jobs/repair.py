"""Repair: what a check found is delivered again or built anew, until a check finds nothing."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Protocol

from memory_tool.findings import REBUILT, REDELIVERED, TRUTH, Drift, Finding, Level
from memory_tool.index_jobs.check import Checked, StoreCheck
from memory_tool.inspection_ports import Redelivery, TruthSide
from memory_tool.log import logger
from memory_tool.model import MemoryId

TURNS: Final = 3
"""Repairs before what is left is only told. One is enough for most, a rebuild may need a second."""

BATCH: Final = 500
"""Memories of one transaction, which holds their namespace."""

OTHERS_SECONDS: Final = 60.0
"""How long another process that holds a lease is given to apply what was repaired."""

_LOOK_SECONDS: Final = 1.0


class Mending(Protocol):
    """Whoever brings the indexes forward, as a repair needs it."""

    def mend(self, targets: Sequence[str], reason: str) -> bool:
        """Build these indexes anew; ``False`` when another process does it."""
        ...

    def apply_now(self) -> bool:
        """Apply everything pending; ``False`` when another process does it."""
        ...

    def hurry(self) -> None:
        """What is pending is due now, whoever applies."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair did.

    Attributes:
        found: What the check before found.
        rebuilt: Indexes that are built anew.
        redelivered: Memories that got fresh numbers.
        by_others: Whether another process had to apply some of it.
        after: What a second check found.
    """

    found: Checked
    rebuilt: tuple[str, ...]
    redelivered: int
    by_others: bool
    after: Checked


class StoreRepair:
    """Repairs what a check finds. The truth is changed in numbers only, never in what it says."""

    def __init__(
        self,
        check: StoreCheck,
        truth: TruthSide,
        *,
        background: Mending,
        fill_gaps: Callable[[], int],
        others_seconds: float = OTHERS_SECONDS,
    ) -> None:
        """Touch nothing yet.

        Args:
            check: Finds what is to be repaired, and whether it was.
            truth: What is changed.
            background: Brings the indexes forward.
            fill_gaps: Embeds chunks that wait for their vectors.
            others_seconds: How long to wait for another process.
        """
        self._check = check
        self._truth = truth
        self._background = background
        self._fill_gaps = fill_gaps
        self._others_seconds = others_seconds

    def run(
        self, level: Level, *, on_target: Callable[[str], None] = lambda _target: None
    ) -> Repaired:
        """Check item by item at least, repair, apply, and check again, until nothing is found.

        What is found again after it was delivered again is in an index that does not take it: that
        one is built anew.

        Raises:
            Unavailable: A store can't be reached. What was repaired until then stays so.
        """
        closely = max(level, Level.ITEMS)
        found = after = self._check.run(closely, on_target=on_target)
        rebuilt: set[str] = set()
        redelivered, here = 0, True
        for turn in range(TURNS):
            if not after.findings:
                break
            anew = to_rebuild(after.findings, again=turn > 0)
            redelivered += self._change_truth(
                # A rebuild reads the truth: what an index seemed to say doesn't matter then.
                [one for one in after.findings if one.target not in anew]
            )
            here = self._apply(anew) and here
            rebuilt |= anew
            after = self._checked_again(closely, here=here)
        for finding in found.findings:
            logger().warning("drift_repaired", **finding.to_dict())
        return Repaired(
            found=found,
            rebuilt=tuple(sorted(rebuilt)),
            redelivered=redelivered,
            by_others=not here,
            after=after,
        )

    def _checked_again(self, level: Level, *, here: bool) -> Checked:
        """A second check; others are given time, who have been told what to do."""
        after = self._check.run(level)
        deadline = time.monotonic() + self._others_seconds
        while not here and after.findings and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            # Told once a minute, as a job of that minute.
            self._background.hurry()
            after = self._check.run(level)
        return after

    def _change_truth(self, findings: Sequence[Finding]) -> int:
        redelivered = sum(map(self._truth.repair.redeliver, redeliveries(findings)))
        for finding in findings:
            if finding.ns_id is None:
                continue
            if finding.drift is Drift.PROGRESS_AHEAD:
                self._truth.log.note_progress(finding.target, {finding.ns_id: finding.highest})
            elif finding.drift is Drift.LOST_CHUNKS and finding.memory_id is not None:
                self._truth.repair.drop_lost_chunks(finding.ns_id, finding.memory_id)
            elif finding.drift is Drift.NO_CHUNKS and finding.memory_id is not None:
                self._truth.repair.ask_for_chunks(finding.ns_id, finding.memory_id)
        while any(finding.drift is Drift.NO_CHUNKS for finding in findings) and self._fill_gaps():
            pass
        return redelivered

    def _apply(self, anew: AbstractSet[str]) -> bool:
        """Bring the indexes forward; ``False`` when another process does some of it."""
        reason = "a check found it wrong"
        mended = self._background.mend(sorted(anew), reason) if anew else True
        return self._background.apply_now() and mended


def to_rebuild(findings: Iterable[Finding], *, again: bool) -> frozenset[str]:
    """The indexes that redelivery can't cure, or did not cure when it is found ``again``. Pure."""
    return frozenset(
        one.target
        for one in findings
        if one.target != TRUTH and (one.drift in REBUILT or (again and one.drift in REDELIVERED))
    )


@dataclass(slots=True)
class _Needs:
    above: int = 0
    memories: dict[MemoryId, int] = field(default_factory=dict)


def redeliveries(findings: Iterable[Finding]) -> Iterator[Redelivery]:
    """What namespaces need, some hundred memories at once. Pure."""
    needs: dict[int, _Needs] = {}
    for finding in findings:
        if finding.ns_id is None or finding.drift not in {*REDELIVERED, Drift.CLOCK_AHEAD}:
            continue
        need = needs.setdefault(finding.ns_id, _Needs())
        need.above = max(need.above, finding.highest)
        if finding.memory_id is not None:
            chunks = need.memories.get(finding.memory_id, 1)
            need.memories[finding.memory_id] = max(chunks, finding.chunks)
    for ns_id, need in sorted(needs.items()):
        for memories in _in_batches(need.memories):
            yield Redelivery(ns_id=ns_id, above=need.above, memories=memories)


def _in_batches(memories: Mapping[MemoryId, int]) -> Iterator[Mapping[MemoryId, int]]:
    ordered = sorted(memories.items())
    # A clock may have to be raised though no memory is concerned.
    for start in range(0, max(len(ordered), 1), BATCH):
        yield dict(ordered[start : start + BATCH])
