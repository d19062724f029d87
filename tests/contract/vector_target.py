"""What every target that feeds a vector index has to do."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from memory_tool.errors import InvalidEmbedding, Unavailable
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.port_values import ChangeRow, ForeignHistory, TargetBase
from tests.contract.vector_history import (
    TARGET,
    VectorHistory,
    VectorPair,
    axis,
    check_exact,
    memory_id,
    units,
)


class VectorTargetContract:
    """Subclass it for an adapter and override ``pair``; every index in it is named ``TARGET``."""

    @pytest.fixture
    def history(self) -> VectorHistory:
        """A truth without rows, of 16 dimensions."""
        return VectorHistory()

    @pytest.fixture
    def pair(self, history: VectorHistory) -> VectorPair:
        """An empty index and its target, over ``history``."""
        raise NotImplementedError

    def test_the_base_is_what_was_folded_last(self, pair: VectorPair) -> None:
        """The next fold starts there, in this process or another."""
        pair.history.put_all(1, units(3, 16))
        pair.history.put(9, 1, axis(0, 16))
        view = pair.fold()
        assert pair.target.base() == TargetBase(mark=view.mark, clocks={1: 3, 9: 1})
        assert view.mark == pair.history.published(TARGET).mark

    def test_a_truth_without_vectors_makes_an_empty_index(self, pair: VectorPair) -> None:
        """Empty is right when the truth is empty: no error, and no rebuild over and over."""
        pair.history.space = None
        pair.history.put(1, 1, None)
        view = pair.fold()
        assert (view.clock(1), view.search(axis(0, 16), [1], depth=5)) == (1, ())
        pair.history.space = EmbeddingSpace(model="made", dimension=16)
        pair.history.put(1, 1, axis(0, 16))
        assert len(pair.fold().search(axis(0, 16), [1], depth=5)) == 1

    def test_most_namespaces_rest_while_few_change(self, pair: VectorPair) -> None:
        """A fold carries the others along, with their clocks."""
        for ns_id in (1, 2, 600):
            pair.history.put_all(ns_id, units(30, 16, seed=ns_id))
        pair.fold()
        pair.history.put(2, 100, axis(0, 16))
        view = pair.fold()
        assert [view.clock(ns_id) for ns_id in (1, 2, 3, 600)] == [30, 31, 0, 30]
        query = units(1, 16, seed=9)[0]
        found = view.search(query, [1, 2, 600], depth=100)
        check_exact(found, pair.history.exact(query, [1, 2, 600]), depth=100)

    def test_progress_is_noted(self, pair: VectorPair) -> None:
        """Deleted rows are purged only when every target has passed them."""
        pair.history.put_all(1, units(3, 16))
        pair.fold()
        assert pair.history.noted == [(TARGET, {1: 3})]

    def test_applying_a_batch_twice_changes_nothing(self, pair: VectorPair) -> None:
        """A process may die between the switch and the note of it."""
        pair.history.put(1, 1, axis(0, 16), axis(1, 16))
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as batch:
            rows = list(batch.rows)
            for _ in range(2):
                pair.target.apply(replace(batch, rows=iter(rows)), pair.history)
        view = pair.index.view(pair.history.published(TARGET))
        assert [hit.ordinal for hit in view.search(axis(0, 16), [1], depth=9)] == [0, 1]

    def test_a_batch_that_breaks_off_leaves_no_trace(self, pair: VectorPair) -> None:
        """The truth may go away while its rows are read."""
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
        assert len(pair.index.view(before).search(axis(0, 16), [1], depth=9)) == 5
        assert len(pair.fold().search(axis(0, 16), [1], depth=9)) == 4

    @pytest.mark.parametrize(
        "vector",
        [
            units(1, 8)[0],
            units(1, 16),
            np.ones(1, np.float32),
            units(1, 16)[0].astype(np.float64),
            units(1, 16)[0] * np.float32(np.nan),
            units(1, 16)[0] * np.float32(3),
        ],
        ids=["short", "matrix", "one", "double", "nan", "long"],
    )
    def test_a_vector_that_is_no_unit_vector_is_refused(
        self, pair: VectorPair, vector: Vector
    ) -> None:
        """One such row would spoil the search for its neighbours too."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        before = pair.history.published(TARGET)
        pair.history.put(1, 2, vector)
        with pytest.raises(InvalidEmbedding):
            pair.fold()
        assert pair.history.published(TARGET) == before
        assert len(pair.index.view(before).search(axis(0, 16), [1], depth=9)) == 1

    def test_a_fold_that_lost_the_race_leaves_the_winner(self, pair: VectorPair) -> None:
        """Two holders of one folder should not be; if they are, one of them wins entirely."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as late:
            pair.history.put(1, 2, axis(1, 16))
            winner = pair.history.fold(pair.target)
            with pytest.raises((ForeignHistory, Unavailable)):
                pair.target.apply(late, pair.history)
        assert pair.history.published(TARGET) == winner
        assert len(pair.index.view(winner).search(axis(1, 16), [1], depth=9)) == 2

    def test_a_switch_that_was_refused_changes_nothing(self, pair: VectorPair) -> None:
        """The truth has the last word on which generation is read."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        before = pair.history.published(TARGET)
        pair.history.put(1, 2, axis(1, 16))
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as batch:
            noted = len(pair.history.noted)
            pair.history.refusing = True
            with pytest.raises(ForeignHistory):
                pair.target.apply(batch, pair.history)
        assert len(pair.history.noted) == noted
        pair.history.refusing = False
        assert len(pair.index.view(before).search(axis(0, 16), [1], depth=9)) == 1
        assert len(pair.fold().search(axis(0, 16), [1], depth=9)) == 2

    def test_vectors_of_two_spaces_never_mix(self, pair: VectorPair) -> None:
        """They have the same dimension, and their distances mean nothing."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        pair.history.space = EmbeddingSpace(model="another", dimension=16)
        pair.history.put(1, 2, axis(0, 16))
        with pytest.raises(ForeignHistory):
            pair.fold()
        pair.target.reset()
        assert len(pair.fold().search(axis(0, 16), [1], depth=9)) == 2

    def test_rows_of_two_stores_never_mix(self, pair: VectorPair) -> None:
        """A restored store may use numbers again that another one gave out."""
        pair.history.put(1, 1, axis(0, 16))
        pair.fold()
        pair.history.put(1, 2, axis(0, 16))
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=100) as batch:
            foreign = replace(batch, store="store-2")
            with pytest.raises(ForeignHistory):
                pair.target.apply(foreign, pair.history)

    def test_a_reset_starts_from_nothing(self, pair: VectorPair) -> None:
        """A rebuild reads everything anew, under searches that go on."""
        pair.history.put_all(1, units(4, 16))
        before = pair.fold()
        pair.target.reset()
        assert pair.target.base() == TargetBase(mark=None, clocks={})
        assert len(before.search(axis(0, 16), [1], depth=9)) == 4
        pair.history.delete(1, 2)
        view = pair.fold()
        found = view.search(axis(0, 16), [1], depth=9)
        check_exact(found, pair.history.exact(axis(0, 16), [1]), depth=9)
        assert pair.target.base() == TargetBase(mark=view.mark, clocks={1: 5})
        pair.history.put(1, 9, axis(0, 16))
        assert pair.fold().search(axis(0, 16), [1], depth=1)[0].memory_id == memory_id(9)
