"""What every vector index has to answer, whatever was folded into it."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from memory_tool.errors import InvalidEmbedding
from memory_tool.model import Vector
from memory_tool.port_values import Patience, TargetBase
from memory_tool.query import Candidate
from tests.contract.vector_history import (
    TARGET,
    VectorHistory,
    VectorPair,
    axis,
    check_exact,
    memory_id,
    units,
)


class VectorIndexContract:
    """Subclass it for an adapter and override ``pair``; every index in it is named ``TARGET``.

    An index on a server may show more than its clocks say, and parts of a batch: what is newer than
    a clock is read from the truth anyway. Such an adapter overrides the tests that say otherwise.
    """

    patience = Patience(rows=5000, seconds=3600, batch=10_000_000)

    def agrees(self, found: int, clock: int) -> bool:
        """Whether a search found as many memories as its clock says."""
        return found == clock

    @pytest.fixture
    def history(self) -> VectorHistory:
        """A truth without rows, of 16 dimensions."""
        return VectorHistory()

    @pytest.fixture
    def pair(self, history: VectorHistory) -> VectorPair:
        """An empty index and its target, over ``history``."""
        raise NotImplementedError

    def test_an_empty_index_holds_nothing(self, pair: VectorPair) -> None:
        """A fresh installation searches before the applier ran."""
        view = pair.index.view(None)
        query = units(1, 16)[0]
        assert (view.mark, view.clock(1)) == (None, 0)
        assert view.search(query, [1], depth=10) == ()
        assert view.scores(query, [(1, memory_id(1))]) == ()
        assert pair.target.base() == TargetBase(mark=None, clocks={})

    def test_index_and_target_say_who_they_are(self, pair: VectorPair) -> None:
        """The store keeps marks, pointer and progress under one name for both."""
        assert pair.index.target == pair.target.name == TARGET
        assert pair.target.kind == "vector"
        assert pair.target.patience == self.patience

    def test_a_candidate_names_its_chunk_exactly(self, pair: VectorPair) -> None:
        """Hydration compares the version and trusts the rest, to the last bit."""
        pair.history.put(7, 0, axis(0, 16))
        pair.history.put(7, 5, axis(1, 16), axis(2, 16))
        (found,) = pair.fold().search(axis(2, 16), [7], depth=1)
        assert found == Candidate(7, memory_id(5), 1, 2, 1.0)

    def test_a_large_version_stays_exact(self, pair: VectorPair) -> None:
        """As a float it would name another version, and every hit would be dropped."""
        for _ in range(3):
            pair.history.put(1, 1, axis(0, 16))
        version = 2**53 + 1
        with pair.history.changes(TARGET, "vector", base=pair.target.base(), limit=10) as batch:
            rows = iter([replace(row, version=version) for row in batch.rows])
            pair.target.apply(replace(batch, rows=rows), pair.history)
        view = pair.index.view(pair.history.published(TARGET))
        assert [found.version for found in view.search(axis(0, 16), [1], depth=5)] == [version]

    @pytest.mark.parametrize("depth", [1, 7, 100, 1000])
    def test_the_nearest_come_first(self, pair: VectorPair, depth: int) -> None:
        """The whole point."""
        pair.history.put_all(1, units(400, 16))
        view = pair.fold()
        for query in units(5, 16, seed=1):
            found = view.search(query, [1], depth=depth)
            check_exact(found, pair.history.exact(query, [1]), depth=depth)

    def test_equal_scores_are_ordered_by_id_and_ordinal(self, pair: VectorPair) -> None:
        """The same question twice gets the same page, also after a rebuild."""
        for number in (5, 3, 9, 1):
            pair.history.put(1, number, axis(0, 16), axis(0, 16))
            pair.fold()
        found = pair.fold().search(axis(0, 16), [1], depth=5)
        expected = sorted((memory_id(number), at) for number in (5, 3, 9, 1) for at in (0, 1))
        assert [(hit.memory_id, hit.ordinal) for hit in found] == expected[:5]

    def test_a_search_stays_in_its_namespaces(self, pair: VectorPair) -> None:
        """The index is one, its tenants are many."""
        vectors = units(300, 16)
        for ns_id in (1, 2, 3, 11):
            pair.history.put_all(ns_id, vectors[ns_id::11], first=1000 * ns_id)
        view = pair.fold()
        query = units(1, 16, seed=1)[0]
        for ns_ids in ([1], [3, 2], [11, 1, 2, 3], [2, 2, 2]):
            found = view.search(query, ns_ids, depth=50)
            check_exact(found, pair.history.exact(query, ns_ids), depth=50)
        assert view.search(query, [4], depth=50) == ()
        assert view.search(query, [], depth=50) == ()

    def test_the_same_id_in_two_namespaces_is_two_memories(self, pair: VectorPair) -> None:
        """A deletion in one namespace must not reach into another."""
        pair.history.put(1, 1, axis(0, 16))
        pair.history.put(2, 1, axis(0, 16))
        pair.fold()
        pair.history.delete(1, 1)
        view = pair.fold()
        assert [hit.ns_id for hit in view.search(axis(0, 16), [1, 2], depth=9)] == [2]
        both = [(1, memory_id(1)), (2, memory_id(1))]
        assert [hit.ns_id for hit in view.scores(axis(0, 16), both)] == [2]

    def test_a_scope_of_1000_namespaces_is_searched(self, pair: VectorPair) -> None:
        """The store's limit is 1,000; an index must not have a lower one of its own."""
        for number, vector in enumerate(units(1100, 16)):
            pair.history.put(number, number, vector)
        view = pair.fold()
        query = units(1, 16, seed=1)[0]
        found = view.search(query, range(1000), depth=20)
        check_exact(found, pair.history.exact(query, range(1000)), depth=20)

    @pytest.mark.parametrize("members", [1, 10, 200, 390, 400])
    def test_within_keeps_to_its_ids_however_few(self, pair: VectorPair, members: int) -> None:
        """A filter that was evaluated already must not lose what ranks low without it."""
        pair.history.put_all(1, units(400, 16))
        pair.history.put_all(2, units(20, 16, seed=3), first=395)
        view = pair.fold()
        within = frozenset(map(memory_id, range(400 - members, 400)))
        for query in units(5, 16, seed=1):
            found = view.search(query, [1, 2], depth=30, within=within)
            check_exact(found, pair.history.exact(query, [1, 2], within=within), depth=30)

    def test_within_takes_20000_ids(self, pair: VectorPair) -> None:
        """So many matching ids the read path hands to an arm; most may be elsewhere."""
        pair.history.put_all(1, units(30, 16))
        view = pair.fold()
        within = frozenset(map(memory_id, range(10, 20_010)))
        query = units(1, 16, seed=1)[0]
        found = view.search(query, [1], depth=100, within=within)
        check_exact(found, pair.history.exact(query, [1], within=within), depth=100)
        assert view.search(query, [2], depth=100, within=within) == ()

    def test_within_nothing_finds_nothing(self, pair: VectorPair) -> None:
        """No id matches the filter: that is not "no filter"."""
        pair.history.put(1, 1, axis(0, 16))
        view = pair.fold()
        assert view.search(axis(0, 16), [1], depth=10, within=frozenset()) == ()
        strange = frozenset({"", "no id", "g" * 32, memory_id(2)})
        assert view.search(axis(0, 16), [1], depth=10, within=strange) == ()

    def test_a_depth_of_nothing_finds_nothing(self, pair: VectorPair) -> None:
        """Zero is a number too."""
        pair.history.put(1, 1, axis(0, 16))
        assert pair.fold().search(axis(0, 16), [1], depth=0) == ()

    def test_every_chunk_with_a_vector_is_found(self, pair: VectorPair) -> None:
        """A long memory is found by any of its parts; one that could not be embedded by none."""
        vectors = units(6, 16)
        pair.history.put(1, 1, vectors[0], None, vectors[1], vectors[2])
        pair.history.put(1, 2, None)
        pair.history.put(1, 3, vectors[3])
        view = pair.fold()
        found = view.search(vectors[1], [1], depth=10)
        check_exact(found, pair.history.exact(vectors[1], [1]), depth=10)
        assert found[0].ordinal == 2
        scores = view.scores(vectors[4], [(1, memory_id(1)), (1, memory_id(2)), (3, memory_id(3))])
        expected = pair.history.exact(vectors[4], [1], within=[memory_id(1)])
        check_exact(sorted(scores, key=lambda hit: -hit.score), expected, depth=9)

    def test_a_replaced_row_leaves_nothing_behind(self, pair: VectorPair) -> None:
        """An old chunk would be a candidate of a version that is no more."""
        vectors = units(300, 16)
        pair.history.put_all(1, vectors[:200])
        pair.history.put(1, 500, vectors[200], vectors[201], vectors[202])
        pair.fold()
        pair.history.put(1, 500, vectors[203])
        pair.history.put(1, 7, vectors[204], vectors[205])
        pair.history.put(1, 8, vectors[206])
        view = pair.fold()
        for query in (vectors[201], vectors[205], vectors[206]):
            for members in (None, (500, 7, 8), range(600)):
                within = None if members is None else frozenset(map(memory_id, members))
                found = view.search(query, [1], depth=300, within=within)
                check_exact(found, pair.history.exact(query, [1], within=within), depth=300)
        (score,) = view.scores(vectors[203], [(1, memory_id(500))])
        assert score.ordinal == 0

    def test_a_deleted_row_is_gone_and_may_come_back(self, pair: VectorPair) -> None:
        """A deletion that does not reach an index is a leak; quarantine ends again."""
        vectors = units(3, 16)
        pair.history.put_all(1, vectors)
        pair.fold()
        pair.history.delete(1, 1)
        pair.history.delete(1, 77)
        view = pair.fold()
        found = view.search(vectors[1], [1], depth=10)
        assert memory_id(1) not in {hit.memory_id for hit in found}
        assert len(found) == 2
        pair.history.put(1, 1, vectors[1])
        assert pair.fold().search(vectors[1], [1], depth=1)[0].memory_id == memory_id(1)

    def test_a_change_that_no_vector_shows_changes_nothing(self, pair: VectorPair) -> None:
        """A pinned memory keeps its version and is found once."""
        vectors = units(50, 16)
        pair.history.put_all(1, vectors)
        before = pair.fold().search(vectors[3], [1], depth=60)
        for number in range(0, 50, 2):
            pair.history.touch(1, number)
        view = pair.fold()
        assert view.clock(1) == 75
        assert view.search(vectors[3], [1], depth=60) == before

    def test_an_emptied_namespace_keeps_its_clock(self, pair: VectorPair) -> None:
        """Otherwise its deletions would be read again for ever."""
        pair.history.put(1, 1, axis(0, 16))
        pair.history.put(2, 2, axis(0, 16))
        pair.fold()
        pair.history.delete(1, 1)
        view = pair.fold()
        assert (view.clock(1), view.clock(2), view.clock(3)) == (2, 1, 0)
        assert view.search(axis(0, 16), [1], depth=10) == ()

    def test_a_view_keeps_seeing_what_it_says_it_sees(self, pair: VectorPair) -> None:
        """Overlays are read above a view's clock: a hit beyond it would be counted twice."""
        pair.history.put(1, 1, axis(0, 16))
        before = pair.fold()
        mark = pair.history.published(TARGET).mark
        for number in range(2, 6):
            pair.history.put(1, number, axis(0, 16))
            pair.fold()
        assert (before.mark, before.clock(1)) == (mark, 1)
        assert [hit.memory_id for hit in before.search(axis(0, 16), [1], depth=9)] == [memory_id(1)]

    def test_searches_go_on_while_others_fold(self, pair: VectorPair) -> None:
        """Searches run in many threads beside the applier."""
        vectors = units(120, 16)
        pair.history.put_all(1, vectors[:20])
        pair.fold()
        finished = threading.Event()
        wrong: list[str] = []

        def search() -> None:
            while not finished.is_set():
                view = pair.index.view(pair.history.published(TARGET))
                clock = view.clock(1)
                found = view.search(vectors[clock - 1], [1], depth=200)
                if not self.agrees(len(found), clock) or found[0].memory_id != memory_id(clock - 1):
                    wrong.append(f"{len(found)} at {clock}")

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for first in range(20, 120, 10):
                pair.history.put_all(1, vectors[first : first + 10], first=first)
                pair.fold()
        finally:
            finished.set()
            for thread in threads:
                thread.join()
        assert wrong == []

    @pytest.mark.parametrize(
        "query",
        [
            units(1, 8)[0],
            units(1, 16),
            units(1, 16)[0].astype(np.float64),
            units(1, 16)[0] * np.float32(np.nan),
            units(1, 16)[0] * np.float32(np.inf),
            units(1, 16)[0] * np.float32(2),
            np.zeros(16, np.float32),
        ],
        ids=["short", "matrix", "double", "nan", "infinite", "long", "zero"],
    )
    def test_a_query_that_is_no_unit_vector_is_refused(
        self, pair: VectorPair, query: Vector
    ) -> None:
        """Nothing good can be near to it, and an index may read memory that is not its own."""
        pair.history.put_all(1, units(100, 16))
        view = pair.fold()
        with pytest.raises(InvalidEmbedding):
            view.search(query, [1], depth=10)
        with pytest.raises(InvalidEmbedding):
            view.scores(query, [(1, memory_id(1))])
