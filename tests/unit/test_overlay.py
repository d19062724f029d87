"""The overlay: rows newer than the indexes, each fetched once, never mixed up between searches."""

import numpy as np
import pytest

from memory_tool.model import Chunk, Vector
from memory_tool.overlay import OverlayMemo, OverlayState
from memory_tool.port_values import OverlayRow
from memory_tool.query import Arm

EAST = np.array([1, 0], np.float32)
NORTH = np.array([0, 1], np.float32)


def row(
    name: str, number: int, *, vector: Vector | None = EAST, arm: int | None = None
) -> OverlayRow:
    """A live row of one chunk, or a deleted one for ``None``."""
    live = vector is not None
    chunk = Chunk(
        ordinal=0, start=0, stop=1, language="en", words=name, bigrams="", embedding=vector
    )
    return OverlayRow(
        ns_id=1,
        memory_id=name,
        nseq=number,
        vector_nseq=number if arm is None else arm,
        keyword_nseq=number,
        live=live,
        extra="",
        chunks=(chunk,) if live else (),
    )


def names(state: OverlayState, above: int = 0) -> list[str]:
    """What a vector search finds, best first."""
    found = state.nearest(EAST, above=above, depth=10, within=None)
    return [one.memory_id for one in sorted(found, key=lambda one: -one.score)]


def fresh(base: int = 0) -> OverlayState:
    """A state that knows nothing above ``base``."""
    return OverlayState(ns_id=1, base=base, upto=base)


def test_rows_are_found_by_exact_inner_product() -> None:
    """A new memory is searched before any index knows it."""
    state = fresh().extended([row("far", 1, vector=NORTH), row("near", 2)], 2)

    assert names(state) == ["near", "far"]


def test_a_changed_row_replaces_its_older_image() -> None:
    """One memory must not be found by what it used to say."""
    state = fresh().extended([row("a", 1)], 1).extended([row("a", 2, vector=NORTH)], 2)

    found = state.nearest(EAST, above=0, depth=10, within=None)
    assert [(one.memory_id, one.version, one.score) for one in found] == [("a", 2, 0.0)]


def test_a_deleted_row_is_gone_but_known_as_changed() -> None:
    """An index that still holds it has to be overruled."""
    state = fresh().extended([row("a", 1)], 1).extended([row("a", 2, vector=None)], 2)

    assert names(state) == []
    assert list(state.changed_above(1, Arm.VECTOR)) == ["a"]


def test_an_arm_sees_only_what_its_own_number_says() -> None:
    """A change of metadata is none of the vector index's business."""
    state = fresh().extended([row("a", 5, arm=3)], 5)

    assert not state.changed_above(4, Arm.VECTOR)
    assert state.changed_above(4, Arm.KEYWORD)
    assert names(state, above=4) == []


def test_within_keeps_to_the_ids_of_a_filter() -> None:
    """The same rule as in an index."""
    state = fresh().extended([row("a", 1), row("b", 2)], 2)

    found = state.nearest(EAST, above=0, depth=10, within=frozenset({"b"}))
    assert [one.memory_id for one in found] == ["b"]


def test_two_searches_may_extend_the_same_state_apart() -> None:
    """Each goes on with what its own snapshot saw, though they share one buffer."""
    base = fresh().extended([row("a", 1)], 1)

    earlier = base.extended([row("b", 2)], 2)
    later = base.extended([row("b", 3, vector=NORTH), row("c", 4)], 4)

    assert sorted(names(earlier)) == ["a", "b"]
    found = later.nearest(EAST, above=0, depth=9, within=None)
    assert {one.memory_id: one.score for one in found} == {"a": 1.0, "b": 0.0, "c": 1.0}


def test_the_memo_goes_on_where_the_last_search_ended() -> None:
    """So that a search fetches only what is new."""
    memo = OverlayMemo()
    memo.keep("one", {})
    started = memo.start("one", {1: 0})
    memo.keep("one", {1: started[1].extended([row("a", 1)], 1)})

    assert memo.start("one", {1: 0})[1].upto == 1


@pytest.mark.parametrize(("incarnation", "floor"), [("two", 0), ("one", 5)])
def test_the_memo_starts_anew_for_another_history_or_a_newer_index(
    incarnation: str, floor: int
) -> None:
    """What was remembered may be of another history, or below what the index holds."""
    memo = OverlayMemo()
    started = memo.start("one", {1: 0})
    memo.keep("one", {1: started[1].extended([row("a", 1)], 1)})

    again = memo.start(incarnation, {1: floor})[1]

    assert (again.base, again.upto, again.rows) == (floor, floor, {})


def test_rows_that_the_indexes_caught_up_with_are_let_go() -> None:
    """Memory stays bounded by what is newer than the indexes."""
    memo = OverlayMemo()
    started = memo.start("one", {1: 0})
    memo.keep("one", {1: started[1].extended([row("a", 1), row("b", 2)], 2)})

    state = memo.start("one", {1: 1})[1]

    assert list(state.rows) == ["b"]
    assert (state.base, state.upto) == (1, 2)


def test_an_older_state_never_replaces_a_newer_one() -> None:
    """Two threads may finish in the wrong order."""
    memo = OverlayMemo()
    base = memo.start("one", {1: 0})[1]
    memo.keep("one", {1: base.extended([row("a", 1), row("b", 2)], 2)})
    memo.keep("one", {1: base.extended([row("a", 1)], 1)})

    assert memo.start("one", {1: 0})[1].upto == 2
