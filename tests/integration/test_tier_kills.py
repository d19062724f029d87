"""Whatever a kill interrupts, each memory is in one tier, whole, and the next run goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tool.model import MemoryId, Patch
from memory_tool.port_values import Commit
from memory_tool.write_changes import Remove, Revise
from tests.integration.tier_house import TierHouse, tier_house
from tests.services.postgres import Server


@pytest.fixture
def house(embedded_postgres: Server, tmp_path: Path) -> Iterator[TierHouse]:
    """An empty one."""
    with (
        embedded_postgres.database() as database,
        tier_house(database, tmp_path / "archive") as one,
    ):
        yield one


@pytest.fixture
def texts(house: TierHouse) -> dict[MemoryId, str]:
    """Three that are due to become cold, one of them with an old version; one due to be warm."""
    return house.fill()


class Killed(BaseException):
    """The process dies here."""


class FaultyArchive:
    """An archive whose process is killed at the named moment."""

    def __init__(self, house: TierHouse, moment: str) -> None:
        self._real, self._moment = house.archive, moment
        self.read, self.remove, self.files = self._real.read, self._real.remove, self._real.files

    def write(self, ns_id: int, records: object) -> object:
        """Die before, or after the file is there."""
        if self._moment == "before the file":
            raise Killed
        file = self._real.write(ns_id, records)  # type: ignore[arg-type] # handed on as it came
        if self._moment == "after the file":
            raise Killed
        return file


class FaultyStore:
    """A record store whose process is killed before or after its nth commit."""

    def __init__(self, house: TierHouse, moment: str, *, commits: int) -> None:
        self._real, self._moment, self._left = house.jobs, moment, commits

    def commit(self, commit: Commit) -> object:
        """Die before, or after it is durable and before anybody is told."""
        self._left -= 1
        if self._left == 0 and self._moment == "before the commit":
            raise Killed
        results = self._real.commit(commit)
        if self._left == 0 and self._moment == "after the commit":
            raise Killed
        return results


@pytest.mark.parametrize(
    ("moment", "commits", "way"),
    [
        ("before the file", 1, "down"),
        ("after the file", 1, "down"),
        ("before the commit", 1, "down"),
        ("after the commit", 1, "down"),
        ("before the commit", 2, "down"),
        ("after the commit", 2, "down"),
        ("before the commit", 1, "up"),
        ("after the commit", 1, "up"),
    ],
)
def test_a_kill_at_any_moment_leaves_each_memory_in_one_tier(
    house: TierHouse, texts: dict[MemoryId, str], *, moment: str, commits: int, way: str
) -> None:
    """Whole, and the next run goes on from there."""
    if way == "up":
        house.move()
        house.use(*texts)
    archive, jobs = house.archive, house.jobs
    house.archive = FaultyArchive(house, moment)  # type: ignore[assignment] # dies in the middle
    house.jobs = FaultyStore(house, moment, commits=commits)  # type: ignore[assignment] # the same
    with pytest.raises(Killed):
        house.move()
    house.assert_whole(texts)
    house.archive, house.jobs = archive, jobs
    house.move()
    house.assert_whole(texts)
    wanted = ["cold", "cold", "cold", "warm"] if way == "down" else ["hot"] * 4
    assert house.tiers_of(*texts) == wanted


@pytest.mark.parametrize("moment", ["after the file", "before the switch", "after the switch"])
def test_a_kill_while_a_file_is_rewritten_loses_nothing(
    house: TierHouse, texts: dict[MemoryId, str], moment: str
) -> None:
    """And the next run finishes it."""
    english, *others = texts
    house.move()
    house.write(Remove(memory_id=english))
    archive, register = house.archive, house.register
    house.archive = FaultyArchive(house, moment)  # type: ignore[assignment] # dies in the middle
    house.register = FaultyRegister(house, moment)
    with pytest.raises(Killed):
        house.upkeep()
    house.archive, house.register = archive, register
    rest = {memory_id: texts[memory_id] for memory_id in others}
    house.assert_whole(rest)
    house.upkeep()
    house.let_time_pass()
    house.upkeep()
    house.assert_whole(rest)
    assert "Ledger number" not in house.archived_text()


class FaultyRegister:
    """A register whose process is killed before or after the switch."""

    def __init__(self, house: TierHouse, moment: str) -> None:
        self._real, self._moment = house.register, moment
        self.stale, self.kept, self.known = self._real.stale, self._real.kept, self._real.known
        self.gone, self.forget = self._real.gone, self._real.forget

    def switch(self, name: str, to: object) -> bool:
        """Die on either side of it."""
        if self._moment == "before the switch":
            raise Killed
        self._real.switch(name, to)  # type: ignore[arg-type] # handed on as it came
        raise Killed


def test_a_memory_that_changed_meanwhile_is_left_alone(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """Between the look and the lock somebody may write: his line in the file has to go again."""
    english = next(iter(texts))
    house.jobs = BusyStore(
        house, lambda: house.write(Revise(memory_id=english, patch=Patch(importance=1)))
    )  # type: ignore[assignment] # writes in between
    assert house.move() == 3
    assert house.tiers_of(english) == ["hot"]
    house.assert_whole(texts)
    house.jobs = house.jobs.real  # type: ignore[attr-defined] # it is a BusyStore
    house.upkeep()
    house.let_time_pass()
    house.upkeep()
    assert "Ledger number" not in house.archived_text()
    house.assert_whole(texts)


class BusyStore:
    """A record store before whose commits of cold memories something happens."""

    def __init__(self, house: TierHouse, first: Callable[[], None]) -> None:
        self.real, self._first = house.jobs, first

    def commit(self, commit: Commit) -> object:
        """Something, then the commit."""
        if commit.archived is not None:
            self._first()
        return self.real.commit(commit)
