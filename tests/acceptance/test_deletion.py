"""Deletion: at once, everywhere, of exactly what was named."""

import shutil
from pathlib import Path

import psycopg
import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import InputError, NotFound
from tests.acceptance.asking import found, ids, seen, statuses, texts
from tests.acceptance.opening import CANARY, Indexed, OwnStore
from tests.services.postgres import Database


def tables_that_say(database: Database, word: str) -> list[str]:
    """Tables of the truth of which a row holds the word in any column."""
    with database.admin() as connection:
        listed = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'threefold'"
        ).fetchall()
        return [name for (name,) in listed if _says(connection, name, word=word)]


def _says(connection: psycopg.Connection, table: str, *, word: str) -> bool:
    rows = psycopg.sql.SQL("SELECT FROM threefold.{} t WHERE t::text LIKE {}").format(
        psycopg.sql.Identifier(table), psycopg.sql.Literal(f"%{word}%")
    )
    return connection.execute(rows).rowcount > 0


def files_that_say(folder: Path, word: str) -> list[str]:
    """Files below a folder that hold the word."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if word.encode() in path.read_bytes()]


def test_delete_all_deletes_all(mine: MemoryManage) -> None:
    """Complaint 23, mem0ai/mem0 issue 6627: ``delete_all`` removed the first 100, said success."""
    mine.add_many([f"note {number}" for number in range(550)])
    assert mine.delete_all().deleted == 550
    assert len(mine.get_all()) == 0
    assert found(mine, "note") == set()


def test_delete_all_leaves_everybody_else_alone(memory: MemoryManage, user: str) -> None:
    """Complaint 24, mem0ai/mem0 issue 3746: ``delete_all(user_id=…)`` reset the collection."""
    memory.add("mine", user_id=user)
    memory.add("my agent's", user_id=user, agent_id="a1")
    memory.add("the neighbour's", user_id=f"{user}-b")
    memory.add("the project's", project_id=user)
    assert memory.delete_all(user_id=user).deleted == 2
    assert texts(memory.get_all(user_id=f"{user}-b")) == ["the neighbour's"]
    assert texts(memory.get_all(project_id=user)) == ["the project's"]


def test_delete_all_takes_no_limit(mine: MemoryManage) -> None:
    """A limit that would be ignored must not look as if it protected the rest."""
    mine.add("precious")
    options = {"limit": 1}
    with pytest.raises(InputError):
        mine.delete_all(**options)  # type: ignore[arg-type] # what the type checker would stop
    assert texts(mine.get_all()) == ["precious"]


def test_no_mode_of_search_finds_a_deleted_memory(mine: MemoryManage) -> None:
    """Complaint 25, mem0ai/mem0 pull 3610: deletes changed PostgreSQL but left the vector store."""
    id_ = mine.add("the password is swordfish").id
    mine.apply_now()
    assert found(mine, "password swordfish") != set()
    assert mine.delete(id_).status == "deleted"
    assert found(mine, "password swordfish") == set()
    mine.apply_now()
    assert found(mine, "password swordfish") == set()


def test_what_was_deleted_stays_away_after_a_restart(own_store: OwnStore) -> None:
    """Complaint 26, mem0ai/mem0 issue 6411: reset says success, the local store keeps the data."""
    with own_store.other_process() as process:
        process.call("add_many", ["one of many", "two of many"], user_id="u")
        process.call("apply_now")
        assert process.call("delete_all", user_id="u") == {"deleted": 2}
    with own_store.open() as memory:
        assert seen(memory, "many", user_id="u") == set()


def test_a_deleted_memory_is_in_no_table(own_store: OwnStore, database: Database) -> None:
    """Complaints 27 and 30, mem0ai/mem0 issue 3245, getzep/graphiti issue 1837: the text survives.

    There in graph nodes and in summaries; here it might in versions, chunks, receipts, the audit.
    """
    with own_store.open() as memory:
        id_ = memory.add(f"{CANARY} art", user_id="u", tags=[CANARY], idempotency_key="k").id
        memory.update(id_, content=f"{CANARY} prints", user_id="u")
        memory.search(CANARY, user_id="u")
        assert tables_that_say(database, CANARY) != []
        memory.delete(id_, user_id="u")
        assert tables_that_say(database, CANARY) == []


def test_a_deleted_memory_is_in_no_rebuilt_index(own_store: OwnStore) -> None:
    """Complaint 28, MemTensor/MemOS issue 2331: deleted in one store, found by its vector."""
    with own_store.other_process() as process:
        added = process.call("add_many", [f"{CANARY} art", "plain art"], user_id="u")
        process.call("apply_now")
        assert own_store.indexed() == Indexed(vectors=2, chunks=2, canaries=1)
        process.call("delete", added["results"][0]["id"], user_id="u")
        process.call("apply_now")
    own_store.lose_indexes()
    with own_store.open() as memory:
        memory.search(CANARY, user_id="u")
        memory.apply_now()
        assert seen(memory, CANARY, user_id="u") == {"plain art"}
        assert own_store.indexed() == Indexed(vectors=1, chunks=1, canaries=0)
        for folder in own_store.index_folders():
            assert files_that_say(folder, CANARY) == []


def test_a_repeated_question_forgets_what_was_deleted(mine: MemoryManage) -> None:
    """Complaint 29, CaviraOSS/LongMemory issue 186: a cache serves deleted memories."""
    id_ = mine.add("the meeting is in room nine").id
    assert ids(mine.search("which room")) == [id_]
    assert ids(mine.search("which room")) == [id_]
    mine.delete(id_)
    assert ids(mine.search("which room")) == []


def test_deleting_a_session_takes_every_part_of_it(memory: MemoryManage, user: str) -> None:
    """Complaint 31, getzep/graphiti pull 1491: only the episode goes, its parts stay."""
    long = "\n\n".join(f"paragraph {number} about the orchard wall" * 9 for number in range(40))
    turns = [{"role": "user", "content": long}, {"role": "assistant", "content": "a wall, then"}]
    memory.add(turns, user_id=user, run_id="s1")
    memory.add("the wall of another session", user_id=user, run_id="s2")
    memory.apply_now()
    assert memory.delete_all(user_id=user, run_id="s1").deleted == 2
    assert seen(memory, "orchard wall", user_id=user) == {"the wall of another session"}


def test_a_memory_is_deleted_by_its_id(mine: MemoryManage) -> None:
    """Complaint 34, MemoriLabs/Memori issue 303: how do I delete a memory at all?"""
    id_ = mine.add("a slip of the tongue").id
    assert statuses([mine.delete(id_), mine.delete(id_)]) == ["deleted", "already_deleted"]
    for read in (mine.get, mine.history):
        with pytest.raises(NotFound):
            read(id_)
    with pytest.raises(NotFound):
        mine.update(id_, content="revived")
    with pytest.raises(NotFound):
        mine.delete("0" * 32)


def test_one_call_clears_a_user(memory: MemoryManage, user: str) -> None:
    """Complaint 35, MemTensor/MemOS issue 1103: clearing a user means deleting one by one."""
    for agent in ("a1", "a2", "a3"):
        memory.add_many([f"{agent} says {n}" for n in range(40)], user_id=user, agent_id=agent)
    assert memory.delete_all(user_id=user).deleted == 120
    assert seen(memory, "says", user_id=user) == set()


def test_counts_leave_out_what_was_deleted(own_store: OwnStore) -> None:
    """Complaint 70, doobidoo/mcp-memory-service issue 750: tombstones are counted on one side."""
    with own_store.open() as memory:
        memory.add_many(["one", "two", "three"], user_id="u")
        memory.delete(memory.get_all(user_id="u").results[0].id, user_id="u")
        assert memory.stats().memories == len(memory.get_all(user_id="u")) == 2


def test_the_same_text_may_be_stored_again(mine: MemoryManage) -> None:
    """What was deleted must not stand in the way as a duplicate of what comes after it."""
    first = mine.add("a song")
    mine.delete(first.id)
    second = mine.add("a song")
    assert statuses(second) == ["added"]
    assert second.id != first.id
    assert ids(mine.search("song")) == [second.id]


def test_an_old_copy_of_the_indexes_revives_nothing(own_store: OwnStore) -> None:
    """Index folders of before a deletion, put back by a backup tool, must not bring it back."""
    with own_store.other_process() as process:
        added = process.call("add_many", [f"{CANARY} art", "plain art"], user_id="u")
        process.call("apply_now")
    folders = own_store.index_folders()
    for number, folder in enumerate(folders):
        shutil.copytree(folder, own_store.folder / f"old-{number}")
    with own_store.other_process() as process:
        process.call("delete", added["results"][0]["id"], user_id="u")
        process.call("apply_now")
    own_store.lose_indexes()
    for number, folder in enumerate(folders):
        (own_store.folder / f"old-{number}").rename(folder)
    with own_store.open() as memory:
        assert seen(memory, CANARY, user_id="u") == {"plain art"}
        memory.apply_now()
        assert seen(memory, CANARY, user_id="u") == {"plain art"}
