"""Who applies, who only tells, what becomes of jobs: two processes of one folder, in memory."""

import pytest

from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_jobs import InMemoryJobs
from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordFolder,
    InMemoryKeywordTarget,
)
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.errors import Unavailable
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.target_group import FULL, INCREMENTAL, MEND, TargetGroup
from memory_tool.job_ports import Lease
from memory_tool.job_values import Duty, MayGoOn
from tests.factories import commit_of, new_id, put

TARGET = "keywords:here"
GROUP = "folder:here"


def always() -> bool:
    """Go on."""
    return True


class OneKey(Lease):
    """A lease of one process, for several groups of it."""

    holder: "OneKey | None" = None

    def try_acquire(self) -> bool:
        """As its port."""
        OneKey.holder = OneKey.holder or self
        return OneKey.holder is self

    def release(self) -> None:
        """As its port."""
        if OneKey.holder is self:
            OneKey.holder = None


class Host:
    """Two processes that share a folder, and the truth that they follow."""

    def __init__(self) -> None:
        OneKey.holder = None
        truth = InMemoryStore()
        self.store = InMemoryRecordStore(truth)
        self.log = InMemoryChangeLog(truth)
        self.folder = InMemoryKeywordFolder()
        self.jobs = InMemoryJobs()
        self.seen: list[tuple[str, ...]] = []
        self.one, self.two = self._group(), self._group()

    def _group(self) -> TargetGroup:
        target = InMemoryKeywordTarget(self.folder, name=TARGET)
        return TargetGroup(
            GROUP,
            applier=Applier(self.log, [target], clock=lambda: 0.0),
            lease=OneKey(),
            jobs=self.jobs,
            note_seen=lambda targets: self.seen.append(tuple(targets)),
        )

    def write(self) -> None:
        """Add a memory."""
        self.store.commit(commit_of([put(new_id())]))

    @property
    def applied(self) -> int:
        """How many numbers the target has passed."""
        return sum(self.folder.state.clocks.values())


@pytest.fixture
def host() -> Host:
    """A fresh one."""
    return Host()


def test_only_the_holder_applies(host: Host) -> None:
    """And whoever comes next goes on where it ended."""
    host.write()
    assert host.one.apply_now(keep=True)
    host.write()
    assert not host.two.apply_now(keep=True)
    assert host.applied == 1
    host.one.close()
    assert host.two.apply_now(keep=False)
    assert host.applied == 2
    assert host.one.apply_now(keep=True), "whoever does not keep the lease gives it back"


def test_damage_that_another_process_found_is_mended_by_the_holder(host: Host) -> None:
    """A worker searches nothing: it would never notice what each search of its host is told."""
    host.write()
    assert host.one.apply_now(keep=True)
    before = host.folder.state.mark
    host.two.distrust(TARGET, "damaged")
    host.two.turn(always)
    assert host.folder.state.mark == before
    assert host.one.once(always)
    assert host.folder.state.mark != before
    assert host.applied == 1


def test_a_rebuild_answers_everyone_who_asked_meanwhile(host: Host) -> None:
    """Each search of each process may ask while it lasts; a large index is not built twice."""
    host.write()
    assert host.one.apply_now(keep=True)
    host.two.distrust(TARGET, "damaged")
    host.two.turn(always)
    host.one.distrust(TARGET, "damaged")
    assert host.one.apply_now(keep=True)
    mended = host.folder.state.mark
    assert host.one.once(always)
    assert host.folder.state.mark == mended
    assert host.jobs.offer(MEND, TARGET, every="minute").done


def test_a_hurry_reaches_the_holder(host: Host) -> None:
    """Searches of other processes would fall back until the holder's patience ends."""
    assert host.one.apply_now(keep=True)
    host.write()
    host.two.hurry()
    host.two.turn(always)
    claimed = host.jobs.claim([(INCREMENTAL, GROUP)])
    assert claimed is not None
    claimed.lease.release()
    host.one.turn(always)
    assert host.applied == 0, "patience"
    assert host.one.once(always)
    assert host.applied == 1


def test_an_asked_for_rebuild_is_done_once_a_period(host: Host) -> None:
    """By whoever may; timers of several hosts ask for it."""
    host.write()
    assert host.one.do(FULL, again=False, may_go_on=always) == "done"
    first = host.folder.state.mark
    assert host.two.do(FULL, again=False, may_go_on=always) == "done before"
    assert host.folder.state.mark == first
    assert host.two.do(FULL, again=True, may_go_on=always) == "done"
    assert host.folder.state.mark != first


def test_what_the_holder_has_to_do_is_left_to_it(host: Host) -> None:
    """A timer on its host only offers the period."""
    host.write()
    assert host.one.apply_now(keep=True)
    first = host.folder.state.mark
    assert host.two.do(FULL, again=False, may_go_on=always) == "left to another process"
    assert host.folder.state.mark == first
    assert host.one.once(always)
    assert host.folder.state.mark != first
    assert host.two.do(FULL, again=False, may_go_on=always) == "done before"


def test_a_job_that_was_not_finished_stays_open(host: Host) -> None:
    """A worker told to stop in the middle of it leaves it to the next one."""
    host.write()
    answers = iter([True, True, False])

    def stopped_soon() -> bool:
        return next(answers, False)

    assert host.one.do(FULL, again=False, may_go_on=stopped_soon) == "left to another process"
    assert host.two.do(FULL, again=False, may_go_on=always) == "done"
    assert host.applied == 1


def test_a_living_holder_says_that_its_targets_are_followed(host: Host) -> None:
    """Else a quiet store would retire them; those that nobody applies to must not be named."""
    host.one.turn(always)
    host.one.turn(always)
    host.two.turn(always)
    assert host.seen == [(TARGET,)]
    host.one.close()
    host.two.turn(always)
    assert host.seen == [(TARGET,), (TARGET,)]


def test_a_process_that_applies_nothing_still_tells(host: Host) -> None:
    """It has no thread, so the search itself does."""
    host.write()
    assert host.one.apply_now(keep=True)
    before = host.folder.state.mark
    web = BackgroundApplier([host.two], Agenda(host.jobs))
    web.distrust(TARGET, "damaged")
    web.distrust("of another folder", "damaged")
    assert host.one.once(always)
    assert host.folder.state.mark != before
    assert web.apply_now()
    assert host.one.apply_now(keep=True), "it took the lease only for the moment"


def test_an_engine_that_is_down_keeps_no_other_index_waiting(host: Host) -> None:
    """And whoever asked is told of it all the same."""

    class Down(OneKey):
        def try_acquire(self) -> bool:
            raise Unavailable(store="elasticsearch")

    down = TargetGroup("shared", applier=Applier(host.log, []), lease=Down(), jobs=host.jobs)
    host.write()
    both = BackgroundApplier([down, host.one], Agenda(host.jobs))
    with pytest.raises(Unavailable):
        both.apply_now()
    assert host.applied == 1


def test_a_failed_job_keeps_no_other_waiting(host: Host) -> None:
    """It is put off and stays open; the next look finds the others."""
    ran: list[str] = []

    def fail(_may_go_on: MayGoOn) -> None:
        ran.append("x")
        raise Unavailable

    broken = Duty(kind="x", target="store", every="hour", run=fail)
    well = Duty(kind="y", target="store", every="hour", run=lambda _go_on: ran.append("y"))
    agenda = Agenda(host.jobs, [broken])
    agenda.offer_due()
    with pytest.raises(Unavailable):
        agenda.do_open(always)
    agenda.also(well)
    agenda.offer_due()
    assert [job.kind for job in agenda.do_open(always)] == ["y"]
    assert ran == ["x", "y"]
    assert not host.jobs.offer("x", "store", every="hour").done
