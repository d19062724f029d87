"""The string form of filters."""

from zoneinfo import ZoneInfo

import pytest

from memory_tool.errors import InvalidFilter
from memory_tool.filters import DEPTH_MAX, parse_filter
from memory_tool.query import Comparison, Filter

SHANGHAI = ZoneInfo("Asia/Shanghai")


def parsed(value: object) -> Filter:
    """The filter, with days in Shanghai."""
    return parse_filter(value, tz=SHANGHAI)


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        ("type = 'event'", {"type": "event"}),
        (
            "type = 'event' AND created_at >= '2025-07-01'",
            {"type": "event", "created_at": {"gte": "2025-07-01"}},
        ),
        ("a=1 and b!=2", {"a": 1, "b": {"ne": 2}}),
        ("a <> -2.5e3", {"a": {"ne": -2500.0}}),
        ("a < 1 AND a <= 1 AND a > 1", {"a": {"lt": 1, "lte": 1, "gt": 1}}),
        ("a = true AND b = FALSE AND c = null", {"a": True, "b": False, "c": None}),
        ("a IN ('x', 1, null)", {"a": {"in": ["x", 1, None]}}),
        ("a in ()", {"a": {"in": []}}),
        ("a NOT IN ('x')", {"a": {"nin": ["x"]}}),
        ("tags CONTAINS '客户'", {"tags": {"contains": "客户"}}),
        ("a NOT ICONTAINS 'x'", {"NOT": {"a": {"icontains": "x"}}}),
        ("a EXISTS AND b not exists", {"a": {"exists": True}, "b": {"exists": False}}),
        ("NOT a = 1", {"NOT": {"a": 1}}),
        ("NOT (a = 1 OR b = 2)", {"NOT": {"OR": [{"a": 1}, {"b": 2}]}}),
        ("a = 1 OR b = 2 AND c = 3", {"OR": [{"a": 1}, {"AND": [{"b": 2}, {"c": 3}]}]}),
        ("(a = 1 OR b = 2) AND c = 3", {"AND": [{"OR": [{"a": 1}, {"b": 2}]}, {"c": 3}]}),
        ("NOT a = 1 AND b = 2", {"AND": [{"NOT": {"a": 1}}, {"b": 2}]}),
        ("name = 'it''s' AND key = \"a\"\"b\"", {"name": "it's", "key": 'a"b'}),
        (r"key = '\'", {"key": "\\"}),
        ("key = ''", {"key": ""}),
        ('"a b" = 1', {"a b": 1}),
        ("'and' = 1", {"metadata.and": 1}),
        ('"$or" = 1', {"metadata.$or": 1}),
        ("metadata.a.b = 1 AND source.trace_id = 'x'", {"metadata.a.b": 1, "source.trace_id": "x"}),
        ("项目　=　'蓝'", {"项目": "蓝"}),
        ("a-b = 1", {"a-b": 1}),
        ("\n type\n=\t'event' ", {"type": "event"}),
    ],
)
def test_text_reads_like_the_dict(text: str, mapping: object) -> None:
    """Both forms are one language; the repr tells true from 1 and 1 from 1.0."""
    assert repr(parsed(text)) == repr(parsed(mapping))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a name at character 1, not the end"),
        ("  ", "a name"),
        ("type", "an operator after 'type' at character 5, not the end"),
        ("type =", "a value"),
        ("type = event", "texts stand in quotes.* at character 8, not 'event'"),
        ("type = 'event", "a quote without its end.*character 8"),
        ("key = 'a''", "a quote without its end.*character 7"),
        ("type = 'it's'", "a quote without its end.*character 13"),
        ("type = 'a' 'b'", "AND, OR or the end"),
        ("type = 'event' AND", "a name"),
        ("type = 'event' type = 'event'", "AND, OR or the end"),
        ("AND = 1", "a name"),
        ("NOT", "a name"),
        ("(a = 1", r"expected \) "),
        ("a = 1)", "AND, OR or the end"),
        ("a IN 1", r"expected \( "),
        ("a IN (1", r"expected \) "),
        ("a IN (1,)", "a value"),
        ("a IN (1 2)", r"expected \) "),
        ("a NOT = 1", "an operator"),
        ("a LIKE 'x'", "LIKE"),
        ("a == 1", "a value"),
        ("a ! 1", "stray sign"),
        ("a = 1; DROP TABLE memory", "a value.*'1;'"),
        ("a = 01", "a value"),
        ("a = +1", "a value"),
        ("a = NaN", "a value"),
        ("a = Infinity", "a value"),
        ("a = 1e999", "finite"),
        (f"a = {'9' * 5000}", "a value"),
        ("'' = 1", "1 to 256"),
        ("content = 'x'", "content"),
        ("a = (1)", "a value"),
        ("= 1", "a name"),
    ],
)
def test_what_breaks_the_grammar_is_refused_with_its_place(text: str, message: str) -> None:
    """Whoever types a filter needs to see where it went wrong."""
    with pytest.raises(InvalidFilter, match=message):
        parsed(text)


@pytest.mark.parametrize(("before", "after"), [("(", ")"), ("NOT ", "")])
def test_nesting_has_a_bound(before: str, after: str) -> None:
    """A stranger's filter must not exhaust the stack."""
    parsed(f"{before * DEPTH_MAX}a = 1{after * DEPTH_MAX}")
    for depth in (DEPTH_MAX + 1, 10_000):
        with pytest.raises(InvalidFilter, match="deeper"):
            parsed(f"{before * depth}a = 1{after * depth}")


def test_depth_counts_what_is_open_not_what_was_closed() -> None:
    """Many shallow groups are not a deep filter."""
    parsed(" OR ".join(["(a = 1)"] * (DEPTH_MAX + 1)))


def test_a_doubled_quote_of_the_other_kind_stays() -> None:
    """Only the quote that encloses a text has to be doubled."""
    assert parsed("key = 'a\"\"b'") == Comparison(name="key", operator="eq", value='a""b')
