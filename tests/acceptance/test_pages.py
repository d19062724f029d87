"""Pages and results: nothing twice, nothing missing, and read as people are used to."""

import json
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import NotFound
from tests.acceptance.asking import ids, texts

NOON: Final = datetime(2025, 7, 1, 12, tzinfo=UTC)


def fill(memory: MemoryManage, count: int) -> None:
    """Memories of a few instants, of which many are shared."""
    memory.add_many(
        [
            {"content": f"leaf {n} of tree {n % 9}", "occurred_at": NOON + timedelta(days=n % 7)}
            for n in range(count)
        ]
    )


@pytest.mark.parametrize("limit", [1, 4, 50, 51])
def test_pages_of_a_listing_neither_repeat_nor_skip(mine: MemoryManage, limit: int) -> None:
    """Equal times must not lose a memory between two pages."""
    fill(mine, 51)
    whole = ids(mine.get_all())
    assert len(set(whole)) == 51
    paged: list[str] = []
    cursor = None
    while True:
        page = mine.get_all(limit=limit, cursor=cursor)
        paged += ids(page)
        assert len(page) <= limit
        cursor = page.cursor
        if cursor is None:
            break
    assert paged == whole


def test_what_is_written_between_two_pages_shifts_nothing(mine: MemoryManage) -> None:
    """A cursor names a place, not a count."""
    fill(mine, 20)
    whole = ids(mine.get_all())
    first = mine.get_all(limit=8)
    mine.add("newer than all", occurred_at=NOON + timedelta(days=99))
    mine.delete(whole[0])
    second = mine.get_all(limit=100, cursor=first.cursor)
    assert ids(first) + ids(second) == whole


def test_seven_pages_of_a_search_are_one_big_page(mine: MemoryManage) -> None:
    """The candidates are the same however they are handed out."""
    fill(mine, 120)
    mine.apply_now()
    asked = "a leaf of tree three"
    whole = mine.search(asked, limit=49, now=NOON, threshold=0.0)
    paged: list[str] = []
    cursor = None
    for _ in range(7):
        page = mine.search(asked, limit=7, now=NOON, threshold=0.0, cursor=cursor)
        paged += ids(page)
        cursor = page.cursor
    assert paged == ids(whole)


def test_pages_of_a_search_end_without_repeating(mine: MemoryManage) -> None:
    """However far one turns the pages: every hit once, then no cursor."""
    fill(mine, 300)
    mine.apply_now()
    paged: list[str] = []
    page = mine.search("leaf tree", limit=20, threshold=0.0)
    while page.cursor is not None:
        paged += ids(page)
        page = mine.search("leaf tree", limit=20, threshold=0.0, cursor=page.cursor)
    paged += ids(page)
    assert len(paged) == len(set(paged))
    assert len(paged) >= 100


def test_a_listing_goes_on_under_the_same_question_only(memory: MemoryManage, user: str) -> None:
    """The scope is a part of the question, so a cursor opens nobody else's pages."""
    for name in (user, f"{user}-b"):
        memory.add_many([f"{name} {number}" for number in range(5)], user_id=name)
    cursor = memory.get_all(user_id=user, limit=2).cursor
    assert len(memory.get_all(user_id=user, limit=2, cursor=cursor)) == 2
    with pytest.raises(Exception, match="cursor belongs to another query"):
        memory.get_all(user_id=f"{user}-b", limit=2, cursor=cursor)


def test_results_read_as_objects_and_as_mappings(mine: MemoryManage) -> None:
    """People come from ``response["results"][0]["memory"]``, and from attributes."""
    written = mine.add("a mapping", tags=["t"], metadata={"n": 1})
    assert written["results"][0]["id"] == written.id == written.results[0].id
    answer = mine.search("a mapping", explain=True)
    assert answer["results"][0]["memory"] == answer.results[0].memory == "a mapping"
    assert [item["memory"] for item in answer] == texts(answer)
    assert (len(answer), "results" in answer, answer.get("nothing", 0)) == (1, True, 0)
    with pytest.raises(KeyError):
        answer["nothing"]
    item = mine.get(written.id)
    assert dict(item)["tags"] == ("t",)
    assert mine.get_all()["results"] == (item,)
    assert set(item.keys()) >= {"id", "memory", "score", "type", "source", "created_at", "version"}


def test_results_become_json(mine: MemoryManage) -> None:
    """``to_dict`` is what an API answers with."""
    mine.add("in JSON", occurred_at=NOON, metadata={"deep": {"list": [1, None]}})
    plain = json.loads(json.dumps(mine.search("in JSON", explain=True).to_dict()))
    (item,) = plain["results"]
    assert item["memory"] == "in JSON"
    assert item["occurred_at"] == NOON.isoformat()
    assert item["metadata"] == {"deep": {"list": [1, None]}}
    assert set(item["explanation"]["arms"]) == {"vector", "keyword"}


def test_results_do_not_change(mine: MemoryManage) -> None:
    """What was answered stays what was answered, whoever holds it."""
    item = mine.get(mine.add("frozen").id)
    with pytest.raises(AttributeError):
        item.memory = "thawed"  # type: ignore[misc] # the mistake to be refused


def test_nothing_stored_has_no_id(mine: MemoryManage) -> None:
    """``Written.id`` is the first id there is, and an error where there is none."""
    with pytest.raises(NotFound):
        _ = mine.add([{"role": "user", "content": ""}]).id


def test_figures_and_health_show_no_content(memory: MemoryManage, user: str) -> None:
    """Both are open to whoever watches the system, without a scope."""
    memory.add(f"a secret of {user}", user_id=user)
    memory.search("secret", user_id=user)
    stats, health = memory.stats(), memory.health()
    assert health.ok
    assert set(health.stores) == {"records", "keyword index", "vector index", "embedder"}
    assert stats.memories > 0
    assert stats.namespaces > 0
    assert stats.p95_retrieve_latency >= stats.p50_retrieve_latency > 0
    assert 0 <= stats.cache_hit_rate <= 1
    assert user not in json.dumps([stats.to_dict(), health.to_dict()])
