"""How generations follow each other: what is kept, grown or built anew, and what a kill leaves."""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import faiss
import numpy as np
import pytest

from memory_tool.adapters.faiss_files import file_print, open_generation
from memory_tool.adapters.faiss_manifest import Block, GraphNote
from memory_tool.adapters.faiss_merge import Changes, plan_block
from memory_tool.adapters.faiss_rows import Ids, RowTable
from memory_tool.adapters.faiss_vectors import decoded
from memory_tool.adapters.faiss_verify import verify
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.model import Vector
from memory_tool.ports import ForeignHistory, TargetBase
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import (
    ROUNDING,
    TARGET,
    VectorHistory,
    axis,
    check_exact,
    memory_id,
    units,
)

CHECKOUT: Final = Path(__file__).resolve().parents[2]


def clustered(count: int, *, seed: int) -> Vector:
    """Unit vectors of 32 numbers around 100 centres: topics, which are harder than pure chance."""
    random = np.random.default_rng(seed)
    centres = units(100, 32, seed=1)[random.integers(0, 100, count)]
    vectors: Vector = centres + np.float32(0.7) * units(count, 32, seed=seed)
    lengths: Vector = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


def block(folder: Folder, ns_id: int) -> Block:
    """What the published generation says of a namespace."""
    manifest = folder.index().view(folder.history.published(TARGET)).manifest
    return next(block for block in manifest.blocks if block.ns_id == ns_id)


def newest(folder: Folder) -> Path:
    """The folder that is read now."""
    return folder.root / f"gen-{folder.history.published(TARGET).generation:06}"


def recall(folder: Folder, vectors: Vector) -> float:
    """Share of the ten nearest of these vectors, all of namespace 1, that are found."""
    view = folder.index().view(folder.history.published(TARGET))
    queries = clustered(100, seed=3)
    tenth = np.partition(queries @ vectors.T, -10, axis=1)[:, -10]
    found = 0
    for query, least in zip(queries, tenth, strict=True):
        hits = view.search(query, [1], depth=10)
        found += sum(hit.score >= least - ROUNDING for hit in hits)
    return found / (10 * len(queries))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Empty; graphs from two rows on."""
    return Folder(root=tmp_path / "vectors", history=VectorHistory(32), graph_above=0)


def test_a_large_namespace_is_found_by_its_graph(tmp_path: Path) -> None:
    """The promise: a recall of .98 above the size that is scanned, also after a fold."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(32), graph_above=10_000)
    vectors = clustered(21_000, seed=2)
    folder.history.put_all(1, vectors[:20_000])
    target = folder.target()
    folder.history.fold(target)
    assert recall(folder, vectors[:20_000]) >= 0.98
    graph = block(folder, 1).graph
    assert graph is not None
    assert graph.recall >= 0.98
    folder.history.put_all(1, vectors[20_000:], first=20_000)
    for number in range(1000):
        folder.history.delete(1, number)
    folder.history.fold(target)
    assert (block(folder, 1).runs, block(folder, 1).dead) == ((20_000, 1000), 1000)
    assert recall(folder, vectors[1000:]) >= 0.98


def test_within_a_graph_is_exact(folder: Folder) -> None:
    """A filtered graph finds a fifth of what it should; rows are found by their ids instead."""
    folder.history.put_all(1, clustered(3000, seed=2))
    target = folder.target()
    folder.history.fold(target)
    folder.history.put_all(1, clustered(300, seed=4), first=2900)
    folder.history.fold(target)
    view = folder.index().view(folder.history.published(TARGET))
    query = clustered(1, seed=3)[0]
    for share in (3, 40, 700, 3200):
        within = frozenset(memory_id(number) for number in range(0, 3200, 3200 // share))
        found = view.search(query, [1], depth=20, within=within)
        check_exact(found, folder.history.exact(query, [1], within=within), depth=20)


def test_a_graph_never_proposes_dead_rows(folder: Folder) -> None:
    """If the nearest ones were deleted, the next ones take their places."""
    vectors = clustered(2000, seed=2)
    folder.history.put_all(1, vectors)
    target = folder.target()
    folder.history.fold(target)
    nearest = np.argsort(-(vectors @ vectors[0]))[:100]
    for number in nearest.tolist():
        folder.history.delete(1, number)
    view = folder.index().view(folder.history.fold(target))
    found = view.search(vectors[0], [1], depth=10)
    expected = folder.history.exact(vectors[0], [1])
    assert len(found) == 10
    assert all(hit.memory_id in {place.memory_id for place in expected} for hit in found)


def test_a_graph_grows_until_too_much_of_it_is_dead(folder: Folder) -> None:
    """Adding is cheap, building is not; but dead rows take space, and have to go some day."""
    target = folder.target()
    folder.history.put_all(1, units(100, 32))
    folder.history.fold(target)
    for number in range(30):
        folder.history.delete(1, number)
    folder.history.fold(target)
    assert (block(folder, 1).runs, block(folder, 1).dead) == ((100,), 30)
    folder.history.put_all(1, units(20, 32, seed=1), first=90)
    folder.history.fold(target)
    assert (block(folder, 1).runs, block(folder, 1).dead) == ((80,), 0)


@pytest.mark.parametrize(("runs", "work"), [(47, "extend"), (48, "build")])
def test_a_graph_of_too_many_runs_is_built_anew(runs: int, work: str) -> None:
    """Each fold adds a run, and finding an id searches them all."""
    rows = RowTable(
        ids=Ids.of([memory_id(number) for number in range(2 * runs)]),
        ordinals=np.zeros(2 * runs, np.uint16),
        versions=np.arange(2 * runs),
        dead=np.zeros(2 * runs, np.bool_),
    )
    graph = GraphNote(file="graph-0.faiss", ef=64, recall=1.0)
    held = Block(ns_id=1, clock=9, start=0, runs=(2,) * runs, graph=graph)
    changes = Changes(
        ids=Ids.of([memory_id(-1)]),
        versions=np.array([1]),
        counts=np.array([1]),
        memories=np.array([0]),
        ordinals=np.zeros(1, np.uint16),
    )
    plan = plan_block(rows, held, changes=changes, graph_above=0)
    assert plan.work == work
    assert plan.block.rows == 2 * runs + 1


def test_a_shrunken_namespace_is_scanned_again(tmp_path: Path) -> None:
    """Up to the limit nothing may be missed."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(32), graph_above=50)
    target = folder.target()
    folder.history.put_all(1, units(51, 32))
    folder.history.fold(target)
    assert block(folder, 1).graph is not None
    folder.history.delete(1, 3)
    folder.history.fold(target)
    assert (block(folder, 1).graph, block(folder, 1).runs) == (None, (50,))


def test_an_unchanged_graph_is_carried_over(folder: Folder) -> None:
    """On disk and in memory: most large namespaces rest in most hours."""
    folder.history.put_all(1, units(100, 32))
    folder.history.put_all(2, units(100, 32, seed=1))
    target, index = folder.target(), folder.index()
    old = index.view(folder.history.fold(target))
    before = newest(folder)
    folder.history.put(2, 200, axis(0, 32))
    folder.history.delete(1, 5)
    new = index.view(folder.history.fold(target))
    assert (before / "graph-0.faiss").samefile(newest(folder) / "graph-0.faiss")
    assert not (before / "graph-1.faiss").samefile(newest(folder) / "graph-1.faiss")
    shared = []
    for held in new.manifest.blocks:
        assert held.graph is not None
        file = new.manifest.files[held.graph.file]
        graph, kept = new.graph_of(held.ns_id, file.sha256), old.graph_of(held.ns_id, file.sha256)
        assert graph is not None
        shared.append(kept is not None and kept.index is graph.index)
    assert shared == [True, False]


def test_building_leaves_the_threads_as_they_were(folder: Folder) -> None:
    """The number is one for the whole thread: the application computes there too."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    folder.history.put_all(1, units(100, 32))
    folder.history.fold(folder.target())
    assert faiss.omp_get_max_threads() == 2
    faiss.omp_set_num_threads(before)


def test_the_last_two_generations_are_kept(folder: Folder) -> None:
    """A search may have read the pointer just before it was switched."""
    target = folder.target()
    views = []
    for number in range(5):
        folder.history.put(1, number, units(1, 32, seed=number)[0])
        views.append(folder.index().view(folder.history.fold(target)))
    names = sorted(path.name for path in folder.root.iterdir())
    assert names == ["gen-000004", "gen-000005"]
    assert [len(view.search(axis(0, 32), [1], depth=9)) for view in views] == [1, 2, 3, 4, 5]


def test_who_reads_by_an_older_pointer_disturbs_nobody(folder: Folder) -> None:
    """Around a switch searches use both; loading back and forth would stop them all."""
    target, index = folder.target(), folder.index()
    folder.history.put_all(1, units(10, 32))
    older = folder.history.fold(target)
    folder.history.put_all(1, units(10, 32, seed=1), first=10)
    newer = folder.history.fold(target)
    view = index.view(newer)
    assert index.view(older).mark == older.mark
    assert index.view(newer) is view


def test_numbers_are_never_used_again(folder: Folder) -> None:
    """A reader may have the old folder of a name open, or remember its number."""
    folder.history.put_all(1, units(10, 32))
    first = folder.history.fold(folder.target())
    shutil.rmtree(folder.root)
    target = folder.target()
    target.reset()
    assert folder.history.fold(target).generation > first.generation


def test_a_batch_for_an_empty_index_is_no_change_of_a_full_one(folder: Folder) -> None:
    """What was deleted and purged since would stay in it for ever."""
    folder.history.put_all(1, units(10, 32))
    target = folder.target()
    folder.history.fold(target)
    nothing = TargetBase(mark=None, clocks={})
    with (
        folder.history.changes(TARGET, "vector", base=nothing, limit=100) as batch,
        pytest.raises(ForeignHistory),
    ):
        target.apply(batch, folder.history)


def test_a_kill_leaves_the_old_generation_or_the_new(tmp_path: Path) -> None:
    """And the next fold finds its way, and clears up."""
    killed = subprocess.run(
        [sys.executable, "-m", "tests.integration.faiss_killed_folds", str(tmp_path / "folds")],
        cwd=CHECKOUT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == 0, killed.stderr
    assert int(killed.stdout) > 20


def test_everything_is_on_disk_before_it_has_a_name(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure a name without its content would be a damaged index."""
    forced: list[int] = []
    force = os.fsync

    def remember(descriptor: int) -> None:
        force(descriptor)
        forced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", remember)
    folder.history.put_all(1, units(10, 32))
    folder.history.fold(folder.target())
    files = {path.stat().st_ino for path in newest(folder).iterdir()}
    assert set(forced[: len(files)]) == files
    assert forced[len(files) :] == [newest(folder).stat().st_ino, folder.root.stat().st_ino]


@pytest.mark.parametrize("name", ["vectors.f16", "versions.i64", "graph-0.faiss"])
def test_a_generation_that_is_damaged_on_its_way_is_not_published(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nobody is sent to a generation that was not read back."""
    folder.history.put_all(1, units(100, 32))
    target = folder.target()
    before = folder.history.fold(target)
    folder.history.put_all(1, units(100, 32, seed=1), first=100)
    force = os.fsync

    def lose_a_byte(descriptor: int) -> None:
        force(descriptor)
        damaged = folder.root / "gen-000002" / name
        if damaged.exists():
            damaged.write_bytes(b"\xaa" + damaged.read_bytes()[1:])

    with monkeypatch.context() as lying_disk:
        lying_disk.setattr(os, "fsync", lose_a_byte)
        with pytest.raises(Corrupt, match=name):
            folder.history.fold(target)
    assert folder.history.published(TARGET) == before
    assert [path.name for path in folder.root.iterdir()] == ["gen-000001"]
    folder.history.fold(target)
    assert block(folder, 1).rows == 200


def test_a_generation_that_does_not_find_its_rows_is_not_published(folder: Folder) -> None:
    """Every file as it was written, and still of no use: the graph is that of other vectors."""
    folder.history.put_all(1, units(200, 32))
    other = replace(folder, root=folder.root / "other", history=VectorHistory(32))
    other.history.put_all(1, units(200, 32, seed=1))
    pointer = folder.history.fold(folder.target())
    other.history.fold(other.target())
    verify(folder.root, pointer)
    opened = open_generation(folder.root, pointer)
    shutil.copyfile(newest(other) / "graph-0.faiss", newest(folder) / "graph-0.faiss")
    files = {**opened.manifest.files, "graph-0.faiss": file_print(newest(other) / "graph-0.faiss")}
    raw = replace(opened.manifest, files=files).encoded()
    (newest(folder) / "manifest.json").write_bytes(raw)
    with pytest.raises(Corrupt, match="does not find"):
        verify(folder.root, replace(pointer, manifest_sha256=hashlib.sha256(raw).hexdigest()))


def test_a_full_disk_is_temporary(folder: Folder) -> None:
    """The last generation stays, and the changes wait."""
    folder.history.put_all(1, units(10, 32))
    target = folder.target()
    before = folder.history.fold(target)
    folder.history.put_all(1, units(2000, 32, seed=1), first=10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(Unavailable, match="can't be written"):
            folder.history.fold(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert folder.history.published(TARGET) == before
    assert [path.name for path in folder.root.iterdir()] == [newest(folder).name]
    folder.history.fold(target)
    assert block(folder, 1).rows == 2010


def test_a_small_cache_changes_no_answer(tmp_path: Path) -> None:
    """Namespaces come and go in it, and one that is too large is read in passing."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(32))
    for ns_id, rows in enumerate((40, 70, 60, 300, 20), start=1):
        folder.history.put_all(ns_id, units(rows, 32, seed=ns_id))
    view = folder.index(cache_bytes=12_800).view(folder.history.fold(folder.target()))
    query = units(1, 32, seed=9)[0]
    for ns_ids in ([1], [2, 3], [4], [5, 1], [1, 2, 3, 4, 5]):
        found = view.search(query, ns_ids, depth=30)
        check_exact(found, folder.history.exact(query, ns_ids), depth=30)


def test_halves_are_decoded_exactly() -> None:
    """Every value that a stored number can have, subnormal ones too."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    assert np.array_equal(decoded(finite), finite.astype(np.float32))


def test_checks_hold_without_asserts(tmp_path: Path) -> None:
    """Under `python -O` FAISS took a wrong dimension and stored memory that was not its own."""
    script = """
import sys
from pathlib import Path
from memory_tool.errors import InvalidEmbedding
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import VectorHistory, units

folder = Folder(root=Path(sys.argv[1]), history=VectorHistory(32), graph_above=0)
folder.history.put_all(1, units(200, 32))
target = folder.target()
view = folder.index().view(folder.history.fold(target))

def refused(call):
    try:
        call()
    except InvalidEmbedding:
        return
    sys.exit("a wrong dimension was taken")

for dimension in (16, 64):
    refused(lambda: view.search(units(1, dimension)[0], [1], depth=1))
    refused(lambda: view.search(units(1, dimension)[0], [1], depth=100))
    folder.history.put(1, 999, units(1, dimension)[0])
    refused(lambda: folder.history.fold(target))
"""
    optimised = subprocess.run(
        [sys.executable, "-O", "-c", script, str(tmp_path / "vectors")],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert optimised.returncode == 0, optimised.stderr
