"""What a fold keeps, extends or builds anew, and what is found afterwards."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import faiss
import numpy as np
import pytest

from memory_tool.adapters.faiss_codes import KINDS
from memory_tool.adapters.faiss_codes_recall import Sample, measured_recall
from memory_tool.adapters.faiss_generation import BlockCache
from memory_tool.adapters.faiss_graph import GraphPolicy, build_graph
from memory_tool.adapters.faiss_manifest import Block, GraphNote
from memory_tool.adapters.faiss_merge import Changes, GraphRule, plan_block
from memory_tool.adapters.faiss_rows import Ids, RowTable
from memory_tool.adapters.faiss_vectors import decoded
from memory_tool.model import Vector
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
    graph = folder.block(1).graph
    assert graph is not None
    assert graph.recall >= 0.98
    folder.history.put_all(1, vectors[20_000:], first=20_000)
    for number in range(1000):
        folder.history.delete(1, number)
    folder.history.fold(target)
    assert (folder.block(1).runs, folder.block(1).dead) == ((20_000, 1000), 1000)
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
    check_exact(view.search(vectors[0], [1], depth=50), expected, depth=50)


def test_a_graph_grows_until_too_much_of_it_is_dead(folder: Folder) -> None:
    """Adding is cheap, building is not; but dead rows take space, and have to go some day."""
    target = folder.target()
    folder.history.put_all(1, units(100, 32))
    folder.history.fold(target)
    for number in range(30):
        folder.history.delete(1, number)
    folder.history.fold(target)
    assert (folder.block(1).runs, folder.block(1).dead) == ((100,), 30)
    folder.history.put_all(1, units(20, 32, seed=1), first=90)
    folder.history.fold(target)
    assert (folder.block(1).runs, folder.block(1).dead) == ((80,), 0)


@pytest.mark.parametrize(("runs", "work"), [(47, "extend"), (48, "build")])
def test_a_graph_of_too_many_runs_is_built_anew(runs: int, work: str) -> None:
    """Each fold adds a run, and finding an id searches them all."""
    rows = RowTable(
        ids=Ids.of([memory_id(number) for number in range(2 * runs)]),
        ordinals=np.zeros(2 * runs, np.uint16),
        versions=np.arange(2 * runs),
        dead=np.zeros(2 * runs, np.bool_),
    )
    graph = GraphNote(file="graph-0.faiss", kind="hnsw32,sq8", width=64, recall=1.0)
    held = Block(ns_id=1, clock=9, start=0, runs=(2,) * runs, graph=graph)
    changes = Changes(
        ids=Ids.of([memory_id(-1)]),
        versions=np.array([1]),
        counts=np.array([1]),
        memories=np.array([0]),
        ordinals=np.zeros(1, np.uint16),
    )
    rule = GraphRule(above=0, kinds=frozenset({"hnsw32,sq8"}))
    plan = plan_block(rows, held, changes=changes, rule=rule)
    assert plan.work == work
    assert plan.block.rows == 2 * runs + 1


def test_a_shrunken_namespace_is_scanned_again(tmp_path: Path) -> None:
    """Up to the limit nothing may be missed."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(32), graph_above=50)
    target = folder.target()
    folder.history.put_all(1, units(51, 32))
    folder.history.fold(target)
    assert folder.block(1).graph is not None
    folder.history.delete(1, 3)
    folder.history.fold(target)
    assert (folder.block(1).graph, folder.block(1).runs) == (None, (50,))


def test_an_unchanged_graph_is_carried_over(folder: Folder) -> None:
    """On disk and in memory: most large namespaces rest in most hours."""
    folder.history.put_all(1, units(100, 32))
    folder.history.put_all(2, units(100, 32, seed=1))
    target, index = folder.target(), folder.index()
    old = index.view(folder.history.fold(target))
    before = folder.newest()
    folder.history.put(2, 200, axis(0, 32))
    folder.history.delete(1, 5)
    new = index.view(folder.history.fold(target))
    assert (before / "graph-0.faiss").samefile(folder.newest() / "graph-0.faiss")
    assert not (before / "graph-1.faiss").samefile(folder.newest() / "graph-1.faiss")
    shared = []
    for held in new.manifest.blocks:
        assert held.graph is not None
        file = new.manifest.files[held.graph.file]
        graph, kept = new.graph_of(held.ns_id, file.sha256), old.graph_of(held.ns_id, file.sha256)
        assert graph is not None
        shared.append(kept is not None and kept.index is graph.index)
    assert shared == [True, False]


def test_a_change_that_no_vector_shows_kills_no_row(folder: Folder) -> None:
    """Pinning and rating are frequent; each would wear out the graph."""
    folder.history.put_all(1, units(100, 32))
    target = folder.target()
    folder.history.fold(target)
    for number in range(20):
        folder.history.touch(1, number)
    folder.history.fold(target)
    assert (folder.block(1).clock, folder.block(1).dead, folder.block(1).runs) == (
        120,
        0,
        (100,),
    )


def test_building_leaves_the_threads_as_they_were(folder: Folder) -> None:
    """The number is one for the whole thread: the application computes there too."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    folder.history.put_all(1, units(100, 32))
    folder.history.fold(folder.target())
    assert faiss.omp_get_max_threads() == 2
    faiss.omp_set_num_threads(before)


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


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    """Its bytes are all that searching small namespaces may take."""
    cache = BlockCache(2 * units(1, 16).nbytes)
    made: list[int] = []

    def used(key: int) -> None:
        def make() -> Vector:
            made.append(key)
            return units(1, 16)

        cache.get(key, make)

    for key in (1, 2, 1, 3, 1, 2):
        used(key)
    assert made == [1, 2, 3, 2]


def test_a_poor_graph_is_searched_wider() -> None:
    """The width is chosen by what was measured: poor graphs cost time, not recall."""
    halves = units(2000, 64).astype(np.float16)
    kind = KINDS["hnsw32,sq8"]
    sample = Sample.of(halves, dead=np.zeros(2000, np.bool_))
    policies = (GraphPolicy(ef_construction=effort, threads=1) for effort in (200, 16))
    good, poor = (
        measured_recall(build_graph(halves, kind, policy=policy), kind, sample=sample)
        for policy in policies
    )
    assert (good[0], poor[0]) == (64, 128)
    assert min(good[1], poor[1]) >= 0.98


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
