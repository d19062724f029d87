"""Restarts and lost indexes: the truth is enough to answer from, and to heal with."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import Unavailable
from tests.acceptance.asking import MODES, found, ids, texts
from tests.acceptance.opening import Indexed, OwnStore

FACTS: Final = tuple(f"fact {number} about subject {number % 5}" for number in range(40))


def answers(memory: MemoryManage) -> dict[str, list[str]]:
    """The best ten of each mode, in order."""
    return {
        mode: texts(
            memory.search("fact 7 subject", user_id="u", mode=mode, threshold=0.0, limit=10)
        )
        for mode in MODES
    }


def degraded_parts(memory: MemoryManage) -> set[str]:
    """The parts that a search says are missing."""
    answer = memory.search("fact 7 subject", user_id="u")
    return {note.part for note in answer.degraded}


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A store of forty facts with indexes that hold them, closed."""
    with own_store.other_process() as process:
        process.call("add_many", FACTS, user_id="u")
        process.call("apply_now")
    return own_store


def test_a_restart_keeps_everything(embedded_store: OwnStore) -> None:
    """Memories, versions, deletions and answers given, with the server stopped in between."""
    with embedded_store.other_process() as process:
        for fact in FACTS:
            process.call("add", fact, user_id="u", idempotency_key=fact)
        changed, gone = (
            process.call("add", fact, user_id="u", idempotency_key=fact)["results"][0]["id"]
            for fact in FACTS[:2]
        )
        process.call("update", changed, content="a changed fact", user_id="u")
        process.call("delete", gone, user_id="u")
    with embedded_store.open() as memory:
        stored = {"a changed fact", *FACTS[2:]}
        assert set(texts(memory.get_all(user_id="u"))) == stored
        assert found(memory, "fact", user_id="u") == stored
        assert texts(memory.history(changed, user_id="u")) == [FACTS[0], "a changed fact"]
        assert memory.delete(gone, user_id="u").status == "already_deleted"
        again = memory.add(FACTS[5], user_id="u", idempotency_key=FACTS[5])
        assert again.results[0].status == "added"
        assert len(memory.get_all(user_id="u")) == len(stored)


def test_a_lost_index_is_said_and_answers_stay_whole(filled: OwnStore) -> None:
    """Complaint 13, vectorize-io/hindsight issue 2645: lost indexes under-return, silently."""
    with filled.other_process() as process:
        exact = process.call("search", "fact 7 subject", user_id="u", threshold=0.0, limit=10)
    wanted = [item["id"] for item in exact["results"]]
    shutil.rmtree(filled.index_folders()[0])
    with filled.open() as memory:
        answer = memory.search("fact 7 subject", user_id="u", threshold=0.0, limit=10)
        assert ids(answer) == wanted
        assert {note.part for note in answer.degraded} == {"vector"}


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1)], ids=["vectors", "keywords", "both"])
def test_deleting_index_folders_loses_nothing_and_heals(
    filled: OwnStore, lost: tuple[int, ...]
) -> None:
    """Whatever the folders held is in the truth: answers at once, indexes a moment later."""
    for number in lost:
        shutil.rmtree(filled.index_folders()[number])
    with filled.open() as memory:
        assert found(memory, "fact", user_id="u") == set(FACTS)
        assert set(texts(memory.get_all(user_id="u"))) == set(FACTS)
        assert memory.apply_now() is True
        assert filled.indexed() == Indexed(vectors=40, chunks=40, canaries=0)
        assert degraded_parts(memory) == set()
        assert found(memory, "fact", user_id="u") == set(FACTS)


@pytest.mark.parametrize("lost", [0, 1], ids=["vectors", "keywords"])
def test_a_lost_index_heals_by_itself(filled: OwnStore, lost: int) -> None:
    """P5: nobody calls ``apply_now``; the search that meets the loss is enough."""
    shutil.rmtree(filled.index_folders()[lost])
    with filled.open() as memory:
        searches = (degraded_parts(memory) for _ in range(1000))
        assert set() in searches
        assert found(memory, "fact", user_id="u") == set(FACTS)


def spoil(folder: Path) -> None:
    """Overwrite every file in place with other bytes of the same length."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xa5" * path.stat().st_size)


@pytest.mark.parametrize("spoilt", [0, 1], ids=["vectors", "keywords"])
def test_corrupt_files_are_noticed_and_replaced(filled: OwnStore, spoilt: int) -> None:
    """Bytes that are read at all are checked; an answer from others would be a wrong one."""
    spoil(filled.index_folders()[spoilt])
    with filled.open() as memory:
        assert degraded_parts(memory) == {("vector", "keyword")[spoilt]}
        assert found(memory, "fact", user_id="u") == set(FACTS)
        memory.apply_now()
        assert degraded_parts(memory) == set()
        assert found(memory, "fact", user_id="u") == set(FACTS)


@pytest.mark.parametrize("lost", [0, 1], ids=["vectors", "keywords"])
def test_losing_an_index_in_use_changes_no_answer(filled: OwnStore, lost: int) -> None:
    """A folder that goes away under a running process never changes an answer."""
    with filled.open() as memory:
        before = answers(memory)
        shutil.rmtree(filled.index_folders()[lost])
        assert answers(memory) == before
        memory.add("a new fact", user_id="u")
        assert "a new fact" in found(memory, "new fact", user_id="u")
        heal(memory)
        assert found(memory, "fact", user_id="u") == {*FACTS, "a new fact"}
        assert degraded_parts(memory) == set()


@pytest.mark.parametrize("spoilt", [0, 1], ids=["vectors", "keywords"])
def test_spoiling_an_index_in_use_changes_no_answer(filled: OwnStore, spoilt: int) -> None:
    """The same when the files are overwritten in place."""
    with filled.open() as memory:
        before = answers(memory)
        spoil(filled.index_folders()[spoilt])
        assert answers(memory) == before
        heal(memory)
        assert degraded_parts(memory) == set()
        assert found(memory, "fact", user_id="u") == set(FACTS)


def heal(memory: MemoryManage) -> None:
    """Apply until it works: the first attempt may be the one that finds the damage."""
    for _ in range(3):
        memory.search("fact", user_id="u")
        try:
            memory.apply_now()
        except Unavailable:
            continue
        return
