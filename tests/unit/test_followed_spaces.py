"""Whatever brings indexes forward is replaced when spaces come and go."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from memory_tool.adapters.in_memory_jobs import InMemoryJobs
from memory_tool.index_jobs import followed_spaces
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.followed_spaces import FollowedSpaces, Spaces
from memory_tool.job_values import STORE, Duty


@dataclass(slots=True)
class House:
    """The spaces of a store, and all that was made to follow them."""

    spaces: Spaces = (1,)
    made: list[Spaces] = field(default_factory=list)
    inner: list[BackgroundApplier] = field(default_factory=list)

    def look(self) -> Spaces:
        """Those of now."""
        return self.spaces

    def make(self, spaces: Spaces) -> BackgroundApplier:
        """One without any target."""
        self.made.append(spaces)
        self.inner.append(BackgroundApplier([], Agenda(InMemoryJobs())))
        return self.inner[-1]


def wait_until(came: Callable[[], object]) -> None:
    """Wait for another thread."""
    end = time.monotonic() + 20
    while not came():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_another_space_is_followed_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker runs for months; the one before ends, and whoever listens is told."""
    monkeypatch.setattr(followed_spaces, "POLL_SECONDS", 0.01)
    house, told = House(), threading.Event()
    followed = FollowedSpaces(house.look, house.make)
    followed.whenever(told.set)
    ran = threading.Event()
    followed.also(Duty(kind="x", target=STORE, every="minute", run=lambda _on: ran.set()))
    followed.start()
    try:
        house.spaces = (1, 2)
        wait_until(told.is_set)
        assert house.made == [(1,), (1, 2)]
        assert not house.inner[0].alive()
        assert followed.alive()
        followed.once(lambda: True)
        assert ran.is_set()
    finally:
        followed.close()
    assert not followed.alive()


def test_a_process_without_threads_looks_when_it_applies() -> None:
    """A command that began a change has to build its index itself."""
    house = House()
    followed = FollowedSpaces(house.look, house.make)
    house.spaces = (2,)
    assert followed.apply_now()
    followed.bring_forward()
    assert house.made == [(1,), (2,)]
    followed.close()
