"""What share of the nearest rows an index finds, measured, and how widely it has to look for it."""

from dataclasses import dataclass
from typing import Final

import faiss
import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_codes import RECALL_AT, SAMPLED_AIM, IndexKind
from memory_tool.adapters.faiss_graph import Graph
from memory_tool.adapters.faiss_vectors import Halves, decoded, inner_products, steps
from memory_tool.model import Vector

_QUERIES: Final = 200
_NOISE: Final = 0.6
"""Length of the noise added to a stored vector to make a query of it. With it the measured recall
was slightly below that of real queries (.993 against .998 on 23,000 real texts); the stored
vectors themselves are too easy, and noise of length 1 too hard (.961)."""

_TIE: Final = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows of a block, some queries near to them, and how near their tenth neighbours are.

    Attributes:
        halves: The stored vectors of the block.
        alive: Flags those that live, shape (rows,); ``None`` if all do.
        queries: Unit vectors, shape (queries, dimension).
        tenth: The inner product of each with its tenth nearest row, or its last one where there
            are fewer, shape (queries,).
    """

    halves: Halves
    alive: NDArray[np.bool_] | None
    queries: Vector
    tenth: Vector

    @classmethod
    def of(cls, halves: Halves, *, dead: NDArray[np.bool_]) -> "Sample":
        """Stored vectors with noise, compared with every living row."""
        living = np.flatnonzero(~dead)
        random = np.random.default_rng(len(living))
        rows = random.choice(living, min(_QUERIES, len(living)), replace=False)
        noise = random.standard_normal((len(rows), halves.shape[1]), dtype=np.float32)
        queries = _unit(decoded(halves[rows]) + _NOISE * _unit(noise))
        return cls(
            halves=halves,
            alive=~dead if dead.any() else None,
            queries=queries,
            tenth=_tenth_scores(queries, halves, dead=dead),
        )

    def recall(self, index: faiss.Index, kind: IndexKind, *, width: int) -> float:
        """Share of the ten nearest rows that are found.

        A row as near as the tenth counts, for among equal texts none is better than the other.
        """
        graph = Graph(index, kind, width=width, alive=self.alive)
        wanted = min(RECALL_AT, len(self.halves) if self.alive is None else int(self.alive.sum()))
        found = 0
        for query, tenth in zip(self.queries, self.tenth, strict=True):
            near = decoded(self.halves[graph.nearest(query, RECALL_AT)])
            found += min(wanted, int((inner_products(near, query) >= tenth - _TIE).sum()))
        return found / (wanted * len(self.queries))


def measured_recall(index: faiss.Index, kind: IndexKind, *, sample: Sample) -> tuple[int, float]:
    """The first width that finds enough, or the widest, and its recall."""
    width, recall = 0, 0.0
    for width in kind.widths(index):
        recall = sample.recall(index, kind, width=width)
        if recall >= max(kind.recall_wanted, SAMPLED_AIM):
            break
    return width, recall


def _tenth_scores(queries: Vector, halves: Halves, *, dead: NDArray[np.bool_]) -> Vector:
    best = np.empty((len(queries), 0), np.float32)
    for first, last in steps(0, len(halves), dimension=halves.shape[1]):
        alive = halves[first:last][~dead[first:last]]
        scores = np.concatenate((best, queries @ decoded(alive).T), axis=1)
        kept = min(RECALL_AT, scores.shape[1])
        best = np.partition(scores, scores.shape[1] - kept, axis=1)[:, -kept:]
    tenth: Vector = best.min(axis=1)
    return tenth


def _unit(vectors: Vector) -> Vector:
    units: Vector = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units
