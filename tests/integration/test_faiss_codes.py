"""Every kind of index that a large block may get: what it finds, refuses and how it grows."""

import copy
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import faiss
import numpy as np
import pytest

from memory_tool.adapters.faiss_codes import KINDS, kind_named, kinds_of
from memory_tool.adapters.faiss_graph import (
    GraphPolicy,
    build_graph,
    read_graph,
    training_sample,
    write_graph,
)
from memory_tool.adapters.faiss_manifest import GraphNote
from memory_tool.errors import Corrupt, TooFewVectors
from memory_tool.model import Vector
from memory_tool.query import Candidate
from memory_tool.vector_kinds import PQ_LEAST, VECTOR_INDEXES
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import (
    ROUNDING,
    TARGET,
    VectorHistory,
    check_exact,
    memory_id,
    units,
)

DIMENSION: Final = 32
ADDED: Final = 200
POLICY: Final = GraphPolicy(threads=1)


def clustered(count: int, *, seed: int) -> Vector:
    """Unit vectors around 100 centres: topics, which are harder than pure chance."""
    random = np.random.default_rng(seed)
    centres = units(100, DIMENSION, seed=1)[random.integers(0, 100, count)]
    vectors: Vector = centres + np.float32(0.7) * units(count, DIMENSION, seed=seed)
    lengths: Vector = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths


QUERIES: Final = clustered(100, seed=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A folder whose namespace 1 was folded, and its vectors."""

    folder: Folder
    vectors: Vector

    def note(self) -> GraphNote:
        """What the published generation says of its index."""
        note = self.folder.block(1).graph
        assert note is not None
        return note

    def search(self, query: Vector, depth: int = 10) -> tuple[Candidate, ...]:
        """What is found now."""
        view = self.folder.index().view(self.folder.history.published(TARGET))
        return view.search(query, [1], depth=depth)

    def recall(self, vectors: Vector) -> float:
        """Share of the ten nearest of these vectors that are found."""
        tenth = np.partition(QUERIES @ vectors.T, -10, axis=1)[:, -10]
        view = self.folder.index().view(self.folder.history.published(TARGET))
        found = 0
        for query, least in zip(QUERIES, tenth, strict=True):
            hits = view.search(query, [1], depth=10)
            found += sum(hit.score >= least - ROUNDING for hit in hits)
        return found / (10 * len(QUERIES))


def filled(root: Path, vector_index: str, *, rows: int, **options: int) -> Filled:
    """So many rows, folded once."""
    folder = Folder(
        root=root,
        history=VectorHistory(DIMENSION),
        graph_above=0,
        vector_index=vector_index,
        **options,
    )
    vectors = clustered(rows, seed=2)
    folder.history.put_all(1, vectors)
    folder.history.fold(folder.target())
    return Filled(folder=folder, vectors=vectors)


@pytest.fixture(scope="module", params=sorted(KINDS))
def once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Filled, for each kind; nobody changes it."""
    rows = max(2000, KINDS[request.param].least)
    return filled(tmp_path_factory.mktemp("kind") / "vectors", request.param, rows=rows)


@pytest.fixture
def each(once: Filled, tmp_path: Path) -> Filled:
    """A copy of it."""
    root = tmp_path / "vectors"
    shutil.copytree(once.folder.root, root)
    history = copy.deepcopy(once.folder.history)
    return replace(once, folder=replace(once.folder, root=root, history=history))


def test_each_kind_keeps_what_an_index_promises(each: Filled) -> None:
    """Recall, deletions, folds and filters: whatever the codes are, the answer is as good."""
    rows = len(each.vectors)
    kind = KINDS[each.note().kind]
    assert kind.name == each.folder.vector_index
    assert each.note().recall >= kind.recall_wanted
    assert each.recall(each.vectors) >= kind.recall_wanted - 0.01

    history = each.folder.history
    more = clustered(ADDED, seed=4)
    history.put_all(1, more, first=rows)
    nearest = np.argsort(-(each.vectors @ QUERIES[0]))[:150]
    for number in nearest.tolist():
        history.delete(1, number)
    history.fold(each.folder.target())
    assert (each.folder.block(1).runs, each.folder.block(1).dead) == ((rows, ADDED), 150)
    assert each.note().kind == kind.name
    living = np.concatenate((np.delete(each.vectors, nearest, axis=0), more))
    assert each.recall(living) >= kind.recall_wanted - 0.01

    expected = history.exact(QUERIES[0], [1])
    found = each.search(QUERIES[0])
    assert len(found) == 10
    assert all(hit.memory_id in {place.memory_id for place in expected} for hit in found)

    view = each.folder.index().view(history.published(TARGET))
    for step in (2, 40, 1000):
        within = frozenset(memory_id(number) for number in range(0, rows + ADDED, step))
        found = view.search(QUERIES[1], [1], depth=20, within=within)
        check_exact(found, history.exact(QUERIES[1], [1], within=within), depth=20)


def test_each_kind_is_searched_by_several_threads(each: Filled) -> None:
    """An application shares one memory among its threads."""
    view = each.folder.index().view(each.folder.history.published(TARGET))
    alone = [view.search(query, [1], depth=10) for query in QUERIES]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda query: view.search(query, [1], depth=10), QUERIES))
    assert together == alone


def test_each_kind_is_known_again_and_no_other_is_taken_for_it(
    each: Filled, tmp_path: Path
) -> None:
    """A file that is hashed is ours; and still its class decides which code reads it."""
    note, rows = each.note(), len(each.vectors)
    path = each.folder.newest() / note.file
    for kind in KINDS.values():
        if kind.name == note.kind:
            read_graph(path, kind, rows=rows, dimension=DIMENSION)
            continue
        with pytest.raises(Corrupt, match=f"not {kind.name}"):
            read_graph(path, kind, rows=rows, dimension=DIMENSION)
    for wrong in ({"rows": rows + 1, "dimension": DIMENSION}, {"rows": rows, "dimension": 16}):
        with pytest.raises(Corrupt, match=f"has {rows} rows of {DIMENSION}"):
            read_graph(path, KINDS[note.kind], **wrong)
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Corrupt, match="can't be read"):
        read_graph(cut, KINDS[note.kind], rows=rows, dimension=DIMENSION)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(Corrupt, match=f"{note.file} is damaged"):
        each.search(QUERIES[0])


def test_lists_in_a_file_of_their_own_are_refused(tmp_path: Path) -> None:
    """FAISS can be told by a file to map another one."""
    halves = clustered(2000, seed=2).astype(np.float16)
    kind = KINDS["ivf,sq8"]
    index = build_graph(halves, kind, policy=POLICY)
    assert isinstance(index, faiss.IndexIVFScalarQuantizer)
    lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(tmp_path / "lists"))
    index.reset()
    index.replace_invlists(lists)
    index.add(clustered(100, seed=3))
    path = tmp_path / "graph-0.faiss"
    write_graph(index, path)
    with pytest.raises(Corrupt, match="which is not ivf,sq8"):
        read_graph(path, kind, rows=100, dimension=DIMENSION)


def test_too_few_vectors_are_an_error_that_names_the_number() -> None:
    """A codebook of fewer vectors than centroids is those vectors, and says nothing of others."""
    halves = clustered(500, seed=2).astype(np.float16)
    with pytest.raises(TooFewVectors, match="9,984 vectors at least, not 500"):
        build_graph(halves, KINDS["pq"], policy=POLICY)


def test_a_sample_is_as_large_as_training_needs() -> None:
    """Every second row of a few more than that would be too few."""
    kind = KINDS["pq"]
    rows = kind.training_rows(4) + 1
    halves = np.zeros((rows, 4), np.float16)
    assert len(training_sample(halves, kind)) == rows - 1 >= kind.least
    assert len(training_sample(halves[:10_000], kind)) == 10_000


def test_a_namespace_too_small_to_train_with_is_scanned(tmp_path: Path) -> None:
    """It lies beside large ones, is stored as they are, and misses nothing."""
    small = filled(tmp_path / "vectors", "pq", rows=1200)
    assert small.folder.block(1).graph is None
    check_exact(small.search(QUERIES[0]), small.folder.history.exact(QUERIES[0], [1]), depth=10)


def test_codes_are_trained_anew_when_the_block_has_grown_twofold(tmp_path: Path) -> None:
    """What a code means was learned from the first half; a graph just grows."""
    for vector_index, runs in (("rabitq", (2050,)), ("ivf", (2050,)), ("hnsw", (1000, 1000, 50))):
        grown = filled(tmp_path / vector_index, vector_index, rows=1000)
        target = grown.folder.target()
        for first, more in ((1000, 1000), (2000, 50)):
            grown.folder.history.put_all(1, clustered(more, seed=first), first=first)
            grown.folder.history.fold(target)
        assert grown.folder.block(1).runs == runs


def test_another_setting_is_met_by_the_next_fold(tmp_path: Path) -> None:
    """Of a namespace that rests too; auto keeps whichever of its kinds is there."""
    before = filled(tmp_path / "vectors", "ivf", rows=1000)
    for vector_index, kind in (("auto", "ivf,sq8"), ("rabitq", "rabitq"), ("auto", "hnsw32,sq8")):
        after = replace(before, folder=replace(before.folder, vector_index=vector_index))
        after.folder.history.put(2, 1, units(1, DIMENSION)[0])
        after.folder.history.fold(after.folder.target())
        assert after.note().kind == kind


def test_where_a_graph_finds_too_little_there_are_lists(tmp_path: Path) -> None:
    """Neither wins on all data: the fold measures, and notes which it took and what it finds."""
    hnsw = filled(tmp_path / "hnsw", "hnsw", rows=3000, effort=1)
    assert hnsw.note().recall < 0.98
    auto = filled(tmp_path / "auto", "auto", rows=3000, effort=1)
    assert auto.note().kind == "ivf,sq8"
    assert auto.note().recall >= 0.98
    assert auto.recall(auto.vectors) >= 0.97
    folder = replace(auto.folder, vector_index="auto")
    folder.history.put_all(1, clustered(50, seed=5), first=3000)
    folder.history.fold(folder.target())
    assert (folder.block(1).runs, auto.note().kind) == ((3000, 50), "ivf,sq8")


def test_settings_and_kinds_know_the_same_names() -> None:
    """A name that one lacks would be refused, or fail at the first fold."""
    assert {kind.name for name in VECTOR_INDEXES for kind in kinds_of(name)} == set(KINDS)
    assert KINDS["pq"].least == PQ_LEAST
    with pytest.raises(Corrupt, match="none: 'hnsw64'"):
        kind_named("hnsw64")
