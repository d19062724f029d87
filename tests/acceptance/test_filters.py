"""Filters: each condition holds, whatever the backend, and none is dropped in silence."""

from collections.abc import Mapping
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import InvalidFilter
from memory_tool.model import Json
from tests.acceptance.asking import MODES, found, ids, texts

FRUITS: Final[tuple[tuple[str, Mapping[str, Json]], ...]] = (
    ("apple", {"size": 5, "label": "Work Notes", "ripe": True, "places": ["garden", "Market"]}),
    ("banana", {"size": 7, "label": "work notes", "ripe": False, "places": ["market"]}),
    ("cherry", {"size": "5", "label": "工作 笔记"}),
    ("damson", {"label": None}),
)
MEANINGS: Final[tuple[tuple[object, set[str]], ...]] = (
    ({"size": {"eq": 5}}, {"apple"}),
    ({"size": {"ne": 5}}, {"banana", "cherry", "damson"}),
    ({"size": {"gt": 5}}, {"banana"}),
    ({"size": {"gte": 5}}, {"apple", "banana"}),
    ({"size": {"lt": 7}}, {"apple"}),
    ({"size": {"lte": 7}}, {"apple", "banana"}),
    ({"size": {"in": [5, "5"]}}, {"apple", "cherry"}),
    ({"size": {"nin": [5, "5"]}}, {"banana", "damson"}),
    ({"label": {"contains": "Notes"}}, {"apple"}),
    ({"places": {"contains": "market"}}, {"banana"}),
    ({"label": {"icontains": "NOTES"}}, {"apple", "banana"}),
    ({"ripe": {"exists": True}}, {"apple", "banana"}),
    ({"ripe": {"exists": False}}, {"cherry", "damson"}),
    ({"label": {"exists": True}}, {"apple", "banana", "cherry", "damson"}),
    ({"size": {"$gt": 5}}, {"banana"}),
    ({"NOT": {"ripe": True}}, {"banana", "cherry", "damson"}),
    ({"OR": [{"size": 7}, {"size": "5"}]}, {"banana", "cherry"}),
    ({"AND": [{"size": {"gte": 5}}, {"ripe": True}]}, {"apple"}),
    ("size >= 5 AND NOT ripe = false", {"apple"}),
    ("metadata.label = '工作 笔记'", {"cherry"}),
    ({}, {"apple", "banana", "cherry", "damson"}),
    (None, {"apple", "banana", "cherry", "damson"}),
)


@pytest.fixture(scope="module")
def fruits(memory: MemoryManage) -> MemoryManage:
    """Four memories, a word each, with metadata of every kind."""
    bound = memory.scoped(namespace=("the filters", "of fruit"))
    bound.delete_all()
    for name, metadata in FRUITS:
        bound.add(name, metadata=metadata)
    return bound


def test_a_filter_reaches_what_lies_far_from_the_question(mine: MemoryManage) -> None:
    """Complaint 7, mem0ai/mem0 issue 6998: filtered after fetching 2 x top_k, expected 5, got 0."""
    near: list[Mapping[str, Json]] = [
        {"content": f"green tea, cup {n}", "metadata": {"owner": "Bob"}} for n in range(300)
    ]
    far: list[Mapping[str, Json]] = [
        {"content": f"stones {n}", "metadata": {"owner": "Alice"}} for n in range(5)
    ]
    mine.add_many([*near, *far])
    wanted = {f"stones {n}" for n in range(5)}
    for mode in MODES[1:]:
        answer = mine.search(
            "green tea", mode=mode, filters={"owner": "Alice"}, threshold=0.0, limit=5
        )
        assert set(texts(answer)) == wanted


def test_a_scope_reaches_what_lies_far_from_the_question(memory: MemoryManage, user: str) -> None:
    """The same complaint with the users as scopes: the others' memories are no competition."""
    memory.add_many([f"green tea, cup {n}" for n in range(15)], project_id=user, user_id="bob")
    memory.add_many([f"stones {n}" for n in range(5)], project_id=user, user_id="alice")
    memory.apply_now()
    alice = memory.scoped(project_id=user, user_id="alice")
    assert found(alice, "green tea") == {f"stones {n}" for n in range(5)}


@pytest.mark.parametrize(("condition", "wanted"), MEANINGS)
def test_an_operator_means_what_is_written(
    fruits: MemoryManage, condition: object, wanted: set[str]
) -> None:
    """Complaint 11, mem0ai/mem0 issue 3975: promised operators fail in each backend another way."""
    assert set(texts(fruits.get_all(filters=condition))) == wanted
    assert found(fruits, "apple banana cherry damson", filters=condition) == wanted


@pytest.mark.parametrize(
    "condition",
    [
        {"size": {"greater": 5}},
        {"size": {"gt": {"n": 5}}},
        {"size": {"value": 5}},
        {"size": {}},
        {"size": [5]},
        {"$nor": [{"size": 5}]},
        {"OR": []},
        {"content": "apple"},
        {"type": {"gt": "event"}},
        {"type": "fruit"},
        {"user_id": {"ne": "anna"}},
        {"OR": [{"user_id": "anna"}, {"size": 5}]},
        {"size": float("nan")},
        {"label": "\0"},
        "size => 5",
        "size = 5; DROP TABLE memory",
        ["size", 5],
        5,
    ],
)
def test_a_filter_that_cannot_be_understood_is_an_error(
    fruits: MemoryManage, condition: object
) -> None:
    """Complaint 8, mem0ai/mem0 issue 7214: operator filters are dropped, the search unfiltered."""
    for ask in (
        lambda: fruits.search("apple", filters=condition),
        lambda: fruits.get_all(filters=condition),
        lambda: fruits.delete_all(filters=condition),
    ):
        with pytest.raises(InvalidFilter):
            ask()
    assert len(fruits.get_all()) == len(FRUITS)


def test_a_value_with_capitals_and_a_space_is_matched_whole(fruits: MemoryManage) -> None:
    """Complaint 9, mem0ai/mem0 issue 7157: no match once the value has a capital."""
    assert texts(fruits.get_all(filters={"label": "Work Notes"})) == ["apple"]
    assert found(fruits, "apple banana", filters={"label": "work notes"}) == {"banana"}


@pytest.mark.parametrize("run", ["S7 Monday", "2f6c-4e1b", "会话 1", "a'b\"c", "*"])
def test_a_run_is_found_by_its_id(mine: MemoryManage, run: str) -> None:
    """Complaint 10, mem0ai/mem0 issue 3744: ``run_id`` filters are empty though data is there."""
    mine.add(f"a cup of tea in {run}", run_id=run)
    mine.add("a cup of tea elsewhere", run_id=f"{run}x")
    wanted = {f"a cup of tea in {run}"}
    assert found(mine, "cup of tea", run_id=run) == wanted
    assert set(texts(mine.get_all(filters={"run_id": run}))) == wanted


def test_the_mode_that_is_asked_for_is_the_one_that_runs(mine: MemoryManage) -> None:
    """Complaint 14, getzep/graphiti issue 788: configured search methods are ignored; all run."""
    mine.add("the teapot is blue")
    mine.add("the tea pots are green")
    arms = {"keyword": {"keyword"}, "vector": {"vector"}, "hybrid": {"keyword", "vector"}}
    for mode in MODES:
        answer = mine.search("teapot", mode=mode, explain=True, threshold=0.0)
        asked = [item.explanation for item in answer]
        assert answer.strategy == mode
        assert {arm for said in asked if said for arm in said.arms} == arms[mode]


def test_a_filter_narrows_deletion_too(mine: MemoryManage) -> None:
    """A condition that search obeys and ``delete_all`` forgets would be the worst of all."""
    mine.add("keep this", tags=["keep"])
    mine.add("drop this", tags=["drop"], importance=1)
    assert mine.delete_all(filters={"importance": {"lt": 3}}, tags=["drop"]).deleted == 1
    assert texts(mine.get_all()) == ["keep this"]


def test_types_and_tags_are_conditions(mine: MemoryManage) -> None:
    """The short words for the commonest filters mean the same as the long ones."""
    event = mine.add("the fair", type="event", tags=["town", "May"]).id
    mine.add("the fair price", type="knowledge", tags=["town"])
    assert ids(mine.search("fair", types=["event"])) == [event]
    assert ids(mine.get_all(tags=["May", "June"])) == [event]
    assert ids(mine.get_all(filters={"type": "event", "tags": {"contains": "town"}})) == [event]
