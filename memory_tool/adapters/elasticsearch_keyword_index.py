"""The keyword index on an Elasticsearch, as searches see it."""

from collections.abc import Mapping, Sequence

from memory_tool.adapters.elasticsearch_connection import Body, Search, check_whole
from memory_tool.adapters.elasticsearch_generations import Generations
from memory_tool.adapters.elasticsearch_layout import (
    HITS,
    KeywordLayout,
    among,
    candidate,
    definition,
    routing,
)
from memory_tool.adapters.elasticsearch_views import DEPTH_MAX, ElasticsearchView
from memory_tool.bm25 import DEFAULT_WEIGHTS, FIELDS, best_first
from memory_tool.empty_views import EmptyKeywordView
from memory_tool.model import MemoryId
from memory_tool.port_values import KeywordQuery, Pointer
from memory_tool.ports import KeywordIndex, KeywordView
from memory_tool.query import Candidate


class ElasticsearchKeywordIndex(KeywordIndex):
    """See :class:`memory_tool.ports.KeywordIndex`. It never writes."""

    def __init__(
        self,
        generations: Generations,
        *,
        target: str,
        store: str,
        layout: KeywordLayout,
    ) -> None:
        """Ask nothing yet.

        Args:
            generations: The family of indices that the target writes.
            target: See :attr:`target`.
            store: Identity of the store; an index of another one is refused.
            layout: Tokeniser and BM25; an index made with others is refused.
        """
        self.generations = generations
        self.layout = layout
        self._target = target
        self._store = store
        self._definition = definition(layout, None)

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.KeywordIndex.target`."""
        return self._target

    def view(self, pointer: Pointer | None = None) -> KeywordView:
        """See :meth:`memory_tool.ports.KeywordIndex.view`. Nothing is asked yet."""
        if pointer is None:
            return EmptyKeywordView()
        return ElasticsearchKeywordView(
            self.generations, pointer.locator, definition=self._definition, store=self._store
        )

    def close(self) -> None:
        """See :meth:`memory_tool.ports.KeywordIndex.close`. The connection is whose who made it."""


class ElasticsearchKeywordView(ElasticsearchView, KeywordView):
    """See :class:`memory_tool.ports.KeywordView`. A refresh may show more than the clocks say."""

    _weights = DEFAULT_WEIGHTS.by_field()

    def search(
        self,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """See :meth:`memory_tool.ports.KeywordView.search`."""
        searches = self.searches(query, ns_ids, depth=depth, within=within)
        return self.candidates(self.hits(searches, ns_ids))

    def searches(
        self,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None,
    ) -> list[Search]:
        """What has to be asked for hits; nothing where there can't be any."""
        matching = self._any_term(query)
        if not matching or not ns_ids or depth < 1 or within == frozenset():
            return []
        header = {
            "index": self.index,
            "allow_partial_search_results": False,
            # How rare a word is, is counted over all shards: hits of different ones are compared.
            "search_type": "dfs_query_then_fetch",
            **routing(ns_ids),
        }
        body = {
            "query": {
                "bool": {
                    "should": matching,
                    "minimum_should_match": 1,
                    "filter": among(ns_ids, within),
                }
            },
            "size": min(depth, DEPTH_MAX),
            **HITS,
        }
        return [(header, body)]

    def candidates(self, hits: Sequence[Body]) -> tuple[Candidate, ...]:
        """The chunks that hits name."""
        return best_first(candidate(hit, hit["_score"]) for hit in hits)

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.KeywordView.term_documents`."""
        filters: dict[str, Body] = {
            f"{field}/{number}": {"term": {field: term}}
            for field in FIELDS
            for number, term in enumerate(terms)
        }
        filters["all"] = {"exists": {"field": "ns"}}
        header = {"index": self.index, "allow_partial_search_results": False}
        body = {
            "size": 0,
            "track_total_hits": False,
            "aggs": {"held": {"filters": {"filters": filters}}},
        }
        (answer,) = self.connection.search_in_turn([(header, body)])
        check_whole(answer)
        buckets = answer["aggregations"]["held"]["buckets"]
        counts = {
            term: max(buckets[f"{field}/{number}"]["doc_count"] for field in FIELDS)
            for number, term in enumerate(terms)
        }
        return {**counts, "": buckets["all"]["doc_count"]}

    def _any_term(self, query: KeywordQuery) -> list[Body]:
        """A clause for each field that has a term to look for."""
        asked = {"words": query.words, "bigrams": query.bigrams, "extra": query.words}
        return [
            {
                "match": {
                    field: {
                        # The analyzer parts at blanks only: each token is one term again.
                        "query": " ".join(asked[field]),
                        "boost": weight,
                    }
                }
            }
            for field, weight in self._weights.items()
            if weight and asked[field]
        ]
