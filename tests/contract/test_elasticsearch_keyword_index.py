"""The keyword index on a real Elasticsearch keeps the contract."""

from collections.abc import Iterator

import pytest

from memory_tool.adapters.elasticsearch_connection import ElasticsearchConnection
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import KeywordLayout
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.port_values import ChangeRow, Patience, TargetBase
from tests.contract.elasticsearch_pairs import PointedKeywordIndex, PointerLog, access_of
from tests.contract.keyword_index import KeywordIndexContract, KeywordPair
from tests.contract.keyword_rows import STORE, NotedProgress, apply, batch, chunk, find, gone, row
from tests.services.elasticsearch import ElasticsearchServer

TARGET = "elasticsearch:keyword"


class TestElasticsearchKeywordIndex(KeywordIndexContract):
    """Elasticsearch."""

    patience = Patience(rows=1_000, seconds=30.0)

    def agrees(self, found: list[int], clock: int) -> bool:
        """All that the clock of the search's own request says, and maybe more."""
        return set(range(1, clock + 1)) <= set(found)

    @pytest.fixture
    def pair(self, elasticsearch: ElasticsearchServer, index_prefix: str) -> Iterator[KeywordPair]:
        """An index and its target in a family of their own."""
        connection = ElasticsearchConnection(access_of(elasticsearch))
        generations = Generations(
            connection, family=f"{index_prefix}-keyword", copies=Copies(replicas=0)
        )
        log, layout = PointerLog(), KeywordLayout(tokeniser=1)
        index = ElasticsearchKeywordIndex(generations, target=TARGET, store=STORE, layout=layout)
        target = ElasticsearchTarget(generations, name=TARGET, layout=layout, log=log)
        yield KeywordPair(index=PointedKeywordIndex(index=index, log=log), target=target)
        connection.close()

    def test_a_view_keeps_seeing_what_it_says_it_sees(self, pair: KeywordPair) -> None:
        """What was said before a batch holds after it, whatever else can be seen by then."""
        apply(pair.target, row(1, chunk("tea")), mark="first", clock=4)
        before = pair.index.view()
        assert (before.mark, before.clock(1)) == ("first", 4)
        apply(pair.target, row(2, chunk("tea")), mark="second", clock=6)
        assert find(before, "tea") == [1, 2]
        after = pair.index.view()
        assert (after.mark, after.clock(1), find(after, "tea")) == ("second", 6, [1, 2])

    def test_a_batch_that_breaks_off_leaves_no_trace(self, pair: KeywordPair) -> None:
        """What it left lies above the clock, where the truth is asked; the next batch mends it."""
        apply(pair.target, row(1, chunk("tea")), mark="a")
        log = NotedProgress()

        def broken() -> Iterator[ChangeRow]:
            yield gone(1, version=2)
            yield row(2, chunk("tea"), version=2)
            raise ConnectionError

        with pytest.raises(ConnectionError):
            pair.target.apply(batch(broken(), {1: 2}, mark="b", base_mark="a"), log)
        assert log.noted == []
        # The mark of what was begun: should the truth not know it, nothing here is to be believed.
        assert pair.target.base() == TargetBase(mark="b", clocks={1: 1})
        assert pair.index.view().clock(1) == 1
        apply(pair.target, row(1, chunk("tea"), version=3), row(3, chunk("tea")), clock=3)
        assert find(pair.index.view(), "tea") == [1, 3]

    def test_a_reset_forgets_everything(self, pair: KeywordPair) -> None:
        """The old index is read until the new one has caught up."""
        apply(pair.target, row(1, chunk("tea")), mark="a")
        pair.target.reset()
        assert pair.target.base() == TargetBase(mark=None, clocks={})
        assert find(pair.index.view(), "tea") == [1]
        apply(pair.target, row(2, chunk("tea")), mark="b")
        assert pair.index.view().mark == "b"
        assert find(pair.index.view(), "tea") == [2]
