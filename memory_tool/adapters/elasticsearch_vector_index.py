"""The vector index on an Elasticsearch, as searches see it."""

from collections.abc import Callable, Sequence
from typing import Final

from memory_tool.adapters.elasticsearch_connection import Body, Search
from memory_tool.adapters.elasticsearch_generations import Generations
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordView
from memory_tool.adapters.elasticsearch_layout import (
    HITS,
    VectorLayout,
    among,
    candidate,
    definition,
    routing,
)
from memory_tool.adapters.elasticsearch_views import DEPTH_MAX, ElasticsearchView, hits_of
from memory_tool.bm25 import best_first
from memory_tool.empty_views import EmptyVectorView
from memory_tool.model import EmbeddingSpace, MemoryId, Vector
from memory_tool.port_values import KeywordQuery, Pointer
from memory_tool.ports import KeywordView, VectorIndex, VectorView
from memory_tool.query import Candidate
from memory_tool.unit_vectors import check_unit

EFFORT: Final = 4
"""Candidates that each segment's graph looks at for each hit that is wanted: one more costs little,
for the time goes to hits that are returned."""

LEAST: Final = 300
"""Candidates of a search that wants few hits."""

RESCORED: Final = 2.0
"""Of those, how many are scored again by the vectors as they were given: the graph's own scores are
of one byte for each dimension."""


SPARE: Final = 20
"""Hits beyond those that are wanted. The server orders equal scores by chance, we by id: as far as
the spare ones reach, the same vectors give the same hits in every copy of an index."""


class ElasticsearchVectorIndex(VectorIndex):
    """See :class:`memory_tool.ports.VectorIndex`. It never writes."""

    def __init__(
        self,
        generations: Generations,
        *,
        target: str,
        store: str,
        space: Callable[[], EmbeddingSpace | None],
    ) -> None:
        """Ask nothing yet.

        Args:
            generations: The family of indices that the target writes.
            target: See :attr:`target`.
            store: Identity of the store; an index of another one is refused.
            space: The store's embedding space, asked at each view.
        """
        self.generations = generations
        self._target = target
        self._store = store
        self._space = space

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.VectorIndex.target`."""
        return self._target

    def view(self, pointer: Pointer | None) -> VectorView:
        """See :meth:`memory_tool.ports.VectorIndex.view`. Nothing is asked yet."""
        if pointer is None:
            return EmptyVectorView()
        space = self._space()
        return ElasticsearchVectorView(
            self.generations, pointer.locator, space=space, store=self._store
        )

    def close(self) -> None:
        """See :meth:`memory_tool.ports.VectorIndex.close`. The connection is whose who made it."""


class ElasticsearchVectorView(ElasticsearchView, VectorView):
    """See :class:`memory_tool.ports.VectorView`. A refresh may show more than the clocks say."""

    def __init__(
        self,
        generations: Generations,
        index: str,
        *,
        space: EmbeddingSpace | None,
        store: str,
    ) -> None:
        """See :class:`ElasticsearchView`; ``space`` is that of its vectors."""
        wanted = definition(VectorLayout(), space)
        super().__init__(generations, index, definition=wanted, store=store)
        self._space = space

    def search(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.search`."""
        searches = self._searches(vector, ns_ids, depth=depth, within=within)
        return self._candidates(self.hits(searches, ns_ids), depth)

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.VectorView.scores`."""
        owners = sorted({ns_id for ns_id, _ in ids})
        named = frozenset(memory_id for _, memory_id in ids)
        searches = self._searches(vector, owners, depth=DEPTH_MAX, within=named)
        # Beside the search whose clocks are believed: these hits must not move them.
        found = self._candidates(hits_of(self.connection.search_in_turn(searches)), DEPTH_MAX)
        wanted = set(ids)
        return tuple(hit for hit in found if (hit.ns_id, hit.memory_id) in wanted)

    def joins(self, keyword: KeywordView) -> bool:
        """See :meth:`memory_tool.ports.JointSearch.joins`."""
        return (
            isinstance(keyword, ElasticsearchKeywordView) and keyword.connection is self.connection
        )

    def search_both(
        self,
        vector: Vector,
        keyword: KeywordView,
        *,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        depth: int,
        within: frozenset[MemoryId] | None,
    ) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
        """See :meth:`memory_tool.ports.JointSearch.search_both`."""
        assert isinstance(keyword, ElasticsearchKeywordView)  # noqa: S101 - `joins` said so
        nearest = self._searches(vector, ns_ids, depth=depth, within=within)
        matching = keyword.searches(query, ns_ids, depth=depth, within=within)
        self.check()
        keyword.check()
        answers = iter(
            self.connection.search_in_turn(
                [
                    *(self.clocks_first(ns_ids), keyword.clocks_first(ns_ids)),
                    *nearest,
                    *matching,
                    *(self.stamp_last(), keyword.stamp_last()),
                ]
            )
        )
        firsts = next(answers), next(answers)
        mine, theirs = [next(answers) for _ in nearest], [next(answers) for _ in matching]
        self.believe(firsts[0], next(answers), ns_ids=ns_ids)
        keyword.believe(firsts[1], next(answers), ns_ids=ns_ids)
        return self._candidates(hits_of(mine), depth), keyword.candidates(hits_of(theirs))

    def _searches(
        self,
        vector: Vector,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None,
    ) -> list[Search]:
        check_unit(vector, self._space.dimension if self._space else vector.size)
        if self._space is None or not ns_ids or depth < 1 or within == frozenset():
            return []
        wanted = min(depth + SPARE, DEPTH_MAX)
        header = {
            "index": self.index,
            "allow_partial_search_results": False,
            **routing(ns_ids),
        }
        body = {
            "knn": {
                "field": "vector",
                "query_vector": vector.tolist(),
                "k": wanted,
                "num_candidates": min(max(EFFORT * wanted, LEAST), DEPTH_MAX),
                "rescore_vector": {"oversample": RESCORED},
                # Inside the clause: behind it, they would leave less than was asked for.
                "filter": among(ns_ids, within),
            },
            "size": wanted,
            **HITS,
        }
        return [(header, body)]

    def _candidates(self, hits: Sequence[Body], depth: int) -> tuple[Candidate, ...]:
        found = best_first(candidate(hit, _inner_product(hit["_score"])) for hit in hits)
        return found[: max(depth, 0)]


def _inner_product(score: float) -> float:
    """The inner product that the server's score, which is never negative, stands for."""
    return score - 1 if score >= 1 else 1 - 1 / score
