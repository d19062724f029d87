"""Putting filters together, and taking the scope out of them."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

import pytest

from memory_tool.errors import InvalidFilter
from memory_tool.filters import all_of, matches, parse_filter, split_scope
from memory_tool.query import EVERYTHING, AllOf, AnyOf, Comparison, Filter, NotThis
from tests.unit.filter_rows import row_with

SHANGHAI = ZoneInfo("Asia/Shanghai")


def parsed(value: object) -> Filter:
    """The filter, with days in Shanghai."""
    return parse_filter(value, tz=SHANGHAI)


A, B, C = (Comparison(name=name, operator="eq", value=1, metadata=True) for name in "abc")


def test_all_of_lays_conjunctions_flat() -> None:
    """Filters from the caller and from the brain become one list of conditions."""
    assert all_of() == EVERYTHING
    assert all_of(A) == A
    assert all_of(EVERYTHING, A, AllOf(parts=(B, AllOf(parts=(C,))))) == AllOf(parts=(A, B, C))
    either = AnyOf(parts=(A, B))
    assert all_of(either, NotThis(part=C)) == AllOf(parts=(either, NotThis(part=C)))


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (None, {}),
        ({"type": "event"}, {}),
        ({"type": "event", "user_id": "u1"}, {"user_id": ("u1",)}),
        (
            {"AND": [{"user_id": {"in": ["u1", "u2"]}}, {"AND": [{"agent_id": "a"}]}]},
            {"user_id": ("u1", "u2"), "agent_id": ("a",)},
        ),
        ({"user_id": {"$eq": "*"}, "AND": [{"user_id": "*"}]}, {"user_id": ("*",)}),
        (
            "namespace = 'user:u1' AND project_id IN ('p') AND type = 'event'",
            {"namespace": ("user:u1",), "project_id": ("p",)},
        ),
        (
            "(user_id = 'u1' AND type = 'event') AND agent_id = 'a'",
            {"user_id": ("u1",), "agent_id": ("a",)},
        ),
    ],
)
def test_scope_words_are_taken_out(value: object, ids: Mapping[str, tuple[str, ...]]) -> None:
    """The scope chooses namespaces before any row is looked at; the rest is the filter."""
    found, rest = split_scope(value)
    assert found == ids
    expected = {"type": "event"} if "type" in str(value) else {}
    assert parsed(rest) == parsed(expected)


@pytest.mark.parametrize(
    "value",
    [
        {"OR": [{"user_id": "u1"}]},
        {"OR": [{"AND": [{"type": "event"}, {"user_id": "u1"}]}, {"type": "event"}]},
        {"NOT": {"agent_id": "a"}},
        {"user_id": {"ne": "u1"}},
        {"user_id": {"nin": ["u1"]}},
        {"user_id": {"icontains": "u"}},
        {"user_id": {"eq": "u1", "exists": True}},
        {"user_id": "u1", "AND": [{"user_id": "u2"}]},
        {"user_id": {"in": ["u1", "u2"]}, "AND": [{"user_id": "u1"}]},
        {"user_id": {"in": []}},
        {"user_id": {"in": ["u1", None]}},
        {"project_id": 5},
        {"namespace": None},
        "user_id = 'u1' OR type = 'event'",
    ],
)
def test_a_scope_word_elsewhere_is_refused(value: object) -> None:
    """A scope under OR or NOT would read namespaces that nobody named."""
    with pytest.raises(InvalidFilter, match=r"user_id|agent_id|project_id|namespace"):
        split_scope(value)


def test_metadata_may_be_called_like_a_scope_word() -> None:
    """The explicit spelling always means metadata, also when a parsed filter comes by again."""
    for value in ({"metadata.user_id": "u1"}, parsed({"metadata.user_id": "u1"})):
        ids, rest = split_scope(value)
        assert not ids
        assert matches(parsed(rest), row_with(user_id="u1"))
