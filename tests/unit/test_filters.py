"""What a filter may say, and what it means."""

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from memory_tool.errors import InvalidFilter
from memory_tool.filter_fields import LIST_LENGTH_MAX, NAME_LENGTH_MAX, SEARCHED_LENGTH_MAX
from memory_tool.filters import (
    COMPARISONS_MAX,
    DEPTH_MAX,
    matches,
    parse_filter,
)
from memory_tool.model import StoredRow, Turn
from memory_tool.query import EVERYTHING, Comparison, Filter
from tests.unit.filter_rows import NOON, PLAIN, row_of, row_with

SHANGHAI = ZoneInfo("Asia/Shanghai")

FULL = row_of(
    replace(
        PLAIN,
        importance=4,
        tags=("客户", "Blue"),
        key="k1",
        occurred_at=NOON,
        turn=Turn(conversation_id="c1", position=2, role="user"),
        source={"trace_id": "tr_12"},
        metadata={"colour": "Blau", "score": 5, "sizes": ["S", 1], "gone": None, "done": True},
    )
)


def parsed(value: object) -> Filter:
    """The filter, with days in Shanghai."""
    return parse_filter(value, tz=SHANGHAI)


def meets(row: StoredRow, value: object) -> bool:
    """Whether the row meets the filter."""
    return matches(parsed(value), row)


@pytest.mark.parametrize("value", [None, {}, {"AND": []}])
def test_no_condition_matches_everything(value: object) -> None:
    """A caller without a filter must not get an empty answer."""
    assert parsed(value) == EVERYTHING
    assert meets(FULL, value)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "event"},
        {"type": {"in": ["event", "knowledge"]}, "importance": {"gte": 4, "lt": 5}},
        {"importance": {"eq": 4.0}},
        {"tags": "客户"},
        {"tags": {"contains": "客户"}},
        {"tags": {"icontains": "LUE"}},
        {"tags": {"in": ["x", "Blue"]}},
        {"key": {"gt": "k", "lte": "k1", "contains": "1", "icontains": "K"}},
        {"position": 2, "role": "user", "conversation_id": {"exists": True}},
        {"name": {"exists": False}},
        {"pinned": False, "tier": "hot", "version": 1, "confidence": {"gte": 0.5}},
        {"source.trace_id": "tr_12"},
        {"colour": {"icontains": "bLAU"}, "metadata.score": {"gt": 4.5}},
        {"sizes": {"contains": 1.0}},
        {"sizes": {"icontains": "s"}},
        {"gone": None},
        {"gone": {"exists": True}},
        {"done": True},
        {"OR": [{"type": "knowledge"}, {"key": "k1"}], "NOT": {"key": "k2"}},
        {"id": "00000000-0000-0000-0000-000000000000"},
        {"event_time": NOON},
    ],
)
def test_a_condition_that_holds_matches(value: object) -> None:
    """One example for each field and operator of the language."""
    assert meets(FULL, value)
    assert not meets(FULL, {"NOT": value})


@pytest.mark.parametrize(
    "value",
    [
        {"score": "5"},
        {"score": True},
        {"done": 1},
        {"done": "true"},
        {"gone": ""},
        {"gone": 0},
        {"colour": "blau"},
        {"colour": {"contains": "lAU"}},
        {"score": {"gt": "4"}},
        {"done": {"gte": True}},
        {"gone": {"lte": None}},
        {"sizes": {"contains": "s"}},
        {"sizes": "S"},
        {"tags": "客"},
        {"tags": {"contains": "客"}},
        {"sizes": {"in": []}},
        {"metadata.key": "k1"},
    ],
)
def test_types_never_coerce(value: object) -> None:
    """A text that looks like a number is another value; parts of lists are no lists."""
    assert not meets(FULL, value)


@pytest.mark.parametrize("name", ["importance", "expires_at", "name", "tags", "colour", "source.x"])
def test_only_negations_match_what_is_missing(name: str) -> None:
    """A memory without the field is not one that has another value, yet it isn't that value."""
    value = {"importance": 3, "expires_at": "2025-07-01"}.get(name, "x")
    row = row_of(PLAIN)
    assert meets(row, {name: {"ne": value}})
    assert meets(row, {name: {"nin": [value]}})
    assert meets(row, {"NOT": {name: value}})
    assert meets(row, {name: {"exists": False}})
    assert not meets(row, {name: value})
    assert not meets(row, {name: {"in": [value]}})
    assert not meets(row, {name: {"exists": True}})


def test_null_equals_only_a_stored_null() -> None:
    """Whoever wants missing entries asks for them with exists."""
    assert meets(row_with(a=None), {"a": None})
    assert not meets(row_with(), {"a": None})
    assert meets(row_with(), {"a": {"exists": False}})


def test_names_of_the_record_win_over_metadata() -> None:
    """The same word must not mean one thing today and another once somebody stores metadata."""
    row = row_with(type="knowledge", a={"b": 1}, AND=1)
    assert meets(row, {"type": "event"})
    assert meets(row, {"metadata.type": "knowledge"})
    assert meets(row, {"metadata.AND": 1})


def test_a_dot_is_an_ordinary_character_of_a_metadata_name() -> None:
    """One name, one entry: no path can reach another entry by accident."""
    assert meets(row_with(**{"a.b": 1}), {"a.b": 1})
    assert meets(row_with(**{"a.b": 1}), {"metadata.a.b": 1})
    assert not meets(row_with(a={"b": 1}), {"a.b": 1})


@pytest.mark.parametrize("sign", ["", "$"])
@pytest.mark.parametrize("spelling", [str.lower, str.upper])
def test_dollar_spellings_mean_the_same(sign: str, spelling: Callable[[str], str]) -> None:
    """People bring filters from other stores."""
    value = {
        sign + spelling("and"): [{"key": {f"{sign}eq": "k1"}}],
        sign + spelling("or"): [{"key": "k1"}, {"key": "k2"}],
        sign + spelling("not"): {"importance": {f"{sign}gt": 4}},
    }
    plain = {
        "AND": [{"key": "k1"}],
        "OR": [{"key": "k1"}, {"key": "k2"}],
        "NOT": {"importance": {"gt": 4}},
    }
    assert parsed(value) == parsed(plain)


Colour = enum.StrEnum("Colour", ["BLUE"])


def test_values_are_freed_of_their_subclasses() -> None:
    """A driver must not see an enum member, whose text form is its own business."""
    condition = parsed({"colour": Colour.BLUE})
    assert condition == Comparison(name="colour", operator="eq", value="blue", metadata=True)
    assert isinstance(condition, Comparison)
    assert type(condition.value) is str


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"content": "x"}, "content"),
        ({"source": "x"}, "source.trace_id"),
        ({"metadata": {"a": 1}}, "'a' on 'metadata'"),
        ({"metadata": "x"}, "metadata.colour"),
        ({"turn": "x"}, "position"),
        ({"metadata.": 1}, "lacks"),
        ({"source.": 1}, "lacks"),
        ({"": 1}, "1 to 256"),
        ({"x" * (NAME_LENGTH_MAX + 1): 1}, "1 to 256"),
        ({"a\0": 1}, "1 to 256"),
        ({"a": "\0"}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": {"like": "x"}}, "'like' on 'a'"),
        ({"a": {"$where": "x"}}, "'where' on 'a'"),
        ({"a": {3: "x"}}, "'3' on 'a'"),
        ({"$nor": 1}, r"\$nor"),
        ({"a": {}}, "'a' has no operator"),
        ({"a": {"eq": {"b": 1}}}, "'a' takes"),
        ({"a": [1]}, "use in"),
        ({"a": {"eq": [1]}}, "use in"),
        ({"a": {"in": 1}}, "in on 'a' takes a list"),
        ({"a": {"in": [[1]]}}, "use in"),
        ({"a": {"in": [0] * (LIST_LENGTH_MAX + 1)}}, "1,000"),
        ({"a": b"x"}, "bytes"),
        ({"a": math.nan}, "finite"),
        ({"a": {"lt": math.inf}}, "finite"),
        ({"a": 10**400}, "too large"),
        ({"a": NOON}, "no times"),
        ({"a": {"icontains": 5}}, "takes a text"),
        ({"a": {"icontains": "x" * (SEARCHED_LENGTH_MAX + 1)}}, "1,000"),
        ({"a": {"exists": 1}}, "exists"),
        ({"OR": []}, "OR"),
        ({"OR": {"a": 1}}, "OR"),
        ({"AND": "a"}, "AND"),
        ({"AND": [None]}, "dict"),
        ({"NOT": [{"a": 1}]}, "dict"),
        ({1: 1}, "name"),
        ([], "dict or a text"),
        (b"a = 1", "dict or a text"),
        ({"type": "Event"}, "conversation, event, knowledge"),
        ({"type": {"in": ["event", "fact"]}}, "fact"),
        ({"tier": "lukewarm"}, "hot, warm, cold"),
        ({"type": {"gt": "event"}}, "gt"),
        ({"type": {"contains": "e"}}, "contains"),
        ({"importance": {"gt": "3"}}, "importance"),
        ({"importance": True}, "importance"),
        ({"importance": None}, "exists"),
        ({"importance": {"contains": 3}}, "contains"),
        ({"pinned": "yes"}, "pinned"),
        ({"pinned": 1}, "pinned"),
        ({"key": 5}, "key"),
        ({"key": None}, "exists"),
        ({"tags": {"in": [5]}}, "tags"),
        ({"tags": {"gt": "a"}}, "gt"),
        ({"created_at": 5}, "created_at"),
        ({"created_at": {"in": [None]}}, "exists"),
        ({"created_at": {"contains": "2025"}}, "contains"),
        ({"id": "42"}, "id"),
        ({"id": {"gt": "0" * 32}}, "gt"),
        ({"user_id": "u1"}, "user_id"),
        ({"NOT": {"namespace": "n"}}, "namespace"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(value: object, message: str) -> None:
    """A condition that is silently ignored returns other people's expectations."""
    with pytest.raises(InvalidFilter, match=message):
        parsed(value)


def nested(word: str, depth: int) -> Mapping[str, object]:
    """A condition under ``depth`` joiners."""
    value: Mapping[str, object] = {"a": 1}
    for _ in range(depth):
        value = {word: value} if word == "NOT" else {word: [value]}
    return value


@pytest.mark.parametrize("word", ["AND", "OR", "NOT"])
def test_nesting_has_a_bound(word: str) -> None:
    """A stranger's filter must not exhaust the stack."""
    parsed(nested(word, DEPTH_MAX))
    with pytest.raises(InvalidFilter, match="deeper"):
        parsed(nested(word, DEPTH_MAX + 1))
    with pytest.raises(InvalidFilter, match="deeper"):
        parsed(nested(word, 10_000))


def test_the_number_of_comparisons_has_a_bound() -> None:
    """A query may carry 65,535 parameters, and nobody needs hundreds."""
    parsed({"OR": [{"a": number} for number in range(COMPARISONS_MAX)]})
    with pytest.raises(InvalidFilter, match="128"):
        parsed({"OR": [{"a": number} for number in range(COMPARISONS_MAX + 1)]})
    with pytest.raises(InvalidFilter, match="128"):
        parsed({"created_at": {"in": ["2025-07-01"] * (COMPARISONS_MAX // 2 + 1)}})
