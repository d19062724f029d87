"""When targets are brought forward, and when they start anew."""

import dataclasses
from collections.abc import Sequence
from typing import Final

import pytest

from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordFolder,
    InMemoryKeywordTarget,
)
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.backfill import BATCH, Backfill
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import Chunk, StoredRow
from memory_tool.port_values import ChangeBatch, Patience, TargetBase
from tests.factories import commit_of, new_id, put

TARGET = "keywords:here"


class MoodyTarget(InMemoryKeywordTarget):
    """A target whose server may be away, or refuse whatever it is given."""

    fault: Exception | None = None
    tries = 0

    def base(self) -> TargetBase:
        """Where it stands, unless it is away."""
        self.tries += 1
        if isinstance(self.fault, Unavailable):
            raise self.fault
        return super().base()

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """Apply, unless something is wrong."""
        if self.fault is not None:
            raise self.fault
        super().apply(batch, log)


class Host:
    """One keyword target over an in-memory truth, and a clock that stands still."""

    def __init__(self, *others: IndexTarget) -> None:
        self.truth = InMemoryStore()
        self.store = InMemoryRecordStore(self.truth)
        self.log = InMemoryChangeLog(self.truth)
        self.folder = InMemoryKeywordFolder()
        self.now = 0.0
        self.applier = Applier(
            self.log,
            [*others, InMemoryKeywordTarget(self.folder, name=TARGET)],
            clock=lambda: self.now,
        )

    def write(self, count: int) -> None:
        """Add memories in one commit."""
        self.store.commit(commit_of([put(new_id()) for _ in range(count)]))

    @property
    def applied(self) -> int:
        """How many numbers the target has passed."""
        return sum(self.folder.state.clocks.values())


@pytest.fixture
def host() -> Host:
    """A fresh one."""
    return Host()


class HostOfTwo(Host):
    """One with a moody target before the other."""

    def __init__(self) -> None:
        self.moody = MoodyTarget(InMemoryKeywordFolder(), name="keywords:elsewhere")
        super().__init__(self.moody)


@pytest.fixture
def host_of_two() -> HostOfTwo:
    """A fresh one."""
    return HostOfTwo()


def test_a_few_rows_wait_for_their_time(host: Host) -> None:
    """A commit for each write would cost more than it gives: searches see them anyway."""
    host.write(1)
    assert host.applier.run() == 0

    host.now += 1
    assert host.applier.run() == 1
    assert host.applied == 1


def test_many_rows_are_applied_at_once(host: Host) -> None:
    """Fifty are a group."""
    host.write(50)

    assert host.applier.run() == 1
    assert host.applied == 50


def test_a_search_that_found_the_index_far_behind_makes_it_due(host: Host) -> None:
    """Once, and then patience holds again."""
    host.write(1)
    host.applier.hurry()
    assert host.applier.run() == 1

    host.write(1)
    assert host.applier.run() == 0


def test_a_distrusted_target_is_built_anew_once(host: Host) -> None:
    """A search that meets the damage while it is being mended must not have it mended twice."""
    host.write(3)
    host.applier.run(force=True)
    first = host.folder.state.mark
    host.applier.distrust(TARGET, "damaged")
    host.applier.run()
    second = host.folder.state.mark

    assert first != second
    assert host.applied == 3
    assert host.applier.run() == 0
    assert host.folder.state.mark == second


def test_whoever_has_no_lease_forgets_its_distrust(host: Host) -> None:
    """When it gets the lease, an hour later, the index has long been mended."""
    host.write(3)
    host.applier.run(force=True)
    before = host.folder.state.mark
    host.applier.distrust(TARGET, "damaged")
    host.applier.trust()
    host.applier.run()

    assert host.folder.state.mark == before


def test_a_lost_lease_is_noticed_before_the_next_batch(host: Host) -> None:
    """Two that apply to one target in turns would each find the other's work in the way."""
    batch = Patience(rows=1, seconds=1).batch
    host.write(batch + 500)
    asked: list[int] = []

    def may_go_on() -> bool:
        asked.append(host.applied)
        return len(asked) == 1

    assert host.applier.run(force=True, may_go_on=may_go_on) == 1
    assert asked == [0, batch]
    assert host.applied == batch


def test_whoever_lost_the_lease_resets_nothing(host: Host) -> None:
    """What looks like another history may be what the successor wrote."""
    host.write(3)
    host.applier.run(force=True)
    before = host.folder.state
    host.store.commit(commit_of([put(new_id())]))
    host.truth.state = dataclasses.replace(host.truth.state, marks=frozenset())
    host.applier.distrust(TARGET, "damaged")

    assert host.applier.run(force=True, may_go_on=lambda: False) == 0
    assert host.folder.state == before
    assert host.applier.rebuilding == frozenset()


def test_a_rebuild_of_an_empty_store_ends(host: Host) -> None:
    """Nothing to apply is all applied: nobody must wait for a first batch."""
    host.applier.distrust(TARGET, "asked for")
    host.applier.run(force=True)

    assert host.applier.rebuilding == frozenset()
    assert host.applier.take_rebuilt() == {TARGET}
    assert host.applier.take_rebuilt() == frozenset()


FAULTS: Final = (Unavailable("away"), Corrupt("refused"), ZeroDivisionError())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_target_that_fails_keeps_no_other_from_going_on(
    host_of_two: HostOfTwo, fault: Exception
) -> None:
    """With one server down, the other indexes still follow."""
    host_of_two.moody.fault = fault
    host_of_two.write(50)
    host_of_two.applier.run()

    assert host_of_two.applied == 50


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_target_that_fails_rests_longer_and_longer(
    host_of_two: HostOfTwo, fault: Exception
) -> None:
    """Trying each second would load a server that is in trouble, and fill the log."""
    host_of_two.moody.fault = fault
    host_of_two.write(50)
    tried_at = []
    for _ in range(60):
        before = host_of_two.moody.tries
        host_of_two.applier.run()
        if host_of_two.moody.tries > before:
            tried_at.append(host_of_two.now)
        host_of_two.now += 1

    assert tried_at == [0, 1, 3, 7, 15, 31]


def test_a_target_that_is_back_catches_up_by_itself(host_of_two: HostOfTwo) -> None:
    """Nobody has to call for it."""
    host_of_two.moody.fault = Unavailable("away")
    host_of_two.write(50)
    host_of_two.applier.run()
    host_of_two.moody.fault = None
    host_of_two.now += 1

    assert host_of_two.applier.run() == 1


def test_whoever_insists_is_told_what_is_wrong(host_of_two: HostOfTwo) -> None:
    """All the same, what can be applied is."""
    host_of_two.moody.fault = Unavailable("away")
    host_of_two.write(1)
    host_of_two.applier.run()
    with pytest.raises(Unavailable, match="away"):
        host_of_two.applier.run(force=True)

    assert host_of_two.applied == 1
    host_of_two.moody.fault = None
    assert host_of_two.applier.run(force=True) == 1


def test_a_back_fill_takes_one_batch_a_call(host: Host) -> None:
    """Whoever calls it applies to the indexes too, and must not be kept from it for an hour."""
    bare = Chunk(ordinal=0, start=0, stop=1, language="en", words="x", bigrams="")
    host.store.commit(commit_of([put(new_id(), bare) for _ in range(BATCH + 1)]))
    batches: list[int] = []

    def complete(rows: Sequence[StoredRow]) -> int:
        batches.append(len(rows))
        return len(rows)

    assert Backfill(host.log, complete).run() == BATCH
    assert batches == [BATCH]
