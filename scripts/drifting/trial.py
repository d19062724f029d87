"""One seed after the other: sown, found, repaired, and not found again."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memory_tool.findings import TRUTH, Drift, Finding, Level
from memory_tool.index_jobs.check import StoreCheck
from memory_tool.index_jobs.check_store import check_of, repair_of
from memory_tool.index_jobs.repair import Repaired, StoreRepair
from scripts.drifting.damage import DAMAGES
from scripts.drifting.lies import DocumentLiar, Liar
from scripts.drifting.scene import Scene
from scripts.drifting.seeds import SEEDS, Seed
from scripts.drifting.truth_seeds import TRUTH_SEEDS

EVERY_CHUNK: Final = 100_000
SOME: Final = 40
"""A server takes its time for each question: only what questions alone can find needs them all."""

_ASKED_FOR: Final = frozenset({Drift.WRONG_VECTOR, Drift.NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of one seed.

    Attributes:
        seed: What was done.
        target: To what.
        found: What the check called it, and what else it found.
        as_expected: Whether it was called by its name, or the damaged file by its.
        repaired: How.
        clean: Whether a second check found nothing.
    """

    seed: str
    target: str
    found: str
    as_expected: bool
    repaired: str
    clean: bool
    seconds: float

    @property
    def well(self) -> bool:
        """Whether all went as it should."""
        return self.as_expected and self.clean


def check_in(scene: Scene, *, sample: int = EVERY_CHUNK) -> StoreCheck:
    """The check of the scene, which asks for every chunk or for so many."""
    found = check_of(scene.tool.stores, sample=sample)
    if found is None:
        message = "this store has no check"
        raise LookupError(message)
    return found


def repair_in(scene: Scene, *, sample: int = EVERY_CHUNK) -> StoreRepair:
    """The repair of the scene."""
    found = repair_of(scene.tool.stores, scene.tool.complete, sample=sample)
    if found is None:
        message = "this store has no repair"
        raise LookupError(message)
    return found


def trials(scene: Scene) -> Iterator[Trial]:
    """Every seed that this scene can take, one at a time."""
    for seed in SEEDS:
        for liar in fitting(seed, scene.liars.values()):
            seconds = time.monotonic()
            seed.sow(scene, liar)
            yield _tried(scene, seed.name, target=liar.name, drift=seed.finds, since=seconds)
    for truth_seed in TRUTH_SEEDS:
        seconds = time.monotonic()
        truth_seed.sow(scene)
        yield _tried(scene, truth_seed.name, target=TRUTH, drift=truth_seed.finds, since=seconds)
    yield from damage_trials(scene)


def damage_trials(scene: Scene) -> Iterator[Trial]:
    """Every damaged file, where the indexes are files; on a server, a lost index."""
    for liar in scene.liars.values():
        if isinstance(liar, DocumentLiar):
            seconds = time.monotonic()
            liar.lose()
            yield _tried(
                scene, "an index lost", target=liar.name, drift=Drift.DAMAGED, since=seconds
            )
    if scene.remote:
        return
    for damage in DAMAGES:
        target = next(liar.name for liar in scene.liars.values() if liar.kind == damage.kind)
        seconds = time.monotonic()
        file = damage.sow(scene)
        yield _tried(
            scene, damage.name, target=target, drift=Drift.DAMAGED, since=seconds, naming=file
        )


def fitting(seed: Seed, liars: Iterable[Liar]) -> Iterator[Liar]:
    """The indexes to which a seed can be done."""
    return (liar for liar in liars if seed.kind in (None, liar.kind))


def _tried(
    scene: Scene, seed: str, *, target: str, drift: Drift, since: float, naming: str = ""
) -> Trial:
    sample = SOME if scene.remote and drift not in _ASKED_FOR else EVERY_CHUNK
    done = repair_in(scene, sample=sample).run(Level.ORPHANS)
    found = done.found.findings
    return Trial(
        seed=seed,
        target=target,
        found=told(found),
        as_expected=any(
            one.drift is drift and one.target == target and naming in one.found for one in found
        ),
        repaired=_how(done),
        clean=done.after.clean,
        seconds=time.monotonic() - since,
    )


def told(findings: Iterable[Finding]) -> str:
    """What was found, by kind and number."""
    kinds = Counter(str(finding.drift) for finding in findings)
    return ", ".join(kind if count == 1 else f"{kind} × {count}" for kind, count in kinds.items())


def _how(done: Repaired) -> str:
    how = [f"{done.redelivered} redelivered"] if done.redelivered else []
    how += ["built anew"] if done.rebuilt else []
    return ", ".join(how) or "noted anew"
