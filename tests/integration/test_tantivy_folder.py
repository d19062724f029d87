"""A Tantivy folder under damage, kills, other processes and other versions."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memory_tool.adapters import tantivy_target
from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.port_values import ChangeRow, TargetBase
from tests.contract.keyword_rows import NotedProgress, apply, ask, batch, chunk, find, gone, row
from tests.integration.tantivy_damage import DAMAGES, current
from tests.integration.tantivy_process import TARGET, TOKENISER

CHECKOUT = Path(__file__).resolve().parents[2]
MAPS = Path("/proc/self/maps")


def index_of(folder: Path, *, tokeniser: int = TOKENISER) -> TantivyKeywordIndex:
    """A new reader, as a new process would have it."""
    return TantivyKeywordIndex(folder, target=TARGET, tokeniser=tokeniser)


def target_of(folder: Path, *, tokeniser: int = TOKENISER) -> TantivyTarget:
    """A new writer, as a new process would have it."""
    return TantivyTarget(folder, name=TARGET, tokeniser=tokeniser)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose index holds three rows in two commits, and the trace of a fourth."""
    path = tmp_path_factory.mktemp("keywords")
    target = target_of(path)
    rows = (row(1, chunk("green tea", "绿茶")), row(2, chunk("tea pot")), row(4, chunk("tea")))
    apply(target, *rows, mark="a", clock=2)
    apply(target, gone(4), row(3, chunk("tea"), extra="shop"), mark="b", clock=3)
    target.close()
    return path


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A copy of the template; nobody has it open."""
    return Path(shutil.copytree(template, tmp_path / "keywords"))


@contextmanager
def process(task: str, folder: Path) -> Iterator[Callable[[object], str]]:
    """A child process; calling it sends one line and returns the line that it prints."""
    command = [sys.executable, "-m", "tests.integration.tantivy_process", task, str(folder)]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:

        def exchange(line: object) -> str:
            if child.stdin is None or child.stdout is None:
                pytest.fail("the child has no pipes")
            child.stdin.write(f"{line}\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        try:
            yield exchange
        finally:
            child.kill()


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_a_reset_heals_it(folder: Path, name: str) -> None:
    """Losing an index loses no data, as long as the loss is noticed and nothing crashes."""
    damage, reason = DAMAGES[name]
    damage(folder)
    with pytest.raises(Corrupt, match=reason):
        index_of(folder).view()
    target = target_of(folder)
    with pytest.raises(Corrupt, match=reason):
        target.base()
    target.reset()
    assert target.base() == TargetBase(mark=None, clocks={})
    apply(target, row(5, chunk("tea")))
    assert find(index_of(folder).view(), "tea") == [5]


def test_an_open_reader_notices_that_the_index_vanished(folder: Path) -> None:
    """A search must not go on for ever with what nobody can renew."""
    index = index_of(folder)
    assert find(index.view(), "tea") == [3, 1, 2]
    (current(folder) / "meta.json").unlink()
    with pytest.raises(Corrupt, match=r"has no meta\.json"):
        index.view()


def test_a_folder_whose_current_is_lost_is_an_empty_index(folder: Path) -> None:
    """It is also what a kill leaves before the first index was complete: the applier fills it."""
    (folder / "current").unlink()
    assert index_of(folder).view().mark is None
    target = target_of(folder)
    assert target.base() == TargetBase(mark=None, clocks={})
    apply(target, row(5, chunk("tea")))
    assert find(index_of(folder).view(), "tea") == [5]


def test_a_folder_that_is_a_file_is_unavailable(tmp_path: Path) -> None:
    """A wrong path in the settings is not damage."""
    path = tmp_path / "keywords"
    path.touch()
    with pytest.raises(Unavailable):
        index_of(path).view()
    with pytest.raises(Unavailable):
        target_of(path).reset()


def test_a_shortage_of_the_system_is_not_damage(folder: Path) -> None:
    """To rebuild a sound index would not bring back what the system lacks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    index = index_of(folder)
    taken: list[int] = []
    outcomes: list[bool] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        while len(outcomes) < 8:
            try:
                index.view()
            except Unavailable:
                outcomes.append(False)
            else:
                outcomes.append(True)
                index.close()
            os.close(taken.pop())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


def test_another_version_of_the_tokeniser_asks_for_a_rebuild(folder: Path) -> None:
    """Its tokens and those of today's questions don't meet."""
    with pytest.raises(Corrupt, match="tokeniser 1"):
        index_of(folder, tokeniser=2).view()
    with pytest.raises(Corrupt, match="tokeniser 1"):
        target_of(folder, tokeniser=2).base()
    changes = batch([], {}, mark="c", base_mark="b")
    with pytest.raises(Corrupt, match="tokeniser 1"):
        target_of(folder, tokeniser=2).apply(changes, NotedProgress())


def test_another_version_of_the_fields_asks_for_a_rebuild(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same names may come to mean something else."""
    monkeypatch.setattr(tantivy_target, "SCHEMA_VERSION", 0)
    target = target_of(folder)
    apply(target, row(4, chunk("tea")))
    with pytest.raises(Corrupt, match="fields 0"):
        target.base()
    with pytest.raises(Corrupt, match="fields 0"):
        index_of(folder).view()


def test_the_index_of_another_store_is_not_built_upon(folder: Path) -> None:
    """A folder that was copied to another installation holds foreign memories."""
    foreign = replace(batch([], {}, mark="c", base_mark="b"), store="store-2")
    with pytest.raises(Corrupt, match="store-1"):
        target_of(folder).apply(foreign, NotedProgress())


def test_a_batch_for_another_base_is_refused(folder: Path) -> None:
    """A reset or another process came between: the rows in between would be missing for ever."""
    target = target_of(folder)
    log = NotedProgress()
    with pytest.raises(Unavailable, match="moved on"):
        target.apply(batch([row(9, chunk("tea"))], {1: 9}, mark="z", base_mark="a"), log)
    target.reset()
    with pytest.raises(Unavailable, match="moved on"):
        target.apply(batch([row(9, chunk("tea"))], {1: 9}, mark="z", base_mark="b"), log)
    assert log.noted == []
    assert target.base().mark is None


def test_a_batch_that_fails_frees_the_lock(folder: Path) -> None:
    """The error may be kept by whoever collects errors, and with it all that it passed through."""
    target = target_of(folder)

    def broken() -> Iterator[ChangeRow]:
        yield row(9, chunk("tea"))
        raise Unavailable

    failing = replace(batch([], {1: 9}, mark="c", base_mark="b"), rows=broken())
    with pytest.raises(Unavailable) as kept:
        target.apply(failing, NotedProgress())
    assert kept.tb is not None
    apply(target, row(4, chunk("tea")), mark="c")
    assert set(find(index_of(folder).view(), "tea")) == {1, 2, 3, 4}


def test_one_writer_at_a_time(folder: Path) -> None:
    """Two appliers may both believe to hold the lease; the files have to stay whole."""
    first, second = target_of(folder), target_of(folder)
    apply(first, row(4, chunk("tea")), mark="c")
    with pytest.raises(Unavailable, match="Lock") as busy:
        apply(second, row(5, chunk("tea")), mark="d")
    assert (busy.value.store, busy.value.outcome) == ("tantivy", "not_started")
    first.close()
    apply(second, row(5, chunk("tea")), mark="d")
    assert second.base().mark == "d"
    second.close()


def test_a_commit_just_before_the_lock_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the base and locking the folder another process may finish its batch."""
    first, second = target_of(folder), target_of(folder)
    driver_errors: Callable[[], AbstractContextManager[None]] = vars(tantivy_target)["writing"]

    @contextmanager
    def late() -> Iterator[None]:
        monkeypatch.undo()
        apply(second, row(5, chunk("tea")), mark="c", clock=5)
        second.close()
        with driver_errors():
            yield

    monkeypatch.setattr(tantivy_target, "writing", late)
    with pytest.raises(Unavailable, match="moved on"):
        apply(first, row(6, chunk("tea")), mark="d", clock=6)
    assert first.base() == TargetBase(mark="c", clocks={1: 5})


def test_a_writer_follows_a_reset_by_another_process(folder: Path) -> None:
    """A process that lost its lease for a while must not write on into an index of the past."""
    first, second = target_of(folder), target_of(folder)
    apply(first, row(4, chunk("tea")), mark="c")
    second.reset()
    apply(first, row(5, chunk("tea")), mark="d")
    assert find(index_of(folder).view(), "tea") == [5]
    first.close()


def test_two_readers_see_what_a_third_process_commits(folder: Path) -> None:
    """A memory that one process stored is found by all."""
    with (
        process("read", folder) as first,
        process("read", folder) as second,
        process("write", folder) as writer,
    ):
        before = ["b", 3, [3, 1, 2]]
        assert [json.loads(first("")), json.loads(second(""))] == [before, before]
        for number in range(4, 8):
            mark = writer(number)
            mark_seen, clock, found = json.loads(first(""))
            assert (mark_seen, clock, sorted(found)) == (mark, number, list(range(1, number + 1)))
            assert json.loads(second("")) == [mark_seen, clock, found]


def test_a_killed_writer_leaves_the_last_commit_and_no_lock(folder: Path) -> None:
    """SIGKILL may come at any moment; half a batch must never be seen."""
    with process("hang", folder) as writer:
        assert writer("") == "between"
        with pytest.raises(Unavailable, match="Lock"):
            apply(target_of(folder), row(4, chunk("tea")))
    target = target_of(folder)
    assert target.base() == TargetBase(mark="b", clocks={1: 3})
    apply(target, row(4, chunk("tea")), clock=4)
    assert sorted(find(index_of(folder).view(), "tea")) == [1, 2, 3, 4]
    target.close()


@pytest.mark.parametrize("step", ["made", "named"])
def test_a_reset_that_is_killed_leaves_the_old_index_or_the_new_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Between two files there is always a moment for a power cut."""

    class Killed(BaseException):
        """The process ends here."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    moment = {"made": "pathlib.Path.replace", "named": "shutil.rmtree"}[step]
    with monkeypatch.context() as patch:
        patch.setattr(moment, die)
        with pytest.raises(Killed):
            target_of(folder).reset()
    expected = {"made": [3, 1, 2], "named": []}[step]
    assert find(index_of(folder).view(), "tea") == expected
    target = target_of(folder)
    target.reset()
    assert sorted(path.name for path in folder.iterdir()) == [current(folder).name, "current"]
    apply(target, row(5, chunk("tea")))
    assert find(index_of(folder).view(), "tea") == [5]


def test_readers_stay_calm_while_an_index_is_replaced_under_them(folder: Path) -> None:
    """Files that vanish because a writer merges or resets are no damage."""
    finished = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        while not finished.is_set():
            try:
                # A new reader each time: opening is what races.
                find(index_of(folder).view(), "tea")
            except (Corrupt, Unavailable) as failure:
                failures.append(failure)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    target = target_of(folder)
    try:
        for number in range(12):
            apply(target, row(number, chunk("tea")), clock=number)
            if number % 4 == 3:
                target.reset()
    finally:
        finished.set()
        for thread in threads:
            thread.join()
        target.close()
    assert failures == []


def test_a_view_is_the_same_until_somebody_commits(folder: Path) -> None:
    """Opening a searcher for every query would cost more than the query."""
    index = index_of(folder)
    view = index.view()
    assert index.view() is view
    target = target_of(folder)
    apply(target, row(4, chunk("tea")))
    target.close()
    assert index.view() is not view


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux lists what a process has mapped")
def test_a_closed_index_lets_go_of_its_files(folder: Path) -> None:
    """A folder on a disk that is to be unmounted, or a test of a thousand indexes."""
    index = index_of(folder)
    index.view()
    assert str(folder) in MAPS.read_text()
    index.close()
    assert str(folder) not in MAPS.read_text()


def test_many_namespaces_leave_the_scores_alone(tmp_path: Path) -> None:
    """Control documents count as documents: with one for each namespace they would rank."""
    target = target_of(tmp_path)
    texts = [chunk("tea"), *(chunk(f"filler {'word ' * 20}".strip()) for _ in range(200))]
    apply(target, *(row(n, text) for n, text in enumerate(texts)))
    (before,) = index_of(tmp_path).view().search(ask("tea"), (1,), depth=1)
    clocks = dict.fromkeys(range(2, 2_000), 1)
    target.apply(batch([], clocks, mark="z", base_mark=target.base().mark), NotedProgress())
    (after,) = index_of(tmp_path).view().search(ask("tea"), (1,), depth=1)
    assert after.score == pytest.approx(before.score, rel=0.05)
    assert len(target.base().clocks) == 1_999
    target.close()
