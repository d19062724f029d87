"""An index that forgets, mixes up or finds too little, asked for what it should hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from memory_tool.findings import Drift
from memory_tool.index_jobs.check_queries import ask_for_vectors, recall_findings
from memory_tool.inspection_ports import Specimen, TruthAudit
from memory_tool.inventory import Entry
from memory_tool.model import MemoryId, Vector
from memory_tool.ports import VectorView
from memory_tool.query import Candidate
from tests.factories import DIMENSION, unit_vector

VECTORS = np.stack([unit_vector(number) for number in range(64)])
IDS = [f"{number:032x}" for number in range(64)]


@dataclass(frozen=True, slots=True)
class Exact:
    """An index that finds what it holds, and holds the first of all vectors only."""

    vectors: Vector
    held: int = 64

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.scores`."""
        return tuple(hit for hit in self.search(vector, [1], depth=64) if (1, hit.memory_id) in ids)

    def search(self, vector: Vector, ns_ids: Sequence[int], *, depth: int) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.search`."""
        scores = (self.vectors[: self.held] @ vector).tolist()
        best = sorted(range(self.held), key=lambda place: -scores[place])[:depth]
        return tuple(Candidate(1, IDS[place], 0, 1, scores[place]) for place in best)


class Stored:
    """A truth with all of them."""

    def vectors(
        self, target: str, ns_id: int, *, clock: int
    ) -> Sequence[tuple[Sequence[Entry], Vector]]:
        """See :meth:`memory_tool.inspection_ports.TruthAudit.vectors`."""
        half = len(VECTORS) // 2
        return [([], VECTORS[:half]), ([], VECTORS[half:])]


def viewed(index: "Exact") -> VectorView:
    """It is asked for two things only."""
    return cast("VectorView", index)


def specimens() -> list[Specimen]:
    """Every vector of the truth."""
    return [
        Specimen(ns_id=1, entry=Entry(memory_id, 0, 1), vector=vector, words="", bigrams="")
        for memory_id, vector in zip(IDS, VECTORS, strict=True)
    ]


def recall_drifts(index: Exact) -> list[Drift]:
    """What asking for the nearest finds wrong."""
    found = recall_findings(
        viewed(index),
        specimens(),
        target="index",
        audit=cast("TruthAudit", Stored()),
        clocks={1: 1},
    )
    return [finding.drift for finding in found]


def test_an_index_that_holds_another_vector_is_found() -> None:
    """Its product with the stored one is not what a vector has with itself."""
    mixed = VECTORS.copy()
    mixed[3] = unit_vector("another", DIMENSION)
    found = list(ask_for_vectors(viewed(Exact(mixed)), specimens(), target="index"))
    assert [(one.drift, one.memory_id) for one in found] == [(Drift.WRONG_VECTOR, IDS[3])]


def test_an_index_that_lost_a_vector_is_found() -> None:
    """It is not among those that the memory has there."""
    found = list(ask_for_vectors(viewed(Exact(VECTORS, held=63)), specimens(), target="index"))
    assert [one.memory_id for one in found] == [IDS[63]]
    assert "not found" in found[0].found


def test_an_index_that_finds_the_nearest_has_recall() -> None:
    """Over all that the truth has, which comes in parts."""
    assert recall_drifts(Exact(VECTORS)) == []


def test_an_index_that_misses_many_of_the_nearest_is_found() -> None:
    """Half of what the truth has it never finds, as a broken graph."""
    assert recall_drifts(Exact(VECTORS, held=32)) == [Drift.LOW_RECALL]
