"""Which builds of an index are kept, and which one is the way back."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from memory_tool.generations import (
    KEPT,
    KeptGeneration,
    Origin,
    Way,
    successor_name,
    way_back,
    worth_keeping,
)
from memory_tool.port_values import Pointer
from memory_tool.space_values import space_of_target, target_in_space

NOW: Final = datetime(2025, 5, 4, 12, 30, tzinfo=UTC)


def made(number: int, origin: Origin, *, minutes_ago: float, left: bool = True) -> KeptGeneration:
    """A generation made so long ago, and left a minute after."""
    made_at = NOW - timedelta(minutes=minutes_ago)
    return KeptGeneration(
        pointer=Pointer(target="t", generation=number, locator="", mark=str(number)),
        origin=origin,
        made_at=made_at,
        left_at=made_at + timedelta(minutes=1) if left else None,
    )


READ = made(9, "incremental", minutes_ago=5, left=False)
HISTORY = (
    made(2, "full", minutes_ago=2000),
    made(3, "full", minutes_ago=700),
    made(5, "incremental", minutes_ago=95),
    made(6, "incremental", minutes_ago=32),
    made(7, "incremental", minutes_ago=20),
    made(8, "incremental", minutes_ago=10),
    READ,
)


@pytest.mark.parametrize(("way", "number"), [("hourly", 6), ("daily", 3)])
def test_the_way_back_is_the_last_one_before_this_hour_or_the_last_full_one(
    way: Way, number: int
) -> None:
    """One of a minute ago would be no way back from anything."""
    found = way_back(HISTORY, way, read=9, now=NOW)
    assert found is not None
    assert found.pointer.generation == number


def test_the_one_that_is_read_is_no_way_back() -> None:
    """Whoever wants away from today's build wants yesterday's."""
    found = way_back(HISTORY, "daily", read=3, now=NOW)
    assert found is not None
    assert found.pointer.generation == 2
    assert way_back((READ,), "hourly", read=9, now=NOW) is None


def test_one_for_each_way_is_kept_and_the_newest() -> None:
    """The newest may be being opened just now, and is the last hourly one when the hour is over."""
    kept = worth_keeping(HISTORY, read=9, now=NOW)
    assert {one.pointer.generation for one in kept} == {3, 6, 8}


def test_nothing_is_kept_longer_than_deleted_memories_may_be() -> None:
    """However long it was read before: what was deleted then is not in it."""
    late = NOW + KEPT - timedelta(minutes=650)
    kept = worth_keeping(HISTORY, read=9, now=late)
    assert {one.pointer.generation for one in kept} == {8}
    assert worth_keeping(HISTORY, read=9, now=NOW + 2 * KEPT) == ()


def test_a_successor_says_which_space_it_holds() -> None:
    """The log reads the space off the name of a target."""
    name = target_in_space("faiss:ab12", 2)
    assert space_of_target(successor_name(name)) == 2
    assert successor_name(name) != name
