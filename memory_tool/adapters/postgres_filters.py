"""Filters as SQL, with the meaning of :func:`memory_tool.filters.matches`.

Everything that a caller wrote travels as a parameter, names of metadata included: no filter can
change the shape of a query.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeGuard

from memory_tool.filter_fields import (
    OPPOSITES,
    SOURCE_PREFIX,
    Kind,
    kind_of,
)
from memory_tool.filter_values import any_case, decimal_of
from memory_tool.query import AllOf, AnyOf, Comparison, Filter, NotThis

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
    name, kind = comparison.name, kind_of(comparison)
    if comparison.operator in OPPOSITES:
        opposite = replace(comparison, operator=OPPOSITES[comparison.operator])
        return _not_true(_comparison(opposite, alias))
    if comparison.operator == "exists" and comparison.value is False:
        return _not_true(_comparison(replace(comparison, value=True), alias))
    if comparison.metadata:
        return _on_entry(f"{alias}.metadata", comparison)
    if kind is Kind.JSON:
        entry = replace(comparison, name=name.removeprefix(SOURCE_PREFIX))
        return _on_entry(f"{alias}.source", entry)
    if kind is Kind.TAGS:
        return _on_tags(f"{alias}.tags", comparison)
    return _on_column(f"{alias}.{_COLUMNS.get(name, name)}", comparison)


def _on_column(column: str, comparison: Comparison) -> _Sql:
    operator, value, cast = comparison.operator, comparison.value, _CASTS[kind_of(comparison)]
    if operator == "exists":
        return _Sql(f"{column} IS NOT NULL")
    if isinstance(value, tuple):
        return _Sql(f"{column} = ANY(%s::{cast}[])", ([_exact(each) for each in value],))
    if cast == "text" and operator != "eq":
        return _on_text(column, comparison)
    return _Sql(f"{column} {_SIGNS[operator]} %s::{cast}", (_exact(value),))


def _exact(value: object) -> object:
    return decimal_of(value) if _is_number(value) else value


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _on_text(text: str, comparison: Comparison) -> _Sql:
    # The collation "C" orders by code point, whatever the locale of the database is.
    operator, value = comparison.operator, comparison.value
    if operator == "contains":
        return _Sql(f"strpos({text}, %s::text) > 0", (value,))
    if operator == "icontains":
        return _Sql(f'{text} COLLATE "C" ~ %s::text', (any_case(str(value)),))
    return _Sql(f'{text} COLLATE "C" {_SIGNS[operator]} %s::text', (value,))


def _on_tags(column: str, comparison: Comparison) -> _Sql:
    operator, value = comparison.operator, comparison.value
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


def _on_entry(column: str, comparison: Comparison) -> _Sql:
    # For a scalar, "contains this document" is "equals", and a GIN index can serve it.
    name, operator, value = comparison.name, comparison.operator, comparison.value
    if operator == "exists":
        return _Sql(f"{column} ? %s::text", (name,))
    if isinstance(value, tuple):
        documents = [json.dumps({name: each}) for each in value]
        return _Sql(f"{column} @> ANY(%s::jsonb[])", (documents,))
    if operator == "eq":
        return _Sql(f"{column} @> %s::jsonb", (json.dumps({name: value}),))
    tests = list(_tests(column, comparison))
    text = " OR ".join(test.text for test in tests) or "FALSE"
    return _Sql(text, tuple(each for test in tests for each in test.parameters))


def _tests(column: str, comparison: Comparison) -> Iterator[_Sql]:
    """What may hold of an entry, one test for each JSON type that the operator looks into."""
    name, operator, value = comparison.name, comparison.operator, comparison.value
    entry = _Sql(f"({column} -> %s::text)", (name,))
    if isinstance(value, str):
        test = _on_text(f"({column} ->> %s::text)", comparison)
        yield _when(entry, "string", test=_Sql(test.text, (name, *test.parameters)))
    if operator == "contains":
        yield _Sql(f"{column} @> %s::jsonb", (json.dumps({name: [value]}),))
    elif operator == "icontains":
        in_any_case = (
            f"EXISTS (SELECT FROM jsonb_array_elements({entry.text}) AS member"
            " WHERE jsonb_typeof(member) = 'string'"
            " AND (member #>> '{}') COLLATE \"C\" ~ %s::text)"
        )
        whole = f"^(?:{any_case(str(value))})$"
        yield _when(entry, "array", test=_Sql(in_any_case, (name, whole)))
    elif _is_number(value):
        in_order = f"{entry.text}::numeric {_SIGNS[operator]} %s::numeric"
        yield _when(entry, "number", test=_Sql(in_order, (name, decimal_of(value))))


def _when(entry: _Sql, json_type: str, *, test: _Sql) -> _Sql:
    """``test``, kept from running on an entry of another type, where it might fail."""
    return _Sql(
        f"CASE jsonb_typeof({entry.text}) WHEN '{json_type}' THEN {test.text} END",
        entry.parameters + test.parameters,
    )
