"""``threefold worker`` and ``threefold rebuild``, as an operator and a timer use them."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_server import Role
from tests.acceptance.asking import found
from tests.acceptance.opening import Indexed, OwnStore
from tests.services.postgres import Database

PATIENCE_SECONDS: Final = 40.0


def wait_until(came: Callable[[], object]) -> None:
    """Wait for something that other processes do; the end is only for a broken promise."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not came():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)


def degraded_parts(memory: MemoryManage) -> set[str]:
    """The parts that a search says are missing."""
    return {note.part for note in memory.search("fact", user_id="u").degraded}


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A store of three facts with indexes that hold them, closed."""
    with own_store.open() as memory:
        memory.add_many(["fact one", "fact two", "fact three"], user_id="u")
        assert memory.apply_now()
    return own_store


def test_a_worker_is_alive_until_it_ends(own_store: OwnStore) -> None:
    """What a probe asks: 0 while it works, 4 before and after; and it ends with 0 on SIGTERM."""
    assert own_store.command("worker", "--check").returncode == 4
    with own_store.worker() as worker:
        checked = own_store.command("worker", "--check", "--json")
        assert checked.returncode == 0
        assert json.loads(checked.stdout)["alive"] is True
        assert own_store.command("worker", "--check", name="two").returncode == 4
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_SECONDS) == 0
    ended = own_store.command("worker", "--check")
    assert ended.returncode == 4
    assert "no worker runs" in ended.stdout


def test_a_worker_that_stands_still_is_not_alive(
    own_store: OwnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe has to end it, for its process is there and looks well."""
    monkeypatch.setenv("THREEFOLD_LEASE_SECONDS", "1")
    with own_store.worker() as worker:
        assert own_store.command("worker", "--check").returncode == 0
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(1.2)
        checked = own_store.command("worker", "--check")
        os.kill(worker.pid, signal.SIGCONT)
    assert checked.returncode == 4
    assert "stands still" in checked.stdout


def test_a_worker_applies_for_processes_that_do_not(own_store: OwnStore) -> None:
    """Web processes beside a worker keep their time for callers."""
    with own_store.open(applying=False) as memory:
        memory.add_many(["fact one", "fact two"], user_id="u")
        with own_store.worker():
            wait_until(lambda: own_store.keyword_chunks() == 2)
        assert found(memory, "fact", user_id="u") == {"fact one", "fact two"}


def test_once_applies_everything_and_ends(own_store: OwnStore) -> None:
    """For whoever has timers and no services; a second one has nothing to do."""
    with own_store.open(applying=False) as memory:
        memory.add_many(["fact one", "fact two"], user_id="u")
    finished = own_store.command("worker", "--once", "--json")
    assert finished.returncode == 0, finished.stderr
    (group,) = json.loads(finished.stdout)["groups"]
    assert group["applied"] is True
    assert own_store.indexed() == Indexed(vectors=2, chunks=2, canaries=0)
    assert own_store.command("worker", "--once").returncode == 0


def test_a_rebuild_is_done_once_a_period(filled: OwnStore) -> None:
    """Timers on several hosts may all call it; whoever wants it again says so."""
    generations = filled.index_folders()[0]
    before = newest(generations)
    first, second = (filled.command("rebuild", "--full") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.endswith(": done\n")
    assert second.stdout.endswith(": done before on this day\n")
    rebuilt = newest(generations)
    assert rebuilt > before
    again = json.loads(filled.command("rebuild", "--full", "--again", "--json").stdout)
    assert {group["outcome"] for group in again["groups"]} == {"done"}
    assert [(one["rows"], one["verified"]) for one in again["built"]] == [(3, True)] * 2
    assert newest(generations) > rebuilt
    assert filled.indexed() == Indexed(vectors=3, chunks=3, canaries=0)
    assert filled.command("rebuild", "--incremental").stdout.endswith(": done\n")
    assert filled.command("rebuild").returncode == 2
    assert filled.command("rebuild", "--full", "--incremental").returncode == 2


def test_a_build_that_nobody_wants_is_left_again(filled: OwnStore) -> None:
    """One command for it; what can't be done is said, with the status of "not found"."""
    assert filled.command("rebuild", "--full").returncode == 0
    generations = filled.index_folders()[0]
    rebuilt = newest(generations)
    none = filled.command("rebuild", "--rollback", "--to", "hourly")
    assert (none.returncode, newest(generations)) == (1, rebuilt), none.stderr
    assert "no hourly generation" in none.stderr
    back = filled.command("rebuild", "--rollback", "--to", "daily")
    assert back.stdout.endswith(": done\n"), back.stderr
    assert newest(generations) > rebuilt
    assert filled.indexed() == Indexed(vectors=3, chunks=3, canaries=0)


def newest(folder: Path) -> str:
    """The name of the newest generation."""
    return max(path.name for path in folder.glob("gen-*"))


def test_a_rebuild_is_left_to_the_process_that_applies(filled: OwnStore) -> None:
    """The timer's process only offers the period, and says so; it is done all the same."""
    before = newest(filled.index_folders()[0])
    with filled.worker(), filled.open(applying=False) as web:
        web.add("fact four", user_id="u")
        wait_until(lambda: filled.keyword_chunks() == 4)
        offered = filled.command("rebuild", "--full")
        assert offered.stdout.endswith(": left to another process\n")
        wait_until(lambda: "done before" in filled.command("rebuild", "--full").stdout)
    assert newest(filled.index_folders()[0]) > before


def test_damage_that_a_web_process_meets_is_mended_by_the_worker(filled: OwnStore) -> None:
    """The worker searches nothing, so it has to be told."""
    damage(filled.index_folders()[0])
    with filled.open(applying=False) as memory:
        assert degraded_parts(memory) == {"vector"}
        with filled.worker():
            wait_until(lambda: degraded_parts(memory) == set())


def test_a_scrub_finds_damage_before_a_search_does(filled: OwnStore) -> None:
    """A file that rots unread would be missed when it is needed."""
    before = newest(filled.index_folders()[0])
    damage(filled.index_folders()[0])
    assert filled.command("worker", "--once").returncode == 0
    assert newest(filled.index_folders()[0]) > before
    with filled.open(applying=False) as memory:
        assert degraded_parts(memory) == set()
        assert found(memory, "fact", user_id="u") == {"fact one", "fact two", "fact three"}


def damage(vectors: Path) -> None:
    """Flip the bits of the newest vector file, whose length and time stay."""
    newest_file = max(vectors.glob("gen-*/*vectors*"), key=lambda path: path.parent.name)
    newest_file.write_bytes(bytes(byte ^ 255 for byte in newest_file.read_bytes()))


def test_a_host_that_is_gone_is_retired_and_may_come_back(
    filled: OwnStore, database: Database
) -> None:
    """Nothing waits for it; should it return, its files are of an unknown history."""
    with filled.open("two") as there:
        assert there.apply_now()
    with database.connection(Role.WORKER) as connection:
        targets = "SELECT target FROM threefold.index_target ORDER BY target"
        before = [row[0] for row in connection.execute(targets).fetchall()]
        assert len(before) == 4
        folder = filled.data_dir("two").joinpath("folder-id").read_text().strip()
        connection.execute(
            "UPDATE threefold.index_target SET seen_at = now() - interval '25 hours'"
        )
        # The targets of this folder are as old, but their worker is there.
        finished = filled.command("worker", "--once")
        assert finished.returncode == 0, finished.stderr
        after = [row[0] for row in connection.execute(targets).fetchall()]
        gone = set(before) - set(after)
        assert f"tantivy:{folder}" in gone
        assert [name for name in gone if name.endswith(f":{folder}:space1")] == [
            name for name in gone if name.startswith("faiss:")
        ]
        assert len(gone) == 2
        for table in ("index_mark", "index_progress"):
            rows = connection.execute(f"SELECT DISTINCT target FROM threefold.{table}")  # noqa: S608
            assert {row[0] for row in rows.fetchall()} == set(after)
    with filled.open() as here:
        here.add("fact four", user_id="u")
        deleted = here.search("one", user_id="u").results[0]
        here.delete(deleted.id, user_id="u")
    facts = {"fact two", "fact three", "fact four"}
    with filled.open("two") as there:
        assert found(there, "fact", user_id="u") == facts
        wait_until(lambda: degraded_parts(there) == set())
        assert there.apply_now()
        assert found(there, "fact", user_id="u") == facts


def test_a_killed_worker_is_replaced_by_one_that_waited(filled: OwnStore) -> None:
    """Two on one folder: the kernel gives the folder to the second when the first dies."""
    with filled.worker() as first, filled.worker(), filled.open(applying=False) as web:
        web.add("fact four", user_id="u")
        wait_until(lambda: filled.keyword_chunks() == 4)
        first.kill()
        first.wait()
        web.add("fact five", user_id="u")
        wait_until(lambda: filled.keyword_chunks() == 5)
