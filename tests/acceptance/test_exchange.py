"""Export and import: all that is known of a memory, out of one store and into another."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from memory_manage.exchange_export import export_memories
from memory_manage.exchange_files import Numbered, read_items, written_file
from memory_manage.exchange_import import ImportOptions, ImportReport, import_memories
from memory_manage.manager import MemoryManage
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Corrupt, InputError, NotFound
from memory_tool.model import OnDuplicate, Vector
from memory_tool.scope import Namespace, Scope
from memory_tool.tool import MemoryTool
from tests.acceptance.asking import found, texts
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database, Server

LONG: Final = "The red kite is in the attic. " * 120
"""Several chunks."""


class Counting(HashingEmbedder):
    """Another model than the other store's, which counts the passages that it embeds."""

    def __init__(self) -> None:
        """None yet."""
        super().__init__(dimension=32)
        self.passages = 0

    def embed_passages(self, texts: Any) -> Vector:  # noqa: ANN401 - the port's
        """Count, and embed."""
        self.passages += len(texts)
        return super().embed_passages(texts)


def tool_of(memory: MemoryManage) -> MemoryTool:
    """The hands of a memory."""
    return memory._tool  # noqa: SLF001 - what the commands open


def exported(
    memory: MemoryManage, *, scope: Scope | None = None, with_vectors: bool = False
) -> list[dict[str, Any]]:
    """The lines of an export."""
    out = io.BytesIO()
    count = export_memories(tool_of(memory), out, scope=scope, with_vectors=with_vectors)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-1] == {"end": True, "memories": count}
    return lines


def imported(
    memory: MemoryManage,
    lines: list[Any],
    **options: Any,  # noqa: ANN401 - of ImportOptions
) -> ImportReport:
    """Take lines in."""
    items = [Numbered(number, line) for number, line in enumerate(lines, start=1)]
    return import_memories(tool_of(memory), items, options=ImportOptions(**options))


def counts(report: ImportReport) -> dict[str, int]:
    """What became of the items, where there is anything to say."""
    told = report.to_dict()
    return {name: count for name, count in told.items() if name != "failures" and count}


@pytest.fixture
def memory(own_store: OwnStore, database: Database) -> Iterator[MemoryManage]:
    """A memory with something of everything."""
    with own_store.open() as memory:
        first = memory.add(
            "客户张先生偏好蓝色系产品",
            user_id="anna",
            project_id="p",
            tags=["colour", "客户"],
            importance=4,
            pinned=True,
            confidence=0.25,
            key="colour",
            metadata={"a": [1, None, {"b": "ü"}]},
            source={"path": "notes/客户.md"},
            occurred_at="2024-02-29T23:00:00+08:00",
            expires_at="2099-01-01T00:00:00+00:00",
        ).id
        memory.update(first, content="客户张先生偏好绿色系产品", user_id="anna")
        memory.update(first, importance=5, user_id="anna")
        memory.add([{"role": "user", "content": "hello there", "name": "An"}], user_id="ben")
        memory.add(LONG, namespace=("team", "notes"), run_id="r1")
        memory.add("twice", user_id="ben")
        memory.add("twice", user_id="ben", on_duplicate="keep")
        gone = memory.add("deleted text", user_id="ben").id
        memory.delete(gone, user_id="ben")
        memory.add("expired text", user_id="ben", ttl=1e-6)
        add_relations(database, first)
        yield memory


def add_relations(database: Database, memory_id: str) -> None:
    """What nothing writes yet: a relation, a review and a tree."""
    with database.admin() as connection:
        (ns_id,) = connection.execute(
            "SELECT ns_id FROM threefold.memory WHERE id = %s", [memory_id]
        ).fetchone() or (0,)
        connection.execute(
            "INSERT INTO threefold.relation (ns_id, from_id, kind, to_id, properties)"
            " VALUES (%s, %s, 'same', %s, '{\"w\": 1}')",
            [ns_id, memory_id, memory_id],
        )
        connection.execute(
            "INSERT INTO threefold.review (ns_id, memory_id, kind, proposal)"
            " VALUES (%s, %s, 'merge', '[]')",
            [ns_id, memory_id],
        )
        root = connection.execute(
            "INSERT INTO threefold.node (ns_id, name) VALUES (%s, 'root') RETURNING node_id",
            [ns_id],
        ).fetchone()
        connection.execute(
            "INSERT INTO threefold.node (ns_id, parent_id, name) VALUES (%s, %s, 'leaf')",
            [ns_id, (root or (0,))[0]],
        )


@pytest.fixture
def other(own_store: OwnStore, embedded_postgres: Server) -> Iterator[MemoryManage]:
    """An empty memory in a store of its own, with another embedding model."""
    with embedded_postgres.database() as database:
        there = OwnStore(folder=own_store.folder / "two", database_url=database.conninfo(Role.APP))
        there.folder.mkdir(mode=0o711)
        with there.open(embedder=Counting()) as memory:
            yield memory


def content_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines but for the header, and for how the text was cut: each model has its own length."""
    return [{name: value for name, value in line.items() if name != "chunks"} for line in lines[1:]]


def test_everything_goes_there_and_back(memory: MemoryManage, other: MemoryManage) -> None:
    """Into a store with another model: the same export comes out, and all is found by meaning."""
    lines = exported(memory)
    assert "deleted text" not in str(lines)
    assert "expired text" not in str(lines)
    assert counts(imported(other, lines)) == {"added": 5}
    assert content_of(exported(other)) == content_of(lines)
    first = other.get_all(user_id="anna", project_id="p").results[0]
    assert [one.memory for one in other.history(first.id, user_id="anna")] == [
        "客户张先生偏好蓝色系产品",
        "客户张先生偏好绿色系产品",
        "客户张先生偏好绿色系产品",
    ]
    assert texts(other.search("张先生偏好什么颜色的产品", user_id="anna"))[:1] == [first.memory]
    for _ in range(2):
        assert found(other, "kite", namespace=("team",)) == {LONG}
        other.apply_now()
    assert other.search("kite", namespace=("team",)).degraded == ()
    new = other.add("客户张先生", user_id="anna", project_id="p", key="colour").results[0]
    assert (new.status, new.id) == ("updated", first.id)


def test_to_import_again_is_harmless(memory: MemoryManage, other: MemoryManage) -> None:
    """Whoever lost the connection starts from the beginning."""
    lines = exported(memory)
    assert counts(imported(other, lines)) == {"added": 5}
    assert counts(imported(other, lines)) == {"skipped": 5}
    assert counts(imported(memory, lines)) == {"skipped": 5}
    assert content_of(exported(other)) == content_of(lines)


def test_what_differs_is_never_overwritten_without_a_word(
    memory: MemoryManage, other: MemoryManage
) -> None:
    """The same id, changed on both sides: somebody has to decide."""
    lines = exported(memory)
    imported(other, lines)
    item = next(one for one in other.get_all(user_id="ben") if one.memory == "hello there")
    other.update(item.id, content="changed there", user_id="ben")
    gone = next(one for one in other.get_all(user_id="ben") if one.memory == "twice")
    other.delete(gone.id, user_id="ben")
    told: list[Any] = []
    report = imported(other, lines, failed=told.append)
    assert counts(report) == {"skipped": 3, "failed": 2}
    assert not report.whole
    assert sorted("VersionConflict" in one.error for one in told) == [False, True]
    assert any("was deleted here" in one.error for one in told)
    assert other.get(item.id, user_id="ben").memory == "changed there"
    report = imported(other, lines, on_duplicate=OnDuplicate.UPDATE)
    assert counts(report) == {"skipped": 3, "updated": 1, "failed": 1}
    assert other.get(item.id, user_id="ben").memory == "hello there"


def test_memories_move_to_another_scope_with_new_ids(memory: MemoryManage) -> None:
    """No two memories of a store share an id; relations follow, and a second time is harmless."""
    anna = Scope.of(Namespace(user="anna", project="p"), exact=True)
    lines = exported(memory, scope=anna)
    before = lines[1]["id"]
    carl = Namespace(user="carl")
    assert counts(imported(memory, lines, namespace=carl)) == {"added": 1}
    assert counts(imported(memory, lines, namespace=carl)) == {"skipped": 1}
    moved = exported(memory, scope=Scope.of(carl))
    assert moved[1]["id"] != before
    assert moved[1]["relations"][0]["to"] == moved[1]["id"]
    assert moved[1]["versions"][0]["id"] == moved[1]["id"]
    assert moved[2]["tree"] == lines[2]["tree"]
    assert memory.get(before, user_id="anna").memory == lines[1]["content"]


def test_vectors_come_along_where_the_model_is_the_same(
    memory: MemoryManage, other: MemoryManage, own_store: OwnStore, embedded_postgres: Server
) -> None:
    """Nothing is embedded again; a store with another model makes its own."""
    imported(other, exported(memory, with_vectors=True))
    counting = tool_of(other).stores.embedder
    assert isinstance(counting, Counting)
    assert counting.passages > 5
    lines = exported(other, with_vectors=True)
    with embedded_postgres.database() as database:
        there = OwnStore(folder=own_store.folder / "3", database_url=database.conninfo(Role.APP))
        there.folder.mkdir(mode=0o711)
        embedder = Counting()
        with there.open(embedder=embedder) as third:
            assert counts(imported(third, lines)) == {"added": 5}
            assert embedder.passages == 0
            assert found(third, "kite", namespace=("team",)) == {LONG}
            cut = [line["chunks"] for line in exported(third)[1:] if "chunks" in line]
            assert cut == [line["chunks"] for line in exported(other)[1:] if "chunks" in line]
            lines[1]["chunks"][0]["stop"] -= 1
            lines[1]["id"] = "0" * 32
            report = imported(third, lines, namespace=Namespace(user="dora"))
            assert report.to_dict()["failures"][0]["error"].startswith("InputError: the chunks")


def test_a_bad_line_is_told_and_spares_the_others(
    memory: MemoryManage, other: MemoryManage
) -> None:
    """By its number, so that somebody can look it up."""
    header, *lines, end = exported(memory)
    bad = [
        {**lines[0], "version": 0},
        {**lines[0], "id": "none"},
        {**lines[0], "created_at": "yesterday"},
        {**lines[0], "content": "\0"},
        {**lines[0], "namespace": {"user": ""}},
        {**lines[0], "turn": {"what": 1}},
        {},
        17,
    ]
    end["memories"] += len(bad)
    report = imported(other, [header, *bad, *lines, end])
    assert counts(report) == {"added": 5, "failed": len(bad)}
    assert [one.number for one in report.failures] == list(range(2, 2 + len(bad)))


def test_an_export_that_was_cut_off_is_told(memory: MemoryManage, other: MemoryManage) -> None:
    """What came before the end is in; the last line is what tells a whole file."""
    lines = exported(memory)
    with pytest.raises(Corrupt, match="cut off"):
        imported(other, lines[:4])
    assert len(exported(other)) == 5
    with pytest.raises(Corrupt, match="says that it had 5"):
        imported(other, [*lines[:4], lines[-1]])
    with pytest.raises(InputError, match="--format"):
        imported(other, lines[1:])
    with pytest.raises(InputError, match="format 2"):
        imported(other, [{**lines[0], "format": 2}])
    assert counts(imported(other, lines)) == {"added": 3, "skipped": 2}


def test_files_are_compressed_by_their_name(memory: MemoryManage, tmp_path: Path) -> None:
    """And never written over, nor there before they are whole."""
    for name in ("a.jsonl", "a.jsonl.zst"):
        path = tmp_path / name
        with written_file(str(path)) as out:
            export_memories(tool_of(memory), out)
            assert not path.exists()
        with read_items(str(path)) as items:
            report = import_memories(tool_of(memory), items, options=ImportOptions())
        assert counts(report) == {"skipped": 5}
        with pytest.raises(InputError, match="already"), written_file(str(path)):
            pass
    assert (tmp_path / "a.jsonl.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    (tmp_path / "a.jsonl.zst").write_bytes((tmp_path / "a.jsonl.zst").read_bytes()[:-40])
    with read_items(str(tmp_path / "a.jsonl.zst")) as items, pytest.raises(Corrupt):
        import_memories(tool_of(memory), items, options=ImportOptions())
    with pytest.raises(NotFound), read_items(str(tmp_path / "none")):
        pass


def test_what_others_wrote_is_found_afterwards(other: MemoryManage) -> None:
    """mem0 and LangGraph, with their ids, keys and times."""
    mem0 = {
        "id": "0b0c8c2e-7f3a-4e0e-9d0c-6f1f0d3f3b11",
        "memory": "喜欢龙井茶",
        "user_id": "alex",
        "created_at": "2024-07-26T08:44:41-07:00",
        "metadata": {"category": "food"},
    }
    assert counts(imported(other, [mem0, mem0], form="mem0")) == {"added": 1, "skipped": 1}
    tea = other.search("龙井茶", user_id="alex").results[0]
    assert (tea.id, tea.created_at.isoformat()) == (
        "0b0c8c2e7f3a4e0e9d0c6f1f0d3f3b11",
        "2024-07-26T15:44:41+00:00",
    )
    item = {
        "namespace": ["users", "u1"],
        "key": "k1",
        "value": {"kind": "Memory", "content": {"content": "prefers dark mode"}},
        "updated_at": "2025-03-02T10:00:00",
    }
    assert counts(imported(other, [item], form="langgraph")) == {"added": 1}
    item["value"] = {"text": "prefers light mode"}
    assert counts(imported(other, [item], form="langgraph")) == {"updated": 1}
    assert found(other, "mode", namespace=("users",)) == {"prefers light mode"}
    plain = ["a plain text", {"content": "a record", "tags": ["x"], "user_id": "u2"}]
    report = imported(other, [*plain, "a plain text"], form="json", namespace=Namespace(user="u"))
    assert counts(report) == {"added": 2, "duplicate": 1}
