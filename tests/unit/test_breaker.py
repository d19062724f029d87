"""When a part counts as down, and when it is tried again."""

import pytest

from memory_tool.breaker import FIRST_WAIT, LONGEST_WAIT, Breaker, Condition


class Part:
    """A breaker with a clock that stands still, and the conditions that it went through."""

    def __init__(self) -> None:
        self.now = 0.0
        self.went: list[Condition] = []
        self.breaker = Breaker(clock=lambda: self.now, on_change=self.went.append)

    def go_down(self) -> None:
        """Fail until it is down."""
        for _ in range(3):
            self.breaker.failed()


@pytest.fixture
def part() -> Part:
    """A fresh one."""
    return Part()


def test_one_failure_may_be_chance(part: Part) -> None:
    """It is asked again, and one answer clears it."""
    part.breaker.failed()
    assert part.breaker.allows()
    part.breaker.succeeded()
    assert part.went == [Condition.SUSPECT, Condition.UP]


def test_who_is_down_is_asked_once_in_a_while(part: Part) -> None:
    """By one caller: each try may cost its whole deadline."""
    part.go_down()
    assert not part.breaker.allows()
    part.now += FIRST_WAIT
    assert part.breaker.allows()
    assert not part.breaker.allows()


def test_waits_grow_to_half_a_minute(part: Part) -> None:
    """A part that is down for days is no reason to knock each second."""
    part.go_down()
    waits = []
    for _ in range(8):
        before = part.now
        while not part.breaker.allows():
            part.now += 0.5
        waits.append(part.now - before)
        part.breaker.failed()
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, LONGEST_WAIT]


def test_callers_who_were_waiting_when_it_went_down_prolong_nothing(part: Part) -> None:
    """Sixteen searches that hang at once would make a hiccup of a second cost half a minute."""
    for _ in range(16):
        part.breaker.failed()
    part.now += FIRST_WAIT
    assert part.breaker.allows()


def test_who_comes_back_is_up_once_it_has_caught_up(part: Part) -> None:
    """And down again at the first failure before that."""
    part.go_down()
    part.breaker.succeeded()
    part.breaker.failed()
    part.breaker.succeeded()
    part.breaker.caught_up()
    assert part.went == [
        Condition.SUSPECT,
        Condition.DOWN,
        Condition.CATCHING_UP,
        Condition.DOWN,
        Condition.CATCHING_UP,
        Condition.UP,
    ]
