"""A filter means the same in Python, in PostgreSQL, as a dict and as a text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from memory_tool.adapters.postgres_filters import compile_filter
from memory_tool.filters import all_of, matches, parse_filter
from memory_tool.model import StoredRow
from memory_tool.query import Comparison, Filter
from tests.property.filter_strategies import (
    HOSTILE,
    World,
    Written,
    comparisons,
    entry_comparisons,
    entry_rows,
    filters,
    quoted,
    rows,
    worlds,
)
from tests.unit.filter_rows import PLAIN, row_of

SHANGHAI = ZoneInfo("Asia/Shanghai")

# A busy machine may be slow; that says nothing about filters.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TABLE = """
CREATE TEMP TABLE memory (
    number int PRIMARY KEY, id uuid, type text, version int, importance smallint, pinned boolean,
    confidence double precision, tags jsonb, key text, run_id text, conversation_id text,
    turn_position int, turn_role text, turn_name text, created_at timestamptz,
    updated_at timestamptz, occurred_at timestamptz, expires_at timestamptz,
    verified_at timestamptz, tier text, source jsonb, metadata jsonb,
    event_time timestamptz GENERATED ALWAYS AS (coalesce(occurred_at, created_at)) STORED
)
"""
INSERT = """
INSERT INTO memory VALUES (
    %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
)
"""


class Table:
    """The columns of the memory table that filters look at, in a real server."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        connection.execute(TABLE)

    def fill(self, stored: Sequence[StoredRow]) -> None:
        """Hold these rows, numbered from 0, and no others."""
        with self._connection.cursor() as cursor:
            cursor.execute("DELETE FROM memory")
            cursor.executemany(INSERT, [_columns(number, row) for number, row in enumerate(stored)])

    def matching(self, condition: Filter, *, walls: str = "TRUE") -> list[int]:
        """Numbers of the rows behind ``walls`` that meet the condition, as PostgreSQL sees it."""
        text, parameters = compile_filter(condition)
        query = f"SELECT m.number FROM memory AS m WHERE {walls} AND {text} ORDER BY m.number"  # noqa: S608 - what is tested
        return [number for (number,) in self._connection.execute(query.encode(), parameters)]


def _columns(number: int, row: StoredRow) -> tuple[object, ...]:
    memory = row.memory
    turn = memory.turn
    place = (turn.conversation_id, turn.position, turn.role, turn.name) if turn else (None,) * 4
    return (
        number,
        memory.id,
        memory.type,
        memory.version,
        memory.importance,
        memory.pinned,
        memory.confidence,
        Jsonb(memory.tags),
        memory.key,
        memory.run_id,
        *place,
        memory.created_at,
        memory.updated_at,
        memory.occurred_at,
        memory.expires_at,
        memory.verified_at,
        memory.tier,
        Jsonb(memory.source),
        Jsonb(memory.metadata),
    )


@pytest.fixture(scope="module")
def table(embedded_superuser_conninfo: str) -> Iterator[Table]:
    """A table of our own in the session's server."""
    with psycopg.connect(embedded_superuser_conninfo) as connection:
        yield Table(connection)


def _agree(table: Table, stored: Sequence[StoredRow], *, conditions: Sequence[Written]) -> None:
    table.fill(stored)
    for written in conditions:
        condition = parse_filter(written.mapping, tz=SHANGHAI)
        expected = [number for number, row in enumerate(stored) if matches(condition, row)]
        assert table.matching(condition) == expected, written


@settings(PATIENT, max_examples=80)
@given(world=worlds())
def test_json_compares_the_same_in_postgresql(table: Table, world: World) -> None:
    """All of a world's values against all comparisons: JSON is where types could coerce."""
    _agree(table, entry_rows(world), conditions=list(entry_comparisons(world)))


@settings(PATIENT, max_examples=150)
@given(drawn=st.data(), world=worlds())
def test_comparisons_mean_the_same_in_postgresql(
    table: Table, drawn: st.DataObject, world: World
) -> None:
    """A comparison that means something else there shows or hides memories by where they lie."""
    stored = drawn.draw(st.lists(rows(world), min_size=1, max_size=4))
    conditions = drawn.draw(st.lists(comparisons(world), min_size=8, max_size=16))
    _agree(table, stored, conditions=conditions)


@settings(PATIENT, max_examples=100)
@given(drawn=st.data(), world=worlds())
def test_nested_filters_mean_the_same_in_postgresql(
    table: Table, drawn: st.DataObject, world: World
) -> None:
    """NOT over something missing is where three-valued SQL and Python part."""
    stored = drawn.draw(st.lists(rows(world), min_size=1, max_size=4))
    conditions = drawn.draw(st.lists(filters(world), min_size=1, max_size=4))
    _agree(table, stored, conditions=conditions)


@settings(PATIENT, max_examples=200)
@given(written=worlds().flatmap(filters))
def test_text_and_dict_read_the_same(written: Written) -> None:
    """Who moves a filter from code to a command line must find the same memories."""
    from_text = parse_filter(written.text, tz=SHANGHAI)
    from_dict = parse_filter(written.mapping, tz=SHANGHAI)
    # The repr tells true from 1, which are equal in Python.
    assert repr(from_text) == repr(from_dict)


@settings(PATIENT, max_examples=100)
@given(written=worlds().flatmap(filters))
def test_a_tree_stays_as_it_is_when_parsed_again(written: Written) -> None:
    """A parsed filter may be handed to any method that takes filters."""
    condition = parse_filter(written.mapping, tz=SHANGHAI)
    assert repr(parse_filter(condition, tz=SHANGHAI)) == repr(condition)


def test_or_stays_within_the_condition(table: Table) -> None:
    """A query adds the walls of the namespace with AND: a filter must not reach around them."""
    table.fill([row_of(PLAIN)])
    condition = parse_filter({"OR": [{"type": "event"}, {"tier": "hot"}]}, tz=SHANGHAI)
    assert table.matching(condition) == [0]
    assert table.matching(condition, walls="FALSE") == []


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("operator", ["eq", "in", "gte", "contains", "icontains"])
def test_hostile_texts_are_literal(table: Table, hostile: str, operator: str) -> None:
    """Names and values come from models and strangers: they must never become part of a query."""
    tagged = replace(PLAIN, metadata={hostile: hostile}, source={hostile: hostile}, tags=(hostile,))
    table.fill([row_of(PLAIN), row_of(replace(tagged, key=hostile))])
    names = ["key", f"metadata.{hostile}", f"source.{hostile}"]
    for name in names if operator == "gte" else [*names, "tags"]:
        value = [hostile] if operator == "in" else hostile
        condition = parse_filter({name: {operator: value}}, tz=SHANGHAI)
        assert table.matching(condition) == [1]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_literal_in_the_string_form(hostile: str) -> None:
    """A quote inside a value must not end it."""
    for quote in ("'", '"'):
        condition = parse_filter(f"key = {quoted(hostile, quote)} AND pinned = true", tz=SHANGHAI)
        assert condition == all_of(
            Comparison(name="key", operator="eq", value=hostile),
            Comparison(name="pinned", operator="eq", value=True),
        )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_text_of_a_query_is_the_same_whatever_is_asked(hostile: str) -> None:
    """No filter can change a query's shape: all that was written travels as a parameter."""
    asked = {f"metadata.{hostile}": {"gt": hostile}, f"source.{hostile}": hostile, "key": hostile}
    plain = {"metadata.a": {"gt": "a"}, "source.a": "a", "key": "a"}
    text, _ = compile_filter(parse_filter(asked, tz=SHANGHAI))
    assert text == compile_filter(parse_filter(plain, tz=SHANGHAI))[0]


@pytest.mark.parametrize("name", ["key", "metadata.a"])
def test_the_order_of_texts_does_not_depend_on_the_locale(name: str) -> None:
    """Under ``en_US`` a comes before B; the embedded server has no such locale to try it on."""
    text, _ = compile_filter(parse_filter({name: {"gt": "a"}}, tz=SHANGHAI))
    assert 'COLLATE "C" >' in text
