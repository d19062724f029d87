"""A check of the whole store: every index that this process can open, and the truth itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from memory_tool.errors import Unavailable
from memory_tool.findings import TRUTH, Finding, Level, confirmed
from memory_tool.index_jobs.check_queries import SAMPLE
from memory_tool.index_jobs.check_target import TargetCheck
from memory_tool.inspection_ports import Inspected, TruthSide
from memory_tool.job_values import STORE
from memory_tool.log import logger
from memory_tool.space_values import without_space

DAILY: Final = Level.FINGERPRINTS
"""How closely the daily job looks: 100,000 chunks take about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found.

    Attributes:
        targets: What was looked at.
        findings: What is not as it should be.
        unchecked: What could not be looked at, and why.
        waiting: Memories that wait for a vector, which is no drift: they are found by words.
    """

    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    unchecked: Mapping[str, str] = field(default_factory=dict)
    waiting: int = 0

    @property
    def clean(self) -> bool:
        """Whether all of it was looked at, and nothing found."""
        return not self.findings and not self.unchecked


class StoreCheck:
    """Compares every index with the truth. It holds no lease and changes nothing."""

    def __init__(
        self, truth: TruthSide, inspected: Sequence[Inspected], *, sample: int = SAMPLE
    ) -> None:
        """``sample`` chunks of each index are asked for."""
        self._truth = truth
        self._targets = [TargetCheck(truth, one, sample=sample) for one in inspected]

    @property
    def targets(self) -> tuple[str, ...]:
        """What it looks at."""
        return tuple(target.target for target in self._targets)

    def run(
        self,
        level: Level,
        *,
        on_target: Callable[[str], None] = lambda _target: None,
    ) -> Checked:
        """Look at everything, ``on_target`` hears what comes next.

        Raises:
            Unavailable: The truth can't answer.
        """
        findings: list[Finding] = []
        unchecked: dict[str, str] = {}
        for target in self._targets:
            on_target(target.target)
            try:
                findings += _twice(partial(target.findings, level))
            except Unavailable as error:
                if error.store == "postgres":
                    raise
                unchecked[target.target] = str(error)
        waiting = 0
        looked = [name for name in self.targets if name not in unchecked]
        if level >= Level.ORPHANS:
            on_target(TRUTH)
            findings += _twice(self._truth.audit.faults)
            waiting = self._truth.audit.waiting()
            looked.append(TRUTH)
        return Checked(
            targets=tuple(looked),
            findings=tuple(findings),
            unchecked=unchecked,
            waiting=waiting,
        )

    @property
    def subjects(self) -> tuple[str, ...]:
        """What is looked at by itself, by names that stay when the model changes."""
        return (*(without_space(target.target) for target in self._targets), STORE)

    def tell_log(self, subject: str) -> None:
        """Look at one of them, and tell the log what is wrong."""
        looks: dict[str, Callable[[], Iterable[Finding]]] = {
            without_space(target.target): partial(target.findings, DAILY)
            for target in self._targets
        }
        looks[STORE] = self._truth.audit.faults
        for finding in _twice(looks[subject]) if subject in looks else ():
            logger().warning("drift_found", **finding.to_dict())


def _twice(look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Only what two looks find: a row may be purged, or a generation replaced, during one."""
    first = list(look())
    return confirmed(first, look()) if first else []
