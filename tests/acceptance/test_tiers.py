"""Memories age: searches answer from every tier, and say from which."""

import json
from collections.abc import Sequence
from dataclasses import replace

from memory_manage.manager import MemoryManage
from tests.acceptance.asking import ids, texts
from tests.acceptance.opening import OwnStore
from tests.integration.tier_house import CHINESE, ENGLISH
from tests.services.postgres import Database


def age(database: Database, days: int, *memory_ids: str) -> None:
    """Let memories have been made and changed that many days earlier."""
    with database.admin() as connection:
        connection.execute(
            "UPDATE threefold.memory SET created_at = created_at - make_interval(days => %s),"
            " updated_at = updated_at - make_interval(days => %s) WHERE id = ANY (%s::uuid[])",
            [days, days, list(memory_ids)],
        )


def tiers_of(memory: MemoryManage, query: str, *, wanted: str) -> Sequence[str]:
    """The tiers of the results of a search by words that say exactly this, whole."""
    found = memory.search(query, user_id="anna", mode="keyword", limit=10)
    assert found.degraded == ()
    return [item.tier for item in found if item.memory == wanted]


def test_a_search_answers_from_every_tier(own_store: OwnStore, database: Database) -> None:
    """In both languages, by words and by meaning, each memory once and whole.

    The keyword index holds the hot ones only; a change brings a memory back into it.
    """
    archive = str(own_store.folder / "archive")
    own_store = replace(own_store, settings={"archive_dir": archive})
    with own_store.open() as memory:
        hot_en, warm_en, cold_en = (f"{ENGLISH} Page {number}." for number in range(3))
        hot_zh, warm_zh, cold_zh = (f"{CHINESE}第{number}页。" for number in range(3))
        written = [
            memory.add(text, user_id="anna").id
            for text in (hot_en, warm_en, cold_en, hot_zh, warm_zh, cold_zh)
        ]
        memory.update(written[2], user_id="anna", tags=["harbour"])
        age(database, 10, written[1], written[4])
        age(database, 40, written[2], written[5])
        moved = own_store.command("tiers", "--run")
        assert moved.returncode == 0, moved.stderr
        assert [line.split() for line in moved.stdout.splitlines()][:3] == [
            ["hot", "2"],
            ["warm", "2"],
            ["cold", "2"],
        ]
        for mode in ("keyword", "vector", "hybrid"):
            for query, expected in (
                ("Anna bought the blue harbour ledger", written[:3]),
                ("安娜购买的港口账本", written[3:]),
            ):
                found = memory.search(query, user_id="anna", mode=mode, limit=10, threshold=0)
                assert found.degraded == ()
                assert len(set(ids(found))) == len(found)
                assert set(expected) <= set(ids(found))
                said = dict(zip(ids(found), texts(found), strict=True))
                wanted = (hot_en, warm_en, cold_en, hot_zh, warm_zh, cold_zh)
                for memory_id, text in zip(written, wanted, strict=True):
                    assert said.get(memory_id, text) == text
        assert tiers_of(memory, "harbour ledger", wanted=cold_en) == ["cold"]
        assert tiers_of(memory, "港口账本", wanted=warm_zh) == ["warm"]
        filtered = memory.search("ledger", user_id="anna", filters={"tier": "cold"}, limit=10)
        assert {item.tier for item in filtered} == {"cold"}
        assert set(texts(memory.get_all(user_id="anna"))) == {
            hot_en, warm_en, cold_en, hot_zh, warm_zh, cold_zh,
        }  # fmt: skip
        assert memory.get(written[2], user_id="anna", version=1).memory == cold_en
        memory.delete(written[2], user_id="anna")
        assert tiers_of(memory, "harbour ledger", wanted=cold_en) == []
        memory.update(written[1], user_id="anna", importance=3)
        assert tiers_of(memory, "harbour ledger", wanted=warm_en) == ["hot"]
        assert memory.apply_now()
    with database.admin() as connection:
        hot = connection.execute(
            "SELECT count(*) FROM threefold.chunk k JOIN threefold.memory m"
            " ON m.ns_id = k.ns_id AND m.id = k.memory_id WHERE m.tier = 'hot'"
        ).fetchall()
    assert hot == [(own_store.keyword_chunks(),)]


def test_nothing_is_archived_where_other_hosts_could_not_read_it(
    own_store: OwnStore, database: Database
) -> None:
    """A text that only one host can show is half lost: the folder has to be named."""
    with own_store.open() as memory:
        age(database, 40, memory.add(ENGLISH, user_id="anna").id)
    told = json.loads(own_store.command("tiers", "--run", "--json").stdout)
    assert told["memories"] == {"hot": 0, "warm": 1, "cold": 0}
    assert (told["archive"]["on"], told["moved"]) == (False, 1)


def test_use_is_counted(own_store: OwnStore) -> None:
    """Of what was returned, by searches and look-ups, when a process ends at the latest."""
    with own_store.open() as memory:
        used = memory.add("the ledger is blue", user_id="anna").id
        other = memory.add("coffee is black", user_id="anna").id
        memory.search("ledger", user_id="anna", mode="keyword")
        memory.get(used, user_id="anna")
        assert memory.get(used, user_id="anna").access_count == 0
    with own_store.open() as memory:
        again = memory.get(used, user_id="anna")
        assert again.access_count == 3
        assert again.last_accessed_at is not None
        assert again.last_accessed_at >= again.created_at
        listed = {item.id: item.access_count for item in memory.get_all(user_id="anna")}
        assert listed == {used: 3, other: 0}
        assert again.version == 1
