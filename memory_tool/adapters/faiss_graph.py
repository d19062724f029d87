"""The graph or the codes of one large block: built, extended, written, read back and searched.

A FAISS index is never changed while it can be searched (adding during a search ends the process):
one that grows is read into an object of its own, extended and written to another file.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import faiss
import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_codes import IndexKind, kinds_of, selecting
from memory_tool.adapters.faiss_merge import GraphRule
from memory_tool.adapters.faiss_vectors import (
    Halves,
    Rows,
    decoded,
    steps,
)
from memory_tool.errors import Corrupt, TooFewVectors
from memory_tool.model import Vector
from memory_tool.unit_vectors import check_units

_ADD_BYTES: Final = 64 << 20
"""Floats handed to FAISS at once: enough to keep several threads busy."""

_limits = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """When graphs or codes are built, and how.

    Attributes:
        above: Blocks with more rows get one, if they have two at least. Up to 10,000 rows scanning
            takes 0.2 ms and misses nothing; a filtered graph needs as many to be worth it.
        kinds: What is built: the first that finds enough, else the one that finds most.
        ef_construction: Candidates from which the neighbours of a new row are chosen: 80 builds
            2.5 times as fast as 200, for a recall of .965 instead of .985 (100,000 rows, ef 64).
        threads: Threads that build; all cores but one, which searches.
    """

    above: int = 10_000
    kinds: tuple[IndexKind, ...] = field(default_factory=lambda: kinds_of("auto"))
    ef_construction: int = 200
    threads: int = field(default_factory=lambda: max(1, (os.cpu_count() or 1) - 1))

    @property
    def rule(self) -> GraphRule:
        """Which blocks get one. Those too small to train any of the kinds with are scanned."""
        return GraphRule(
            above=max(self.above, min(kind.least for kind in self.kinds) - 1),
            kinds=frozenset(kind.name for kind in self.kinds),
            trained=frozenset(kind.name for kind in self.kinds if kind.trained),
        )


class Graph:
    """A graph or codes that can be searched, from several threads."""

    def __init__(
        self, index: faiss.Index, kind: IndexKind, *, width: int, alive: NDArray[np.bool_] | None
    ) -> None:
        """Search ``index`` so widely; ``alive`` flags its rows if not all are."""
        self.index = index
        self._kind = kind
        self._width = width
        self._parameters = kind.parameters(width)
        self._dead: NDArray[np.bool_] | None = None
        if alive is not None and kind.selects:
            self._parameters = selecting(self._parameters, alive)
        elif alive is not None:
            self._dead = ~alive

    def nearest(self, query: Vector, count: int) -> Rows:
        """At least ``count`` rows of the block near to ``query``, by their codes, if it has them.

        It runs on the calling thread alone: FAISS shares out queries, and this is one.
        """
        wanted = self._kind.candidates(self._width, count)
        found = self._proposed(query, wanted)
        if self._dead is None:
            return found
        living = found[~self._dead[found]]
        while len(living) < wanted and len(found) < self.index.ntotal:
            found = self._proposed(query, 2 * len(found))
            living = found[~self._dead[found]]
        return living[:wanted]

    def _proposed(self, query: Vector, count: int) -> Rows:
        total = self.index.ntotal
        _, rows = self.index.search(query[np.newaxis], min(count, total), params=self._parameters)
        # The number of a row is read from the file in some kinds; the file was hashed before.
        found: Rows = rows[0]
        return found[(found >= 0) & (found < total)]


def read_graph(path: Path, kind: IndexKind, *, rows: int, dimension: int) -> faiss.Index:
    """What is in a file whose hash was found right.

    Raises:
        Corrupt: FAISS can't read it, or it is of another kind or another block.
    """
    name = f"{path.parent.name}/{path.name}"
    try:
        with _bounded(path.stat().st_size):
            index = faiss.read_index(str(path))
    except (RuntimeError, OSError) as error:
        message = f"{name} can't be read as a graph: {error}"
        raise Corrupt(message) from error
    if not kind.recognises(index):
        message = f"{name} holds a {type(index).__name__}, which is not {kind.name}"
        raise Corrupt(message)
    if (index.ntotal, index.d) != (rows, dimension):
        message = f"{name} has {index.ntotal} rows of {index.d}, not {rows} of {dimension}"
        raise Corrupt(message)
    return index


def build_graph(halves: Halves, kind: IndexKind, *, policy: GraphPolicy) -> faiss.Index:
    """An index over these rows, whose order has to be random: that of their ids is.

    Raises:
        TooFewVectors: The kind can't be trained with so few rows; says how many it needs.
        InvalidEmbedding: A stored row is not a unit vector.
    """
    rows, dimension = halves.shape
    if rows < kind.least:
        message = f"{kind.name} is trained with {kind.least:,} vectors at least, not {rows:,}"
        raise TooFewVectors(message)
    index = kind.empty(rows, dimension)
    if not index.is_trained:
        index.train(decoded(training_sample(halves, kind)))
    extend_graph(index, halves, policy=policy)
    return index


def training_sample(halves: Halves, kind: IndexKind) -> Halves:
    """As many rows as the kind is trained with, from everywhere."""
    rows, dimension = halves.shape
    count = min(rows, kind.training_rows(dimension))
    sample: Halves = halves[np.arange(count) * rows // count]
    return sample


def extend_graph(index: faiss.Index, halves: Halves, *, policy: GraphPolicy) -> None:
    """Add rows behind those that it has. Nobody else may hold ``index``.

    Raises:
        InvalidEmbedding: A stored row is not a unit vector of the dimension of the graph.
    """
    if isinstance(index, faiss.IndexHNSW):
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
