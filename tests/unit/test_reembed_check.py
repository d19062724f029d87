"""An index is looked at before searches are switched to it, by what it can know."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from memory_tool.errors import Corrupt
from memory_tool.index_jobs.reembed_check import check_index
from memory_tool.model import MemoryId, Vector
from memory_tool.port_values import StoredVectors
from memory_tool.ports import VectorView
from memory_tool.query import Candidate
from memory_tool.space_ports import VectorSamples
from memory_tool.space_values import EmbeddedText
from tests.factories import unit_vector

CLOCK = 200


def stored(count: int) -> StoredVectors:
    """Vectors of one namespace, each with the number of its row."""
    references = tuple(Candidate(1, f"{n:032x}", 0, n + 1, 0.0) for n in range(count))
    return StoredVectors(
        references=references, vectors=np.stack([unit_vector(n) for n in range(count)])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(VectorSamples):
    """What the truth holds."""

    held: StoredVectors

    def sample(self, space: int, limit: int) -> StoredVectors:
        """Every fifth, and the newest."""
        chosen = [*range(0, len(self.held.references), 5), len(self.held.references) - 1]
        return StoredVectors(
            references=tuple(self.held.references[n] for n in chosen),
            vectors=self.held.vectors[chosen],
        )

    def texts(self, space: int, limit: int) -> tuple[EmbeddedText, ...]:
        """Nobody asks."""
        raise NotImplementedError

    def namespace(self, space: int, ns_id: int, *, limit: int) -> StoredVectors | None:
        """All of it."""
        return self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(VectorView):
    """An index that compares with all that it has, up to its clock."""

    has: StoredVectors
    lost: frozenset[int] = frozenset()
    mark: str | None = None
    remote: bool = False

    def clock(self, ns_id: int) -> int:
        """The same for every namespace."""
        return CLOCK

    def search(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """The nearest of what it has."""
        scores = self.has.vectors @ vector
        found = [
            one._replace(score=float(score))
            for one, score in zip(self.has.references, scores, strict=True)
            if one.version <= CLOCK and one.version not in self.lost
        ]
        return tuple(sorted(found, key=lambda one: -one.score)[:depth])

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """Nobody asks."""
        raise NotImplementedError


def test_what_was_written_since_is_not_missed() -> None:
    """Writes go on while a new space is built: the overlay of a search has them."""
    check_index(Exact(has=stored(300)), Store(held=stored(300)), space=2)


def test_an_index_that_lost_chunks_is_refused() -> None:
    """It would be searched from the next moment on."""
    sampled = frozenset(range(1, CLOCK, 10))
    with pytest.raises(Corrupt, match="not found by their own vector"):
        check_index(Exact(has=stored(300), lost=sampled), Store(held=stored(300)), space=2)
    others = frozenset(n for n in range(CLOCK) if n % 5 in (0, 2, 4))
    with pytest.raises(Corrupt, match="nearest chunks are missed"):
        check_index(Exact(has=stored(300), lost=others), Store(held=stored(300)), space=2)


def test_an_empty_index_of_an_empty_store_is_right() -> None:
    """There is nothing to look for."""
    nothing = StoredVectors(references=(), vectors=np.empty((0, 0), np.float32))

    @dataclass(frozen=True)
    class Empty(Store):
        def sample(self, space: int, limit: int) -> StoredVectors:
            """Nothing."""
            return nothing

    check_index(Exact(has=nothing), Empty(held=nothing), space=2)
