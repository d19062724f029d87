"""Bad input: a typed error and nothing stored, or stored byte for byte and found again."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

import numpy as np
import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import (
    InputError,
    InvalidCursor,
    InvalidEmbedding,
    InvalidScope,
    InvalidText,
    InvalidTime,
    ScopeRequired,
    SettingsError,
    SpaceMismatch,
    TooLarge,
)
from memory_tool.model import NewMemory, Turn
from tests.acceptance.asking import found, ids, statuses, tampered, texts

SPACE: Final = "hashing/64"
NAIVE: Final = datetime(2025, 7, 1)  # noqa: DTZ001 - the mistake to be refused
BEFORE_THE_FIRST: Final = datetime.min.replace(tzinfo=timezone(timedelta(hours=12)))
FIFTY_MEGABYTES: Final = 50_000_000

BAD_TEXTS: Final = {
    "empty": ("", InvalidText),
    "blank": (" \t\n\u3000", InvalidText),
    "NUL": ("a\0b", InvalidText),
    "high surrogate": ("a\ud83db", InvalidText),
    "low surrogate": ("\udc00", InvalidText),
    "50 MB": ("x" * FIFTY_MEGABYTES, TooLarge),
    "50 MB of Chinese": ("蓝" * (FIFTY_MEGABYTES // 3), TooLarge),
    "no text": (5, InputError),
    "bytes": (b"x", InputError),
    "nothing": (None, InputError),
}
BAD_OPTIONS: Final[Sequence[tuple[Mapping[str, Any], type[Exception]]]] = (
    ({"importance": 6}, InputError),
    ({"importance": 3.0}, InputError),
    ({"importance": "5"}, InputError),
    ({"importance": np.int64(3)}, InputError),
    ({"pinned": "no"}, InputError),
    ({"confidence": 1.5}, InputError),
    ({"confidence": float("nan")}, InputError),
    ({"tags": "one"}, InputError),
    ({"tags": ["a\0"]}, InvalidText),
    ({"tags": ["a"] * 101}, InputError),
    ({"metadata": [1]}, InputError),
    ({"metadata": {"a": float("nan")}}, InputError),
    ({"metadata": {"a": 10**5000}}, InputError),
    ({"metadata": {"a": datetime.now(UTC)}}, InputError),
    ({"metadata": {1: "a"}}, InputError),
    ({"metadata": {"a": "\ud83d"}}, InvalidText),
    ({"metadata": {"a": [[[[[[[[[[1]]]]]]]]]]}}, InputError),
    ({"metadata": {"a": "x" * 1_000_001}}, TooLarge),
    ({"source": "a book"}, InputError),
    ({"occurred_at": NAIVE}, InvalidTime),
    ({"occurred_at": NAIVE.isoformat()}, InvalidTime),
    ({"occurred_at": date(2025, 7, 1)}, InvalidTime),
    ({"occurred_at": "yesterday"}, InvalidTime),
    ({"occurred_at": BEFORE_THE_FIRST}, InvalidTime),
    ({"occurred_at": float("nan")}, InvalidTime),
    ({"expires_at": NAIVE}, InvalidTime),
    ({"ttl": 0}, InputError),
    ({"ttl": float("inf")}, InputError),
    ({"ttl": 1e11}, InvalidTime),
    ({"ttl": 5, "expires_at": datetime.now(UTC)}, InputError),
    ({"key": ""}, InvalidText),
    ({"key": "x" * 3000}, TooLarge),
    ({"idempotency_key": 5}, InvalidText),
    ({"idempotency_key": ""}, InvalidText),
    ({"idempotency_key": "\ud83d"}, InvalidText),
    ({"idempotency_key": "k", "mode": "async"}, InputError),
    ({"idempotency_key": "k", "metadata": {"a": 10**5000}}, InputError),
    ({"run_id": ""}, InvalidText),
    ({"type": "rumour"}, InputError),
    ({"on_duplicate": "ignore"}, InputError),
    ({"mode": "later"}, InputError),
    ({"importence": 5}, InputError),
    ({"embedding": [float("nan")] * 64, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [float("inf")] * 64, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [1e300] * 64, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [0.0] * 64, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [1.0] * 63, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [[1.0] * 64], "space": SPACE}, InvalidEmbedding),
    ({"embedding": "abc", "space": SPACE}, InvalidEmbedding),
    ({"embedding": [10**400] * 64, "space": SPACE}, InvalidEmbedding),
    ({"embedding": [1.0] * 64}, SpaceMismatch),
    ({"embedding": [1.0] * 64, "space": "bge/64"}, SpaceMismatch),
)
BAD_QUESTIONS: Final[Sequence[tuple[Mapping[str, Any], type[Exception]]]] = (
    ({"limit": 0}, InputError),
    ({"limit": 1001}, InputError),
    ({"limit": True}, InputError),
    ({"threshold": 1.5}, InputError),
    ({"mode": "fuzzy"}, InputError),
    ({"on_degraded": "rise"}, InputError),
    ({"now": NAIVE}, InvalidTime),
    ({"since": NAIVE}, InvalidTime),
    ({"until": "last week"}, InvalidTime),
    ({"tz": "Mars/Olympus"}, InputError),
    ({"tz": "../../etc/passwd"}, InputError),
    ({"tz": 5}, InputError),
    ({"types": "event"}, InputError),
    ({"types": 5}, InputError),
    ({"tags": "one"}, InputError),
    ({"cursor": "nonsense"}, InvalidCursor),
    ({"query_embedding": [float("nan")] * 64, "space": SPACE}, InvalidEmbedding),
    ({"query_embedding": [1.0] * 63, "space": SPACE}, InvalidEmbedding),
    ({"query_embedding": [1.0] * 64}, SpaceMismatch),
    ({"limt": 5}, InputError),
)
BAD_UPDATES: Final[Sequence[tuple[Mapping[str, Any], type[Exception]]]] = (
    ({"content": ""}, InvalidText),
    ({"content": None}, InvalidText),
    ({"content": "x" * FIFTY_MEGABYTES}, TooLarge),
    ({"pinned": None}, InputError),
    ({"pinned": "no"}, InputError),
    ({"confidence": None}, InputError),
    ({"metadata": None}, InputError),
    ({"metadata": {"a": float("inf")}}, InputError),
    ({"tags": "one"}, InputError),
    ({"type": None}, InputError),
    ({"occurred_at": NAIVE}, InvalidTime),
    ({"content": "new", "idempotency_key": 5}, InvalidText),
    ({"contents": "new"}, InputError),
)
BAD_SCOPES: Final[Sequence[tuple[Mapping[str, Any], type[Exception]]]] = (
    ({}, ScopeRequired),
    ({"user_id": ""}, InvalidScope),
    ({"user_id": " "}, InvalidScope),
    ({"user_id": 5}, InvalidScope),
    ({"user_id": "a\0"}, InvalidScope),
    ({"user_id": "\ud83d"}, InvalidScope),
    ({"user_id": "x" * 513}, InvalidScope),
    ({"namespace": "../../etc"}, InvalidScope),
    ({"namespace": "user:a/user:b"}, InvalidScope),
    ({"namespace": ()}, ScopeRequired),
    ({"namespace": 5}, InvalidScope),
    ({"namespace": ("a", 5)}, InvalidScope),
    ({"namespace": ("a", "")}, InvalidScope),
    ({"namespace": ("a",), "user_id": "a"}, InvalidScope),
    ({"user": "a"}, InputError),
)
BAD_PLACES_OF_A_LISTING: Final[Sequence[tuple[int, object]]] = (
    (1, "2025-07-01T00:00:00"),
    (1, None),
    (2, "'; DROP TABLE memory; --"),
    (2, "\0"),
)
BAD_PLACES_OF_A_SEARCH: Final[Sequence[tuple[int, object]]] = (
    (1, -2),
    (1, "2"),
    (2, 10**9),
    (3, "2025-07-01"),
    (3, 5),
)
ODD_TEXTS: Final = (
    "'; DROP TABLE threefold.memory; --",
    "1' OR '1'='1",
    '"unbalanced AND (quotes',
    "user_id:* OR namespace:[* TO *]",
    "content:foo^5 ~2 +must -not NEAR/3",
    "%_%",
    "\\x00\\u0000",
    "${jndi:ldap://x}",
    "!!!",
    "？？",
    "🦊",
    "👩‍👩‍👧‍👦 family",
    "\ufeffa mark at the start",
    "e\u0301 is two characters",
    "\tindented,\r\nwith ends of lines  ",
    "مرحبا بالعالم",
    "\u202etxet sdrawkcab",
    "x" * 10_000,
)


@pytest.mark.parametrize(("text", "error"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_a_text_that_cannot_be_kept_is_refused(
    mine: MemoryManage,
    text: Any,  # noqa: ANN401 - its type may be what is wrong with it
    error: type[Exception],
) -> None:
    """Everything that writes or asks refuses it, and nothing is stored."""
    with pytest.raises(error):
        mine.add(text)
    with pytest.raises(InputError):
        mine.search(text)
    assert statuses(mine.add_many([text])) == ["failed"]
    assert len(mine.get_all()) == 0


@pytest.mark.parametrize(("options", "error"), BAD_OPTIONS)
def test_an_option_that_cannot_be_is_refused(
    mine: MemoryManage, options: Mapping[str, Any], error: type[Exception]
) -> None:
    """No option is bent into shape or dropped, and nothing is stored."""
    with pytest.raises(error):
        mine.add("a text", **options)
    assert len(mine.get_all()) == 0


@pytest.mark.parametrize(("options", "error"), BAD_QUESTIONS)
def test_a_question_that_cannot_be_is_refused(
    mine: MemoryManage, options: Mapping[str, Any], error: type[Exception]
) -> None:
    """A search that ignored an option would answer another question."""
    mine.add("a text")
    with pytest.raises(error):
        mine.search("text", **options)


@pytest.mark.parametrize(("options", "error"), BAD_UPDATES)
def test_an_update_that_cannot_be_is_refused(
    mine: MemoryManage, options: Mapping[str, Any], error: type[Exception]
) -> None:
    """A refused update leaves the memory in the version that it had."""
    id_ = mine.add("a text").id
    with pytest.raises(error):
        mine.update(id_, **options)
    assert mine.get(id_).version == 1


@pytest.mark.parametrize(("scope", "error"), BAD_SCOPES)
def test_a_scope_that_cannot_be_is_refused(
    memory: MemoryManage, scope: Mapping[str, Any], error: type[Exception]
) -> None:
    """Every method that touches memories refuses it."""
    for method in (
        lambda: memory.add("a text", **scope),
        lambda: memory.add_many(["a text"], **scope),
        lambda: memory.search("text", **scope),
        lambda: memory.get_all(**scope),
        lambda: memory.delete_all(**scope),
        lambda: memory.get("0" * 32, **scope),
        lambda: memory.history("0" * 32, **scope),
        lambda: memory.update("0" * 32, content="a", **scope),
        lambda: memory.delete("0" * 32, **scope),
    ):
        with pytest.raises(error):
            method()


def test_one_bad_item_costs_its_neighbours_nothing(mine: MemoryManage) -> None:
    """Whatever is wrong with an item of a bulk add, the database must never be the judge of it."""
    bad: list[Any] = [
        5,
        None,
        ["a list"],
        {"content": "a", "tgas": []},
        {"content": "b", "position": "first", "conversation_id": "c"},
        {"content": "c", "position": 2**31, "conversation_id": "c"},
        {"content": "d", "position": -1, "conversation_id": "c"},
        {"content": "e", "conversation_id": 5},
        {"content": "f", "importance": 2.0},
        NewMemory(content=5),  # type: ignore[arg-type] # the mistake to be refused
        NewMemory(content="g", tags="abc"),  # type: ignore[arg-type] # the same
        NewMemory(content="h", type="rumour"),  # type: ignore[arg-type] # the same
        NewMemory(content="i", pinned="no"),  # type: ignore[arg-type] # the same
        NewMemory(content="j", occurred_at=BEFORE_THE_FIRST),
        NewMemory(content="k", embedding=np.ones(64, np.float32), space="bge/64"),
        NewMemory(content="l", turn=Turn(conversation_id="c", position=0, role="")),
    ]
    written = mine.add_many(["before", *bad, "after"])
    assert statuses(written) == ["added", *["failed"] * len(bad), "added"]
    assert set(texts(mine.get_all())) == {"before", "after"}


@pytest.mark.parametrize("many", ["a text", {"content": "a record"}, None, 5])
def test_a_bulk_add_takes_a_list(
    mine: MemoryManage,
    many: Any,  # noqa: ANN401 - its type is what is wrong with it
) -> None:
    """A text in its place must not be stored letter by letter."""
    with pytest.raises(InputError):
        mine.add_many(many)
    assert len(mine.get_all()) == 0


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_odd_text_is_stored_byte_for_byte_and_found(mine: MemoryManage, text: str) -> None:
    """SQL, query syntax, emoji: a text is a text, for the stores and for the search."""
    id_ = mine.add(text).id
    mine.add("something else entirely")
    assert mine.get(id_).memory.encode() == text.encode()
    assert ids(mine.search(text, limit=1)) == [id_]
    mine.search(text, mode="keyword", filters={"metadata.a": text[:1000]})


def test_odd_texts_are_found_through_the_indexes_too(mine: MemoryManage) -> None:
    """The same once the indexes hold them, all in one namespace."""
    written = mine.add_many(ODD_TEXTS)
    mine.apply_now()
    for text, item in zip(ODD_TEXTS, written, strict=True):
        assert ids(mine.search(text, limit=1)) == [item.id], text


def test_odd_names_and_values_are_kept_and_compared(mine: MemoryManage) -> None:
    """Metadata is the caller's: any name, any JSON value, compared as it was given."""
    odd = {name: name for name in ODD_TEXTS if len(name) < 256} | {"": "no name", "id": "an id"}
    id_ = mine.add("odd metadata", metadata=odd).id
    assert mine.get(id_).metadata == odd
    for name in odd:
        if name:
            condition = {f"metadata.{name}": {"eq": odd[name]}}
            assert ids(mine.get_all(filters=condition)) == [id_], name


@pytest.mark.parametrize("path", [("..", "..", "etc"), ("../../etc",), ("🦊", "%_*", "a b")])
def test_an_odd_namespace_is_a_namespace(
    memory: MemoryManage, user: str, path: tuple[str, ...]
) -> None:
    """No part of a name reaches a file system or a query."""
    memory.add("a hidden spring", namespace=(user, *path))
    assert found(memory, "spring", namespace=(user, *path)) == {"a hidden spring"}
    assert found(memory, "spring", namespace=(user, *path, "x")) == set()


def test_a_vector_of_any_length_is_made_a_unit(mine: MemoryManage) -> None:
    """Callers pass raw model output: huge and tiny vectors mean the same direction."""
    huge, tiny = [3e38] * 64, [1e-5] * 64
    first = mine.add("huge", embedding=huge, space=SPACE).id
    second = mine.add("tiny", embedding=tiny, space=SPACE).id
    answer = mine.search("?", mode="vector", query_embedding=huge, space=SPACE, explain=True)
    assert set(ids(answer)) == {first, second}
    for item in answer:
        assert item.explanation is not None
        assert item.explanation.cosine == pytest.approx(1.0, abs=1e-3)


def test_a_cursor_that_was_tampered_with_is_refused(
    mine: MemoryManage,
) -> None:
    """A cursor is a caller's text like any other, however it is spelt."""
    mine.add_many([f"note {number}" for number in range(9)])
    listed, asked = mine.get_all(limit=2).cursor, mine.search("note", limit=2).cursor
    for place, value in BAD_PLACES_OF_A_LISTING:
        with pytest.raises(InvalidCursor):
            mine.get_all(cursor=tampered(listed, place=place, value=value))
    for place, value in BAD_PLACES_OF_A_SEARCH:
        with pytest.raises(InvalidCursor):
            mine.search("note", limit=2, cursor=tampered(asked, place=place, value=value))
    with pytest.raises(InvalidCursor):
        mine.search("another question", cursor=asked)
    with pytest.raises(InvalidCursor):
        mine.get_all(cursor=listed, types=["event"])


@pytest.mark.parametrize(
    ("variable", "named"),
    [("THREEFOLD_DATA_DIRR", "THREEFOLD_DATA_DIR"), ("THREEFOLD_EMBEDER", "THREEFOLD_EMBEDDER")],
)
def test_an_unknown_variable_is_named_with_the_nearest_known(
    monkeypatch: pytest.MonkeyPatch, variable: str, named: str
) -> None:
    """A misspelt setting that is ignored opens another store than the one that was meant."""
    monkeypatch.setenv(variable, "x")
    with pytest.raises(SettingsError, match=f"{variable}.*{named}"):
        MemoryManage.open()


def test_an_unknown_argument_is_named_with_the_nearest_known() -> None:
    """The same for the arguments of ``open``."""
    with pytest.raises(SettingsError, match=r"databse_url.*database_url"):
        MemoryManage.open(databse_url="postgresql:///x")
