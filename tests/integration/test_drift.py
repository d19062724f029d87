"""Every kind of drift is found by its name, repaired, and not found again: as ``scripts/drift``."""

import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from memory_tool.findings import TRUTH, Drift, Level
from memory_tool.job_values import STORE
from memory_tool.model import NewMemory, Patch
from memory_tool.scope import Namespace, Scope
from memory_tool.space_values import without_space
from scripts.drifting.damage import DAMAGES
from scripts.drifting.scene import Scene, scene_at
from scripts.drifting.seeds import SEEDS
from scripts.drifting.trial import check_in, damage_trials, fitting, repair_in
from scripts.drifting.truth_seeds import TRUTH_SEEDS
from tests.factories import new_id
from tests.services.elasticsearch import ElasticsearchServer


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """A store with embedded indexes; each test leaves it clean."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        with scene_at(Path(folder) / "store", memories=90) as scene:
            yield scene


def sown(scene: Scene, *, whole: bool) -> set[tuple[Drift, str]]:
    """Sow all seeds that spoil single entries, or whole indexes; what has to be found."""
    expected = set()
    for seed in SEEDS:
        if seed.whole is whole:
            for liar in fitting(seed, scene.liars.values()):
                seed.sow(scene, liar)
                expected.add((seed.finds, liar.name))
    return expected


def test_a_sound_store_is_clean(scene: Scene) -> None:
    """No false alarm: an operator has to be able to trust it."""
    assert check_in(scene).run(Level.ORPHANS).clean


def test_entries_that_drifted_are_found_and_repaired(scene: Scene) -> None:
    """All kinds at once, in both indexes."""
    expected = sown(scene, whole=False)
    done = repair_in(scene).run(Level.ORPHANS)
    assert {(one.drift, one.target) for one in done.found.findings} >= expected
    assert done.rebuilt == ()
    assert done.after.clean, done.after


def test_indexes_that_belong_elsewhere_are_built_anew(scene: Scene) -> None:
    """One after the other: what is of another history is compared no further."""
    for seed in SEEDS:
        if not seed.whole:
            continue
        liars = list(fitting(seed, scene.liars.values()))
        for liar in liars:
            seed.sow(scene, liar)
        done = repair_in(scene).run(Level.ITEMS)
        found = {(one.drift, one.target) for one in done.found.findings}
        names = {liar.name for liar in liars}
        assert found >= {(seed.finds, name) for name in names}, seed.name
        assert set(done.rebuilt) >= names
        assert done.after.clean, seed.name


def test_a_truth_that_contradicts_itself_is_found_and_repaired(scene: Scene) -> None:
    """Its own walls should keep it from that, but disks and hands don't know them."""
    for seed in TRUTH_SEEDS:
        seed.sow(scene)
    done = repair_in(scene).run(Level.ORPHANS)
    found = {one.drift for one in done.found.findings if one.target == TRUTH}
    assert found >= {seed.finds for seed in TRUTH_SEEDS}
    assert done.after.clean, done.after


def test_damaged_files_are_named_and_built_anew(scene: Scene) -> None:
    """Flipped, cut, lost, swapped or foreign: none is loaded, and no check fails of it."""
    trials = list(damage_trials(scene))
    assert len(trials) == len(DAMAGES)
    assert [trial for trial in trials if not trial.well] == []


def test_a_late_index_is_no_drift(scene: Scene) -> None:
    """What was written, changed and deleted since is merely not applied yet."""
    namespace = Namespace(user="drift", project="late")
    results = scene.tool.store(namespace, [NewMemory(content=f"late {n}") for n in range(5)])
    scene.tool.remove(Scope.of(namespace), str(results[0].id))
    assert check_in(scene).run(Level.ORPHANS).clean
    scene.tool.apply_now()
    scene.tool.remove(Scope.of(namespace), str(results[1].id))
    assert check_in(scene).run(Level.ORPHANS).clean


def test_a_check_beside_writers_raises_no_alarm(scene: Scene) -> None:
    """While rows are written, changed and deleted, and both indexes are brought forward."""
    done = threading.Event()

    def write() -> None:
        namespace = Namespace(user="drift", project="busy")
        while not done.is_set():
            first, second = scene.tool.store(
                namespace, [NewMemory(content=f"busy {new_id()} {at}") for at in range(2)]
            )
            scene.tool.remove(Scope.of(namespace), str(first.id))
            patch = Patch(content=f"changed {new_id()}")
            scene.tool.revise(Scope.of(namespace), str(second.id), patch=patch)

    def bring_forward() -> None:
        while not done.is_set():
            scene.tool.apply_now()

    with ThreadPoolExecutor(2) as beside:
        at_work = [beside.submit(write), beside.submit(bring_forward)]
        try:
            findings = [check_in(scene).run(Level.ORPHANS).findings for _ in range(5)]
        finally:
            done.set()
        for one in at_work:
            one.result()
    assert findings == [()] * 5
    scene.tool.apply_now()
    assert check_in(scene).run(Level.ORPHANS).clean


def test_a_coarse_level_says_less(scene: Scene) -> None:
    """Counts for a whole index, fingerprints by namespace, then each memory."""
    liar = next(iter(scene.liars.values()))
    missing = next(seed for seed in SEEDS if seed.finds is Drift.MISSING)
    missing.sow(scene, liar)
    told = {level: check_in(scene).run(level).findings for level in Level}
    assert [one.drift for one in told[Level.COUNTS]] == [Drift.COUNT]
    (of_namespace,) = told[Level.FINGERPRINTS]
    assert of_namespace.drift is Drift.FINGERPRINT
    (of_memory,) = told[Level.ITEMS]
    assert (of_memory.drift, of_memory.ns_id) == (Drift.MISSING, of_namespace.ns_id)
    assert told[Level.ITEMS] == told[Level.QUERIES] == told[Level.ORPHANS]
    assert repair_in(scene).run(Level.COUNTS).after.clean


def test_the_daily_job_tells_the_log(scene: Scene) -> None:
    """Nobody has to ask; each index is a job of its own, for each host has its own files."""
    check = check_in(scene)
    assert set(check.subjects) == {*map(without_space, scene.liars), STORE}
    for liar in scene.liars.values():
        next(seed for seed in SEEDS if seed.finds is Drift.ORPHAN).sow(scene, liar)
    with capture_logs() as events:
        for subject in check.subjects:
            check.tell_log(subject)
    told = [event["target"] for event in events if event["event"] == "drift_found"]
    assert told == list(scene.liars)
    assert repair_in(scene).run(Level.ITEMS).after.clean


def test_indexes_on_a_server_are_checked_alike(
    elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """Their vectors can't be read back: asking for them tells."""
    settings: dict[str, Any] = {
        "elasticsearch_url": elasticsearch.url,
        "elasticsearch_prefix": index_prefix,
        "elasticsearch_replicas": 0,
        "vector_backend": "elasticsearch",
        "arm_seconds": 20.0,
    }
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        Path(folder).chmod(0o711)
        with scene_at(Path(folder) / "store", memories=24, **settings) as scene:
            assert check_in(scene).run(Level.ORPHANS).clean
            expected = sown(scene, whole=False)
            done = repair_in(scene).run(Level.ORPHANS)
            assert {(one.drift, one.target) for one in done.found.findings} >= expected
            assert done.after.clean, done.after
            for seed in SEEDS:
                if seed.whole:
                    for liar in fitting(seed, scene.liars.values()):
                        seed.sow(scene, liar)
            rebuilt = repair_in(scene).run(Level.ITEMS)
            assert set(rebuilt.rebuilt) == set(scene.liars)
            assert rebuilt.after.clean, rebuilt.after
