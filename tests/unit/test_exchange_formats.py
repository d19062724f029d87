"""What others write: the shapes of mem0, of LangGraph stores and of plain JSON, and of files."""

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from memory_manage.exchange_files import Numbered, read_items
from memory_manage.exchange_formats import (
    id_in,
    items_of,
    read_langgraph,
    read_mem0,
    read_plain,
)
from memory_tool.errors import Corrupt, InputError, InvalidTime, ScopeRequired
from memory_tool.scope import Namespace

HERE: Final = Namespace(user="u")
ID: Final = "0b0c8c2e-7f3a-4e0e-9d0c-6f1f0d3f3b11"
PLAIN_ID: Final = ID.replace("-", "")

# ── mem0 ──


def test_an_item_of_get_all() -> None:
    """The shape of the open source version."""
    place, arrival = read_mem0(
        {
            "id": ID,
            "memory": "likes tea",
            "hash": "a" * 32,
            "metadata": {"category": "food", "empty": None},
            "score": 0.7,
            "created_at": "2024-07-26T08:44:41.039788-07:00",
            "updated_at": None,
            "user_id": "alex",
            "agent_id": "bot",
            "run_id": "r1",
            "actor_id": "alex-2",
            "role": "user",
        },
        None,
    )
    assert place == Namespace(user="alex", agent="bot")
    new, kept = arrival.new, arrival.kept
    assert (new.content, new.run_id) == ("likes tea", "r1")
    assert new.metadata == {"category": "food", "actor_id": "alex-2", "role": "user"}
    assert kept.memory_id == PLAIN_ID
    assert kept.created_at == kept.updated_at == datetime(2024, 7, 26, 15, 44, 41, 39788, UTC)


def test_an_item_of_the_platform() -> None:
    """Categories are tags there, an app is our project, and a memory lasts through its last day."""
    item = {
        "id": "not-a-uuid",
        "memory": "likes tea",
        "app_id": "shop",
        "categories": ["food", "茶"],
        "expiration_date": "2030-01-31",
        "created_at": "2025-01-01T00:00:00",
    }
    place, arrival = read_mem0(item, None)
    assert place == Namespace(project="shop")
    assert arrival.new.tags == ("food", "茶")
    assert arrival.new.expires_at == datetime(2030, 2, 1, tzinfo=UTC)
    assert arrival.kept.memory_id is None
    assert arrival.kept.created_at == datetime(2025, 1, 1, tzinfo=UTC)


def test_a_point_of_its_vector_store() -> None:
    """A dump of Qdrant or the like holds the same under other names."""
    payload = {"data": "likes tea", "user_id": "alex", "hash": "h", "topic": "drinks"}
    place, arrival = read_mem0({"id": ID, "payload": payload}, None)
    assert place == Namespace(user="alex")
    assert (arrival.new.content, arrival.new.metadata) == ("likes tea", {"topic": "drinks"})
    assert arrival.kept.memory_id == PLAIN_ID


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"memory": "a"}, ScopeRequired),
        ({"memory": "a", "run_id": "r"}, ScopeRequired),
        ({"user_id": "u"}, InputError),
        ({"memory": "a", "user_id": "u", "created_at": "soon"}, InvalidTime),
        ("a", InputError),
    ],
)
def test_what_mem0_did_not_write(item: object, error: type[InputError]) -> None:
    """Nothing is guessed about who may see it."""
    with pytest.raises(error):
        read_mem0(item, None)


# ── LangGraph ──


def test_an_item_of_a_store() -> None:
    """Its namespace is ours segment by segment, its key ours, and its value text and metadata."""
    item = {
        "namespace": ["users", "a.b"],
        "key": "k",
        "value": {"text": "likes tea", "n": 1},
        "created_at": "2025-03-01T10:00:00+00:00",
        "updated_at": "2025-03-02T10:00:00+00:00",
        "score": None,
    }
    place, arrival = read_langgraph(item, None)
    assert place == Namespace(path=("users", "a.b"))
    assert (arrival.new.content, arrival.new.key) == ("likes tea", "k")
    assert arrival.new.metadata == {"n": 1}
    assert arrival.kept.memory_id is None
    assert (arrival.kept.updated_at - arrival.kept.created_at).days == 1
    assert read_langgraph(item, HERE)[0] == HERE


@pytest.mark.parametrize(
    ("value", "text", "metadata"),
    [
        ({"kind": "Memory", "content": {"content": "a"}}, "a", {"kind": "Memory"}),
        ({"memory": "a", "text": ""}, "a", {"text": ""}),
        ({"rules": ["x", "ü"]}, '{"rules": ["x", "ü"]}', {"rules": ["x", "ü"]}),
    ],
)
def test_the_text_of_a_value(value: dict[str, Any], text: str, metadata: dict[str, Any]) -> None:
    """LangMem lays it deeper; what has none is kept as it is written."""
    _, arrival = read_langgraph({"namespace": ["n"], "key": "k", "value": value}, None)
    assert (arrival.new.content, arrival.new.metadata) == (text, metadata)


def test_a_row_of_its_table() -> None:
    """PostgreSQL and SQLite keep the segments joined by dots."""
    row = {"prefix": "users.u1", "key": "k", "value": {"text": "a"}, "expires_at": None}
    assert read_langgraph(row, None)[0] == Namespace(path=("users", "u1"))


@pytest.mark.parametrize("item", [{}, {"namespace": ["n"], "value": {}}, {"key": "k"}, []])
def test_what_langgraph_did_not_write(item: object) -> None:
    """Told by what is missing."""
    with pytest.raises(InputError):
        read_langgraph(item, None)


# ── Plain JSON ──


def test_texts_and_records() -> None:
    """As ``add`` takes them, with a scope, an id and times if they like."""
    _, arrival = read_plain("a text", HERE)
    assert arrival.new.content == "a text"
    place, arrival = read_plain(
        {"content": "a", "id": ID, "user_id": "z", "run_id": "r", "created_at": 1.5, "tags": ["t"]},
        None,
    )
    assert place == Namespace(user="z")
    assert (arrival.new.run_id, arrival.new.tags) == ("r", ("t",))
    assert arrival.kept.memory_id == PLAIN_ID
    assert arrival.kept.updated_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert read_plain({"content": "a", "namespace": ["n", "m"]}, None)[0].path == ("n", "m")


@pytest.mark.parametrize("item", [1, {"text": "a"}, {"content": "a", "colour": "b"}, None])
def test_what_add_would_refuse(item: object) -> None:
    """An unknown name is no metadata: it may be a slip."""
    with pytest.raises(InputError):
        read_plain(item, HERE)
    with pytest.raises(ScopeRequired):
        read_plain("nobody's", None)


def test_an_id_is_another_one_in_another_place() -> None:
    """The same each time, so that a second import finds what the first one made."""
    place, _ = read_plain({"content": "a", "id": ID, "user_id": "z"}, HERE)
    moved = id_in(place, PLAIN_ID, before=Namespace(user="z"))
    assert moved == id_in(HERE, PLAIN_ID, before=Namespace(user="z")) != PLAIN_ID
    assert len(moved) == len(PLAIN_ID)
    assert id_in(HERE, PLAIN_ID, before=HERE) == PLAIN_ID


# ── Files ──


@pytest.mark.parametrize(
    "document",
    [
        [1, 2],
        {"results": [1, 2], "relations": [3]},
        {"memories": [1, 2]},
        {"items": [1, 2]},
        {"result": {"points": [1, 2], "next_page_offset": None}},
    ],
)
def test_the_items_of_a_document(document: object) -> None:
    """Each system has its own word for the list."""
    assert list(items_of(document)) == [1, 2]
    assert list(items_of({"memory": "a"})) == [{"memory": "a"}]


def read(path: Path, content: bytes) -> list[Numbered]:
    """The items of a file with this content."""
    path.write_bytes(content)
    with read_items(str(path)) as items:
        return list(items)


@pytest.mark.parametrize("pack", [bytes, zstandard.compress], ids=["plain", "compressed"])
def test_lines_and_documents_are_told_apart(tmp_path: Path, pack: Any) -> None:  # noqa: ANN401 - both take and give bytes
    """A line for each item, blank ones left out, or one document over many lines."""
    path = tmp_path / "file"
    assert read(path, pack(b'1\n\n"b"')) == [Numbered(1, 1), Numbered(3, "b")]
    pretty = json.dumps([{"a": 1}, {"a": 2}], indent=2).encode()
    assert read(path, pack(pretty)) == [Numbered(1, {"a": 1}), Numbered(2, {"a": 2})]
    assert read(path, pack(b'{"results": [7]}\n')) == [Numbered(1, 7)]
    assert read(path, pack(b'{"memory": "a"}\n')) == [Numbered(1, {"memory": "a"})]
    assert read(path, pack(b"")) == []


def test_a_line_that_is_no_json_is_told_by_its_number(tmp_path: Path) -> None:
    """Also the first, and one that is nested too deep for anybody."""
    found = read(tmp_path / "file", b'{"a"\n2\n' + b"[" * 100_000 + b"\n4")
    assert [(one.number, one.error is None) for one in found] == [
        (1, False),
        (2, True),
        (3, False),
        (4, True),
    ]


def test_what_was_cut_off_is_told(tmp_path: Path) -> None:
    """Zstd by itself reads an unfinished frame as if it ended there."""
    packed = zstandard.compress(b'1\n2\n"a longer line, so that there is something to cut"\n')
    assert len(read(tmp_path / "file", packed + packed)) == 6
    for length in (len(packed) - 1, len(packed) // 2, len(packed) + 9):
        with pytest.raises(Corrupt):
            read(tmp_path / "file", (packed + packed)[:length])
    with pytest.raises(Corrupt):
        read(tmp_path / "file", packed[:9] + b"\xff" * 20)


def test_standard_input_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is how one store is poured into another."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n2\n")))
    with read_items("-") as items:
        assert [one.item for one in items] == [1, 2]
