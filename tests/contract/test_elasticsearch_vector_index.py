"""The vector index on a real Elasticsearch keeps the contract."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from memory_tool.adapters.elasticsearch_connection import ElasticsearchConnection
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_layout import VectorLayout
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.adapters.elasticsearch_vector_index import ElasticsearchVectorIndex
from memory_tool.errors import Unavailable
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import ChangeRow, ForeignHistory, Patience, TargetBase
from tests.contract.elasticsearch_pairs import access_of
from tests.contract.vector_history import (
    STORE,
    TARGET,
    VectorHistory,
    VectorPair,
    axis,
    units,
)
from tests.contract.vector_index import VectorIndexContract
from tests.contract.vector_target import VectorTargetContract
from tests.services.elasticsearch import ElasticsearchServer


class TestElasticsearchVectorIndex(VectorIndexContract, VectorTargetContract):
    """Elasticsearch."""

    patience = Patience(rows=1_000, seconds=30.0)

    def agrees(self, found: int, clock: int) -> bool:
        """All that the clock of the search's own request says, and maybe more."""
        return found >= clock

    @pytest.fixture
    def pair(
        self, history: VectorHistory, elasticsearch: ElasticsearchServer, index_prefix: str
    ) -> Iterator[VectorPair]:
        """An index and its target in a family of their own."""
        connection = ElasticsearchConnection(access_of(elasticsearch))
        generations = Generations(
            connection, family=f"{index_prefix}-vector", copies=Copies(replicas=0)
        )
        index = ElasticsearchVectorIndex(
            generations, target=TARGET, store=STORE, space=lambda: history.space
        )
        target = ElasticsearchTarget(generations, name=TARGET, layout=VectorLayout(), log=history)
        yield VectorPair(index=index, target=target, history=history)
        connection.close()

    def test_a_truth_without_vectors_makes_an_empty_index(self, pair: VectorPair) -> None:
        """An index without vectors can't learn them: it is built anew once there are some."""
        pair.history.space = None
        pair.history.put(1, 1, None)
        view = pair.fold()
        assert (view.clock(1), view.search(axis(0, 16), [1], depth=5)) == (1, ())
        pair.history.space = EmbeddingSpace(model="made", dimension=16)
        pair.history.put(1, 1, axis(0, 16))
        with pytest.raises(ForeignHistory):
            pair.fold()
        pair.target.reset()
        assert len(pair.fold().search(axis(0, 16), [1], depth=5)) == 1

    def test_a_batch_that_breaks_off_leaves_no_trace(self, pair: VectorPair) -> None:
        """What it left lies above the clock, where the truth is asked; the next batch mends it."""
        pair.history.put_all(1, units(5, 16))
        pair.fold()
        before = pair.history.published(TARGET)
        pair.history.delete(1, 1)

        def broken(rows: Iterator[ChangeRow]) -> Iterator[ChangeRow]:
            yield from rows
            raise Unavailable

        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as batch:
            torn = replace(batch, rows=broken(batch.rows))
            with pytest.raises(Unavailable):
                pair.target.apply(torn, pair.history)
        assert pair.history.published(TARGET) == before
        assert pair.target.base() == TargetBase(mark=batch.mark, clocks={1: 5})
        assert pair.index.view(before).clock(1) == 5
        assert len(pair.fold().search(axis(0, 16), [1], depth=9)) == 4

    def test_a_switch_that_was_refused_changes_nothing(self, pair: VectorPair) -> None:
        """The truth has the last word on which index is read."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        before = pair.history.published(TARGET)
        pair.target.reset()
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as batch:
            pair.history.refusing = True
            with pytest.raises(Unavailable):
                pair.target.apply(batch, pair.history)
        assert pair.history.published(TARGET) == before
        assert len(pair.index.view(before).search(axis(0, 16), [1], depth=9)) == 1
        pair.history.refusing = False
        assert pair.target.base() == TargetBase(mark=before.mark, clocks={1: 1})
        pair.target.reset()
        pair.fold()
        assert pair.history.published(TARGET).generation > before.generation

    def test_a_view_keeps_seeing_what_it_says_it_sees(self, pair: VectorPair) -> None:
        """What was said before a batch holds after it, whatever else can be seen by then."""
        pair.history.put(1, 1, axis(0, 16))
        before = pair.fold()
        first = (before.mark, before.clock(1))
        pair.history.put(1, 2, axis(0, 16))
        pair.fold()
        assert (before.mark, before.clock(1)) == first
        assert len(before.search(axis(0, 16), [1], depth=9)) == 2
        assert before.clock(1) == 2
