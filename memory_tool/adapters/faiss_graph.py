"""The graph of one large block, and the only file that calls into FAISS.

A FAISS index is never changed while it can be searched (adding during a search ends the process):
a graph that grows is read into an object of its own, extended and written to another file.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import faiss
import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_vectors import (
    Halves,
    Rows,
    decoded,
    steps,
)
from memory_tool.errors import Corrupt
from memory_tool.model import Vector
from memory_tool.unit_vectors import check_units

RECALL_AT: Final = 10
CANDIDATES: Final = 4 * RECALL_AT
"""Fewest candidates that the codes propose and the exact vectors put in order. Four times the
wanted ones bring codes of 8 bits from a recall of .984 to .990, that of whole floats."""

RECALL_WANTED: Final = 0.98
SAMPLED_WANTED: Final = 0.99
"""What the sample has to reach for it. Where rows lie in tight clusters, questions are harder than
rows with noise: .979 for the sample's .989, and .996 at the next width (30,000 made rows in 2,000
clusters). On real texts the sample is the harder one (.993 for .998): there it costs nothing."""

EF_CHOICES: Final = (64, 128, 256, 512)

_NEIGHBOURS: Final = 32
_SAMPLE: Final = 200
_SAMPLE_NOISE: Final = 0.6
"""Length of the noise added to a stored vector to make a query of it. With it the measured recall
was slightly below that of real queries (.993 against .998 on 23,000 real texts); the stored
vectors themselves are too easy, and noise of length 1 too hard (.961)."""

_ADD_BYTES: Final = 64 << 20
"""Floats handed to FAISS at once: enough to keep several threads busy."""

_TRAINING_ROWS: Final = 65_536
_TIE: Final = 1e-5
_limits = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """When graphs are built, and how.

    Attributes:
        above: Blocks with more rows get one, if they have two at least. Up to 10,000 rows scanning
            takes 0.2 ms and misses nothing; a filtered graph needs as many to be worth it.
        ef_construction: Candidates from which the neighbours of a new row are chosen: 80 builds
            2.5 times as fast as 200, for a recall of .965 instead of .985 (100,000 rows, ef 64).
        threads: Threads that build; all cores but one, which searches.
    """

    above: int = 10_000
    ef_construction: int = 200
    threads: int = field(default_factory=lambda: max(1, (os.cpu_count() or 1) - 1))


class Graph:
    """A graph that can be searched, from several threads."""

    def __init__(self, index: faiss.Index, *, ef: int, alive: NDArray[np.bool_] | None) -> None:
        """Search ``index`` with width ``ef``; ``alive`` flags its rows if not all are."""
        self.index = index
        self._parameters = _parameters(ef, alive)

    def nearest(self, query: Vector, count: int) -> Rows:
        """About ``count`` rows of the block near to ``query``, by their codes; at least 40.

        It runs on the calling thread alone: FAISS shares out queries, and this is one.
        """
        queries = query[np.newaxis]
        found = _walk(
            self.index, queries, count=max(count, CANDIDATES), parameters=self._parameters
        )
        return found[found >= 0]


def read_graph(path: Path, *, rows: int, dimension: int) -> faiss.IndexHNSW:
    """The graph in a file whose hash was found right.

    Raises:
        Corrupt: FAISS can't read it, or it is the graph of another block.
    """
    name = f"{path.parent.name}/{path.name}"
    try:
        with _bounded(path.stat().st_size):
            index = faiss.read_index(str(path))
    except (RuntimeError, OSError) as error:
        message = f"{name} can't be read as a graph: {error}"
        raise Corrupt(message) from error
    if not isinstance(index, faiss.IndexHNSWSQ) or (index.ntotal, index.d) != (rows, dimension):
        message = f"{name} has {index.ntotal} rows of {index.d}, not {rows} of {dimension}"
        raise Corrupt(message)
    return index


def build_graph(halves: Halves, policy: GraphPolicy) -> faiss.IndexHNSW:
    """A graph over these rows, whose order has to be random: that of their ids is."""
    index = faiss.IndexHNSWSQ(
        halves.shape[1],
        cast("faiss.ScalarQuantizer", faiss.ScalarQuantizer.QT_8bit),  # the stubs want another type
        _NEIGHBOURS,
        faiss.METRIC_INNER_PRODUCT,
    )
    sample = halves[:: -(-len(halves) // _TRAINING_ROWS)]
    index.train(decoded(sample))
    extend_graph(index, halves, policy=policy)
    return index


def extend_graph(index: faiss.IndexHNSW, halves: Halves, *, policy: GraphPolicy) -> None:
    """Add rows behind those that it has. Nobody else may hold ``index``.

    Raises:
        InvalidEmbedding: A stored row is not a unit vector of the dimension of the graph.
    """
    index.hnsw.efConstruction = policy.ef_construction
    for first, last in steps(0, len(halves), dimension=index.d, at_once=_ADD_BYTES):
        vectors = decoded(halves[first:last])
        check_units(vectors, index.d)
        index.add(vectors)


def write_graph(index: faiss.Index, path: Path) -> None:
    """Write into an existing file, which keeps its permissions."""
    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        message = f"can't write {path.name}: {error}"
        raise OSError(message) from error


def measured_recall(
    index: faiss.Index, halves: Halves, *, dead: NDArray[np.bool_]
) -> tuple[int, float]:
    """The first width that finds enough of the ten nearest rows, or the last, and its recall.

    The queries are stored vectors with noise. A row as near as the tenth counts as found, for
    among equal texts none is better than the other.
    """
    alive = np.flatnonzero(~dead)
    random = np.random.default_rng(len(alive))
    sample = random.choice(alive, min(_SAMPLE, len(alive)), replace=False)
    noise = random.standard_normal((len(sample), halves.shape[1]), dtype=np.float32)
    queries = _unit(decoded(halves[sample]) + _SAMPLE_NOISE * _unit(noise))
    last_score = _tenth_scores(queries, halves, dead=dead)
    ef, recall = 0, 0.0
    for ef in EF_CHOICES:
        parameters = _parameters(ef, ~dead if dead.any() else None)
        found = _walk(index, queries, count=CANDIDATES, parameters=parameters)
        scores = np.einsum("qd,qkd->qk", queries, decoded(halves[found]))
        scores[found < 0] = -np.inf
        best = -np.sort(-scores, axis=1)[:, : min(RECALL_AT, len(alive))]
        recall = float((best >= last_score - _TIE).mean())
        if recall >= SAMPLED_WANTED:
            break
    return ef, recall


def _tenth_scores(queries: Vector, halves: Halves, *, dead: NDArray[np.bool_]) -> Vector:
    """The tenth inner product of each query, or the last one where there are fewer."""
    worst_first = np.empty((len(queries), 0), np.float32)
    for first, last in steps(0, len(halves), dimension=halves.shape[1]):
        alive = halves[first:last][~dead[first:last]]
        scores = np.concatenate((worst_first, queries @ decoded(alive).T), axis=1)
        kept = min(RECALL_AT, scores.shape[1])
        worst_first = np.partition(scores, scores.shape[1] - kept, axis=1)[:, -kept:]
    tenth: Vector = worst_first.min(axis=1, keepdims=True)
    return tenth


def _walk(
    index: faiss.Index, queries: Vector, *, count: int, parameters: faiss.SearchParameters
) -> Rows:
    _, rows = index.search(queries, min(count, index.ntotal), params=parameters)
    return rows


def _parameters(ef: int, alive: NDArray[np.bool_] | None) -> faiss.SearchParameters:
    parameters = faiss.SearchParametersHNSW(efSearch=ef)  # type: ignore[attr-defined] # missing in the stubs
    if alive is not None:
        bits = np.packbits(alive, bitorder="little")
        # The stub is that of C++; the wrapper takes an array and keeps it.
        parameters.sel = faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg, arg-type] # as said above
    return cast("faiss.SearchParameters", parameters)


def _unit(vectors: Vector) -> Vector:
    units: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


@contextlib.contextmanager
def building_threads(threads: int) -> Iterator[None]:
    """Let this thread build with so many threads, and restore what was set before."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextlib.contextmanager
def _bounded(length: int) -> Iterator[None]:
    """No vector of a file is longer than the file: FAISS refuses to make room for more."""
    with _limits:
        before = faiss.get_deserialization_vector_byte_limit()
        faiss.set_deserialization_vector_byte_limit(length)
        try:
            yield
        finally:
            faiss.set_deserialization_vector_byte_limit(before)
