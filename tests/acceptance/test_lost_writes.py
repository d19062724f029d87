"""Writes: what is acknowledged is there, once, and what failed says so."""

import os
import signal
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import IdempotencyConflict, InvalidText, NotFound
from memory_tool.model import Json
from tests.acceptance.asking import found, ids, seen, statuses, texts
from tests.acceptance.opening import Indexed, OwnStore
from tests.acceptance.other_process import WITHOUT_END, OtherProcess

BAD: Final[tuple[str | Mapping[str, Json], ...]] = (
    "\0",
    {"content": "b", "importance": 9},
    {"text": "c"},
)
WINDOW: Final[tuple[Mapping[str, Json], ...]] = (
    {"role": "user", "content": "好的"},
    {"role": "assistant", "content": "好的"},
)


def test_a_failed_item_is_no_stored_one(mine: MemoryManage) -> None:
    """Complaint 36, mem0ai/mem0 issue 7201: failed inserts are returned as successful ids."""
    written = mine.add_many(["first", *BAD, "last"])
    assert statuses(written) == ["added", "failed", "failed", "failed", "added"]
    assert [item.id is None for item in written] == [False, True, True, True, False]
    assert [bool(item.error) for item in written] == [False, True, True, True, False]
    assert set(texts(mine.get_all())) == {"first", "last"}


def test_two_threads_store_one_fact_once(mine: MemoryManage) -> None:
    """Complaint 38, mem0ai/mem0 issue 6515: check-then-insert stores the same fact twice."""
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: mine.add("the same fact"), range(16)))
    assert sorted(item.status for one in written for item in one) == ["added", *["duplicate"] * 15]
    assert len({one.id for one in written}) == 1
    assert texts(mine.get_all()) == ["the same fact"]


def test_a_fact_told_again_and_again_is_stored_once(mine: MemoryManage) -> None:
    """Complaint 39, mem0ai/mem0 issue 4573: an audit finds one fact stored 808 times."""
    told = ["User prefers dark mode", "User  prefers dark mode", " User prefers dark mode\n"]
    first = mine.add_many(told * 30)
    assert statuses(first).count("added") == 1
    assert {item.id for item in first} == {first.id}
    assert texts(mine.get_all()) == ["User prefers dark mode"]


def test_a_text_that_was_replaced_is_recalled_by_nothing(mine: MemoryManage) -> None:
    """Complaint 40, MemTensor/MemOS issue 881: what was merged away is still recalled."""
    mine.add("the office is in Porto", key="office")
    mine.apply_now()
    mine.add("our desks are in Lisbon", key="office")
    only = {"our desks are in Lisbon"}
    assert seen(mine, "the office is in Porto") == only
    mine.apply_now()
    assert seen(mine, "the office is in Porto") == only


def test_an_id_stays_good(own_store: OwnStore) -> None:
    """Complaint 41, MemTensor/MemOS issue 2329: an id that is 404 on the next read."""
    with own_store.other_process() as process:
        id_ = process.call("add", "a lasting note", user_id="u")["results"][0]["id"]
        assert process.call("get", id_, user_id="u")["memory"] == "a lasting note"
        process.call("apply_now")
        assert process.call("get", id_, user_id="u")["id"] == id_
    with own_store.open() as memory:
        assert memory.get(id_, user_id="u").memory == "a lasting note"
        assert ids(memory.search("lasting note", user_id="u")) == [id_]


def test_a_killed_writer_loses_nothing_that_it_acknowledged(embedded_store: OwnStore) -> None:
    """Complaint 42, vectorize-io/hindsight issue 2985: a killed batch leaves documents out."""
    with embedded_store.other_process() as process:
        process.tell(WITHOUT_END, "note", user_id="u")
        acknowledged = [process.hear() for _ in range(30)]
        process.kill()
        while (late := process.hear()) is not None:
            acknowledged.append(late)
    with embedded_store.open() as memory:
        stored = set(ids(memory.get_all(user_id="u")))
        assert stored >= set(acknowledged)
        # One more may have been committed whose acknowledgement the kill cut off.
        assert len(stored) <= len(acknowledged) + 1
        assert {memory.get(id_, user_id="u").id for id_ in acknowledged} == set(acknowledged)
        assert found(memory, "note", user_id="u") == set(texts(memory.get_all(user_id="u")))


def test_a_dead_appliers_work_is_taken_over(own_store: OwnStore) -> None:
    """Complaint 43, vectorize-io/hindsight issue 2165: a job stays "processing" after a crash."""
    with own_store.other_process() as holder, own_store.open() as memory:
        holder.call("add", "a crash to come", user_id="u")
        assert holder.call("apply_now") is True
        assert memory.apply_now() is False
        holder.kill()
        memory.add("a crash that came", user_id="u")
        assert memory.apply_now() is True
        assert own_store.indexed() == Indexed(vectors=2, chunks=2, canaries=0)


def test_a_retried_call_has_one_effect(mine: MemoryManage) -> None:
    """Complaint 44, vectorize-io/hindsight issue 3114: client retries store a window twice."""
    many = [f"line {number}" for number in range(120)]
    for _ in range(2):
        assert statuses(mine.add(WINDOW, idempotency_key="window")) == ["added", "added"]
        assert statuses(mine.add_many(many, idempotency_key="many")) == ["added"] * 120
        with_an_end = mine.add("for a while", ttl=3600, idempotency_key="while")
        changed = mine.update(with_an_end.id, importance=2, idempotency_key="rated")
        assert (changed.status, changed.version) == ("updated", 2)
    assert len(mine.get_all(limit=1000)) == 123
    with pytest.raises(IdempotencyConflict):
        mine.add("another text", idempotency_key="while")


def test_a_retried_call_tells_the_same_ids(mine: MemoryManage) -> None:
    """A client that lost the answer needs the ids of the first try, not new ones."""
    first = mine.add("told twice", idempotency_key="k")
    assert mine.add("told twice", idempotency_key="k") == first
    mine.delete(first.id)
    assert mine.add("told twice", idempotency_key="k") == first
    assert texts(mine.get_all()) == []


def test_writers_in_two_processes_lose_nothing(
    memory: MemoryManage, neighbour: OtherProcess, user: str
) -> None:
    """Complaint 45, modelcontextprotocol/servers issue 1819: processes overwrite each other."""
    theirs = [f"their item {number}" for number in range(100)]
    ours = [f"our item {number}" for number in range(100)]
    neighbour.tell("add_many", theirs, user_id=user)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: memory.add(text, user_id=user), ours))
    assert {item["status"] for item in neighbour.hear()["results"]} == {"added"}
    stored = texts(memory.get_all(user_id=user, limit=1000))
    assert sorted(stored) == sorted([*ours, *theirs])


def index_files(store: OwnStore) -> list[Path]:
    """Every file of the indexes that has something in it."""
    files = (path for folder in store.index_folders() for path in folder.rglob("*"))
    return [path for path in files if path.is_file() and path.stat().st_size > 0]


def test_a_truncated_file_never_shifts_ids(own_store: OwnStore) -> None:
    """Complaint 46, mem0ai/mem0 issue 7117: a truncated file, and the wrong memory at score 1.0."""
    facts = [f"{name} keeps the {name} key" for name in ("Ann", "Bo", "Cy", "Di", "Ed")]
    with own_store.other_process() as process:
        process.call("add_many", facts, user_id="u")
        process.call("apply_now")
    for path in index_files(own_store):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with own_store.open() as memory:
        for attempt in ("while it is damaged", "after it healed"):
            for fact in facts:
                answer = memory.search(fact, user_id="u", limit=1)
                assert texts(answer) == [fact], attempt
            memory.apply_now()
        assert memory.search(facts[0], user_id="u").degraded == ()


def test_a_rebuilt_index_holds_what_the_source_holds(own_store: OwnStore) -> None:
    """Complaint 47, volcengine/OpenViking issue 1381: "rebuilt", but nothing is found."""
    with own_store.other_process() as process:
        process.call("add_many", [f"page {number}" for number in range(120)], user_id="u")
        process.call("apply_now")
    own_store.lose_indexes()
    with own_store.open() as memory:
        memory.search("page", user_id="u")
        assert memory.apply_now() is True
        assert own_store.indexed() == Indexed(vectors=120, chunks=120, canaries=0)
        for mode in ("keyword", "vector"):
            answer = memory.search("page 7", user_id="u", mode=mode, limit=200, threshold=0.0)
            assert (len(answer), answer.degraded) == (120, ())


def test_a_reader_never_meets_a_locked_store(mine: MemoryManage) -> None:
    """Complaint 69, neuml/txtai issue 487: readers get "database is locked" during an upsert."""
    mine.add("a stone in the stream")

    def write() -> None:
        for number in range(20):
            mine.add(f"water {number}", key="water")

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write), pool.submit(write)]
        while not all(each.done() for each in writing):
            assert "a stone in the stream" in found(mine, "stone")
        for each in writing:
            each.result()
    assert len(mine.get_all()) == 2


def test_asynchronous_adds_are_there_after_a_flush(mine: MemoryManage) -> None:
    """A queued add promises nothing until ``flush``; then it is as durable as any other."""
    for number in range(120):
        assert statuses(mine.add(f"soon {number}", mode="async")) == ["queued"]
    mine.flush()
    assert len(mine.get_all(limit=1000)) == 120


def test_an_asynchronous_add_that_cannot_be_is_told_at_once(mine: MemoryManage) -> None:
    """Nobody would look for the error of a text that was said to be queued."""
    with pytest.raises(InvalidText):
        mine.add("\0", mode="async")
    written = mine.add_many(["fine", " ", "fine too"], mode="async")
    assert statuses(written) == ["queued", "failed", "queued"]
    mine.flush()
    assert set(texts(mine.get_all())) == {"fine", "fine too"}


def test_an_asynchronous_add_that_fails_later_is_told_by_the_flush(mine: MemoryManage) -> None:
    """``on_duplicate="fail"`` can only be decided at the commit."""
    mine.add("said before")
    mine.add("said before", mode="async", on_duplicate="fail")
    with pytest.raises(Exception, match="already stored") as failure:
        mine.flush()
    assert type(failure.value).__name__ == "DuplicateMemory"
    mine.flush()


def test_what_is_queued_is_stored_by_closing(own_store: OwnStore) -> None:
    """A program that ends in good order must not lose what it queued a moment ago."""
    with own_store.other_process() as process:
        assert process.call("add", "a last word", user_id="u", mode="async")
    with own_store.open() as memory:
        assert texts(memory.get_all(user_id="u")) == ["a last word"]


def test_a_killed_server_comes_back(embedded_store: OwnStore) -> None:
    """The embedded server may be killed by the machine's memory guard at any time."""
    with embedded_store.open() as memory:
        id_ = memory.add("before the kill", user_id="u").id
        pid_file = embedded_store.data_dir() / "postgres" / "data" / "postmaster.pid"
        os.kill(int(pid_file.read_text(encoding="utf-8").split()[0]), signal.SIGKILL)
        memory.add("after the kill", user_id="u")
        assert memory.get(id_, user_id="u").memory == "before the kill"
        assert set(texts(memory.get_all(user_id="u"))) == {"before the kill", "after the kill"}


def test_an_unknown_id_is_not_found(mine: MemoryManage) -> None:
    """A miss is an error that says so, never an empty answer that looks like a memory."""
    for id_ in (uuid.uuid4().hex, str(uuid.uuid4()), "", "x", "%", "\0"):
        with pytest.raises(NotFound):
            mine.get(id_)
