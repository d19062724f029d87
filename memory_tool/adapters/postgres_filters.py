"""Filters as SQL, with the meaning of :func:`memory_tool.filters.matches`.

Everything that a caller wrote travels as a parameter, names of metadata included: no filter can
change the shape of a query.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeGuard

from memory_tool.filter_fields import (
    OPPOSITES,
    SOURCE_PREFIX,
    Kind,
    kind_of,
)
from memory_tool.filter_values import any_case, decimal_of
from memory_tool.model import AllOf, AnyOf, Comparison, Filter, NotThis

_COLUMNS: Final[Mapping[str, str]] = {
    "position": "turn_position",
    "role": "turn_role",
    "name": "turn_name",
}
_CASTS: Final[Mapping[Kind, str]] = {
    Kind.IDENTITY: "uuid",
    Kind.WORD: "text",
    Kind.TEXT: "text",
    Kind.NUMBER: "numeric",
    Kind.FLAG: "boolean",
    Kind.TIME: "timestamptz",
}
_SIGNS: Final[Mapping[str, str]] = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class _Sql(NamedTuple):
    """A piece of SQL with the parameters of its placeholders."""

    text: str
    parameters: tuple[object, ...] = ()


def compile_filter(condition: Filter, *, alias: str = "m") -> tuple[str, list[object]]:
    """The condition as SQL for a WHERE clause, and its parameters.

    Args:
        condition: A tree that :func:`memory_tool.filters.parse_filter` made.
        alias: The name of the memory table in the query.

    Returns:
        SQL in parentheses, with ``%s`` placeholders, that is true exactly for the rows that match.
        For other rows it is false or NULL, so outside of WHERE put it as ``… IS TRUE``.

    Raises:
        InvalidFilter: The record has no such field.
    """
    compiled = _compiled(condition, alias)
    return f"({compiled.text})", list(compiled.parameters)


def _compiled(condition: Filter, alias: str) -> _Sql:
    match condition:
        case AllOf():
            return _joined(condition.parts, alias, word=" AND ", empty="TRUE")
        case AnyOf():
            return _joined(condition.parts, alias, word=" OR ", empty="FALSE")
        case NotThis():
            return _not_true(_compiled(condition.part, alias))
        case Comparison():
            return _comparison(condition, alias)


def _joined(parts: tuple[Filter, ...], alias: str, *, word: str, empty: str) -> _Sql:
    pieces = [_compiled(part, alias) for part in parts]
    text = word.join(f"({piece.text})" for piece in pieces) or empty
    return _Sql(text, tuple(each for piece in pieces for each in piece.parameters))


def _not_true(piece: _Sql) -> _Sql:
    # NOT would leave NULL, a comparison with something missing, as it is. AND and OR need no care:
    # under them NULL never becomes true, and an index can still serve the bare comparison.
    return _Sql(f"({piece.text}) IS NOT TRUE", piece.parameters)


def _comparison(comparison: Comparison, alias: str) -> _Sql:
    operator = comparison.operator
    if operator in OPPOSITES:
        return _not_true(_positive(comparison, OPPOSITES[operator], alias))
    positive = _positive(comparison, operator, alias)
    absent = operator == "exists" and comparison.value is False
    return _not_true(positive) if absent else positive


def _positive(comparison: Comparison, operator: str, alias: str) -> _Sql:
    name, value, kind = comparison.name, comparison.value, kind_of(comparison)
    if comparison.metadata:
        return _on_entry(f"{alias}.metadata", name, operator, value)
    if kind is Kind.JSON:
        return _on_entry(f"{alias}.source", name.removeprefix(SOURCE_PREFIX), operator, value)
    if kind is Kind.TAGS:
        return _on_tags(f"{alias}.tags", operator, value)
    return _on_column(f"{alias}.{_COLUMNS.get(name, name)}", _CASTS[kind], operator, value)


def _on_column(column: str, cast: str, operator: str, value: object) -> _Sql:
    if operator == "exists":
        return _Sql(f"{column} IS NOT NULL")
    if isinstance(value, tuple):
        return _Sql(f"{column} = ANY(%s::{cast}[])", ([_exact(each) for each in value],))
    if cast == "text" and operator != "eq":
        return _on_text(column, operator, value)
    return _Sql(f"{column} {_SIGNS[operator]} %s::{cast}", (_exact(value),))


def _exact(value: object) -> object:
    return decimal_of(value) if _is_number(value) else value


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _on_text(text: str, operator: str, value: object) -> _Sql:
    # The collation "C" orders by code point, whatever the locale of the database is.
    if operator == "contains":
        return _Sql(f"strpos({text}, %s::text) > 0", (value,))
    if operator == "icontains":
        return _Sql(f'{text} COLLATE "C" ~ %s::text', (any_case(str(value)),))
    return _Sql(f'{text} COLLATE "C" {_SIGNS[operator]} %s::text', (value,))


def _on_tags(column: str, operator: str, value: object) -> _Sql:
    if operator == "exists":
        return _Sql(f"jsonb_array_length({column}) > 0")
    if isinstance(value, tuple):
        return _Sql(f"{column} ?| %s::text[]", (list(value),))
    if operator == "icontains":
        return _Sql(
            f"EXISTS (SELECT FROM jsonb_array_elements_text({column}) AS tag"
            ' WHERE tag COLLATE "C" ~ %s::text)',
            (any_case(str(value)),),
        )
    return _Sql(f"{column} ? %s::text", (value,))


def _on_entry(column: str, name: str, operator: str, value: object) -> _Sql:
    # For a scalar, "contains this document" is "equals", and a GIN index can serve it.
    if operator == "exists":
        return _Sql(f"{column} ? %s::text", (name,))
    if isinstance(value, tuple):
        documents = [json.dumps({name: each}) for each in value]
        return _Sql(f"{column} @> ANY(%s::jsonb[])", (documents,))
    if operator == "eq":
        return _Sql(f"{column} @> %s::jsonb", (json.dumps({name: value}),))
    tests = list(_tests(column, name, operator, value))
    text = " OR ".join(test.text for test in tests) or "FALSE"
    return _Sql(text, tuple(each for test in tests for each in test.parameters))


def _tests(column: str, name: str, operator: str, value: object) -> Iterator[_Sql]:
    """What may hold of an entry, one test for each JSON type that the operator looks into."""
    entry = f"({column} -> %s::text)"
    if isinstance(value, str):
        yield _when(entry, name, "string", _on_text(f"({column} ->> %s::text)", operator, value))
    if operator == "contains":
        yield _Sql(f"{column} @> %s::jsonb", (json.dumps({name: [value]}),))
    elif operator == "icontains":
        in_any_case = _Sql(
            f"EXISTS (SELECT FROM jsonb_array_elements({entry}) AS member"
            " WHERE jsonb_typeof(member) = 'string'"
            " AND (member #>> '{}') COLLATE \"C\" ~ %s::text)",
            (f"^(?:{any_case(str(value))})$",),
        )
        yield _when(entry, name, "array", in_any_case)
    elif _is_number(value):
        in_order = f"{entry}::numeric {_SIGNS[operator]} %s::numeric"
        yield _when(entry, name, "number", _Sql(in_order, (decimal_of(value),)))


def _when(entry: str, name: str, json_type: str, test: _Sql) -> _Sql:
    """``test`` of an entry of that type, whose first placeholder takes the name of the entry.

    CASE keeps PostgreSQL from running the test on an entry that would make it fail.
    """
    return _Sql(
        f"CASE jsonb_typeof({entry}) WHEN '{json_type}' THEN {test.text} END",
        (name, name, *test.parameters),
    )
