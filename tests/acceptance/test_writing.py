"""Adding and changing: duplicates, keys, merged metadata, bulk."""

from datetime import UTC, datetime
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import DuplicateMemory, InputError, VersionConflict
from memory_tool.model import MemoryType, NewMemory, OnDuplicate
from tests.acceptance.asking import ids, statuses, texts

EVERY_FIELD: Final = {
    "content": "a record in full",
    "type": "event",
    "importance": 4,
    "pinned": True,
    "confidence": 0.5,
    "source": {"trace_id": "tr_12"},
    "tags": ["full", "满"],
    "metadata": {"n": 1, "list": [1, "a", None], "deep": {"x": True}},
    "occurred_at": "2025-07-01T12:00:00+00:00",
    "key": "full",
}


def test_the_same_text_is_skipped(mine: MemoryManage) -> None:
    """The default: a second copy returns the first one's id and changes nothing."""
    first = mine.add("the sky is blue", importance=5)
    again = mine.add("the sky is blue", importance=1)
    assert statuses(again) == ["duplicate"]
    assert again.id == first.id
    assert mine.get(first.id).importance == 5


def test_the_same_text_may_update(mine: MemoryManage) -> None:
    """``update`` takes what the new copy says and keeps the id."""
    first = mine.add("the sky is blue", metadata={"a": 1})
    again = mine.add("the sky is blue", metadata={"b": 2}, importance=3, on_duplicate="update")
    assert statuses(again) == ["updated"]
    assert (again.id, again.results[0].version) == (first.id, 2)
    stored = mine.get(first.id)
    assert (stored.metadata, stored.importance) == ({"a": 1, "b": 2}, 3)


def test_the_same_text_may_fail(mine: MemoryManage) -> None:
    """``fail`` names the memory that is in the way."""
    first = mine.add("the sky is blue")
    with pytest.raises(DuplicateMemory, match=first.id):
        mine.add("the sky is blue", on_duplicate="fail")
    many = mine.add_many(["the sky is blue", "the sea is too"], on_duplicate="fail")
    assert statuses(many) == ["failed", "added"]


def test_the_same_text_may_be_kept_twice(mine: MemoryManage) -> None:
    """``keep`` stores a second memory, and later copies still find the first one."""
    first = mine.add("the sky is blue")
    second = mine.add("the sky is blue", on_duplicate="keep")
    assert statuses(second) == ["added"]
    assert second.id != first.id
    assert mine.add("the sky is blue").id == first.id
    assert len(mine.get_all()) == 2


def test_copies_within_one_call_change_one_memory(mine: MemoryManage) -> None:
    """Two records of one text or one key in a bulk add are two changes of one row, in order."""
    written = mine.add_many(
        [
            {"content": "a pond", "metadata": {"a": 1}},
            {"content": "a pond", "metadata": {"b": 2}},
            {"content": "a lake", "key": "k", "metadata": {"c": 3}},
            {"content": "a sea", "key": "k", "metadata": {"d": 4}},
        ],
        on_duplicate="update",
    )
    assert statuses(written) == ["added", "updated", "added", "updated"]
    stored = {item.memory: item.metadata for item in mine.get_all()}
    assert stored == {"a pond": {"a": 1, "b": 2}, "a sea": {"c": 3, "d": 4}}


def test_only_the_same_text_of_the_same_namespace_is_a_duplicate(
    memory: MemoryManage, user: str
) -> None:
    """Letters and scopes that differ make another memory."""
    for text in ("Bill", "bill", "Bill.", "Ｂill"):
        assert statuses(memory.add(text, user_id=user)) == ["added"]
    assert statuses(memory.add("Bill", user_id=f"{user}-b")) == ["added"]
    assert statuses(memory.add("Bill", user_id=user, agent_id="a")) == ["added"]


def test_an_update_changes_what_it_names(mine: MemoryManage) -> None:
    """Metadata is merged one level deep, ``None`` removes a name, everything else stays."""
    id_ = mine.add(
        "a plan", metadata={"a": 1, "b": {"x": 1, "y": 2}, "c": 3}, tags=["t"], importance=3
    ).id
    mine.update(id_, metadata={"b": {"x": 9}, "c": None, "d": 4})
    stored = mine.get(id_)
    assert stored.metadata == {"a": 1, "b": {"x": 9}, "d": 4}
    assert (stored.memory, stored.tags, stored.importance) == ("a plan", ("t",), 3)
    mine.update(id_, importance=None, tags=[], occurred_at=datetime(2025, 7, 1, tzinfo=UTC))
    stored = mine.get(id_)
    assert (stored.importance, stored.tags, stored.version) == (None, (), 3)


def test_an_update_that_changes_nothing_makes_no_version(mine: MemoryManage) -> None:
    """Saving a form twice must not fill the history."""
    id_ = mine.add("a plan", tags=["t"]).id
    assert mine.update(id_, tags=["t"], content="a plan").version == 1
    with pytest.raises(InputError):
        mine.update(id_)


def test_an_update_may_not_make_a_duplicate(mine: MemoryManage) -> None:
    """The text of another memory is refused with that memory's id, and nothing changes."""
    first, second = mine.add("the first").id, mine.add("the second").id
    with pytest.raises(DuplicateMemory, match=first):
        mine.update(second, content="the first")
    assert mine.get(second).memory == "the second"


def test_an_update_may_say_what_an_expired_memory_said(mine: MemoryManage) -> None:
    """Who can't be seen can't be in the way."""
    mine.add("the first", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    second = mine.add("the second").id
    assert mine.update(second, content="the first").status == "updated"
    assert texts(mine.search("the first")) == ["the first"]


def test_only_the_expected_version_is_changed(mine: MemoryManage) -> None:
    """Of two editors who read the same version, the second learns of the first."""
    id_ = mine.add("version one").id
    mine.update(id_, content="by the first editor", expected_version=1)
    with pytest.raises(VersionConflict):
        mine.update(id_, content="by the second editor", expected_version=1)
    assert mine.get(id_).memory == "by the first editor"


def test_a_record_is_stored_as_it_is_given(mine: MemoryManage) -> None:
    """The JSON form of a memory, as an export has it, loses nothing."""
    id_ = mine.add(EVERY_FIELD).id
    item = mine.get(id_).to_dict()
    assert {name: item[name] for name in EVERY_FIELD if name != "content"} == {
        name: value for name, value in EVERY_FIELD.items() if name != "content"
    }
    assert item["memory"] == EVERY_FIELD["content"]


def test_a_bulk_add_answers_in_the_order_of_its_inputs(mine: MemoryManage) -> None:
    """One answer for each input, whatever its form and whatever became of it."""
    written = mine.add_many(
        [
            "a plain text",
            {"content": "a record", "type": "event"},
            NewMemory(content="a noun", type=MemoryType.KNOWLEDGE),
            "a plain text",
            "",
            *(f"item {number}" for number in range(100)),
        ]
    )
    expected = ["added", "added", "added", "duplicate", "failed", *["added"] * 100]
    assert statuses(written) == expected
    told = [mine.get(item.id).memory for item in written if item.id][4:]
    assert told == [f"item {number}" for number in range(100)]


def test_a_noun_takes_from_the_call_what_it_leaves_open(memory: MemoryManage, user: str) -> None:
    """A bound session holds for every form of input, or its memories are lost to its searches."""
    session = memory.scoped(user_id=user, run_id="s7")
    session.add_many(["a text", NewMemory(content="I like noun pie"), {"content": "a record"}])
    session.add_many([NewMemory(content="of another", run_id="s8")])
    assert set(texts(session.get_all())) == {"a text", "I like noun pie", "a record"}
    kinds = {item.memory: item.type for item in session.get_all()}
    assert kinds["I like noun pie"] == "preference"
    kept = session.add_many([NewMemory(content="a text")] * 2, on_duplicate="keep")
    assert statuses(kept) == ["added", "added"]
    mixed = [NewMemory(content="a text", on_duplicate=OnDuplicate.FAIL)]
    assert statuses(session.add_many(mixed, on_duplicate="keep")) == ["failed"]


def test_an_id_may_be_spelt_with_hyphens_and_capitals(mine: MemoryManage) -> None:
    """A UUID that went through another system comes back in that system's spelling."""
    id_ = mine.add("spelt").id
    hyphened = f"{id_[:8]}-{id_[8:12]}-{id_[12:16]}-{id_[16:20]}-{id_[20:]}".upper()
    assert mine.get(hyphened).id == id_
    assert mine.update(hyphened, importance=1).id == id_
    assert len(mine.history(hyphened)) == 2
    assert ids(mine.get_all(filters={"id": hyphened})) == [id_]
    assert [mine.delete(hyphened).status, mine.delete(hyphened).status] == [
        "deleted",
        "already_deleted",
    ]


def test_a_memory_says_where_it_stands(mine: MemoryManage) -> None:
    """Each store's part is told: a write is durable first and indexed later, yet seen at once."""
    written = mine.add("a new arrival").results[0]
    assert written.stores == {"postgres": "written", "vector": "pending", "keyword": "pending"}
    answer = mine.search("new arrival")
    assert texts(answer) == ["a new arrival"]
    assert answer.degraded == ()
