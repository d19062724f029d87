"""Filters: one language with one meaning on every backend.

:func:`parse_filter` reads a condition, as a dict or as a text, into the typed tree of
:mod:`memory_tool.model`; :func:`matches` says what the tree means. PostgreSQL answers the same to
the SQL that :mod:`memory_tool.adapters.postgres_filters` makes of it; a property test compares.

The meaning:

* Values never coerce: ``"5"`` is not 5 and true is not 1, but 1 is 1.0. Numbers are compared as
  the decimals that they are written as, texts by code point.
* A field of the record without value, and a metadata entry that isn't there, are missing:
  ``ne``, ``nin`` and ``NOT`` match, everything else doesn't, and ``exists`` asks. Metadata that is
  null exists, and only equals null. The tags are missing when there are none.
* ``gt``, ``gte``, ``lt`` and ``lte`` on metadata compare numbers with numbers and texts with
  texts, and don't match anything else.
* ``contains`` looks for a part of a text or a member of a list; ``icontains`` does so without
  telling capitals (see :func:`~memory_tool.filter_values.any_case`). On tags ``eq``, ``in`` and
  ``contains`` ask for whole tags, ``icontains`` for a part of one.
* ``source.x`` is read like metadata.
* A date without time on a time field is the whole day: equal within it, greater from its end on.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Final, NamedTuple

from memory_tool.errors import InvalidFilter
from memory_tool.filter_fields import (
    OPPOSITES,
    SCOPE_WORDS,
    SOURCE_PREFIX,
    Kind,
    any_of,
    kind_of,
    typed,
    written,
)
from memory_tool.filter_text import read_text
from memory_tool.filter_values import any_case, decimal_of, shown
from memory_tool.model import Memory, StoredRow
from memory_tool.query import EVERYTHING, AllOf, AnyOf, Comparison, Filter, NotThis

DEPTH_MAX: Final = 8
"""How deep AND, OR and NOT (in a text: NOT and parentheses) may nest."""

COMPARISONS_MAX: Final = 128
"""Most comparisons of one filter; equality with a whole day counts as two."""

_JOINERS: Final[Mapping[str, str]] = {
    f"{sign}{spelling}": word
    for word in ("AND", "OR", "NOT")
    for spelling in (word, word.lower())
    for sign in ("", "$")
}


def parse_filter(value: object, *, tz: tzinfo) -> Filter:
    """The filter that ``value`` stands for.

    Args:
        value: A dict, a text, or a tree (what :func:`split_scope` left over, or one made by
            hand); ``None`` and ``{}`` are no condition.
        tz: The zone in which a bare date is a day.

    Raises:
        InvalidFilter: It can't be understood; the message names the part.
        InvalidTime: A time has no zone or can't be read.
    """
    condition = _resolved(_read(value), tz)
    if sum(1 for _ in _comparisons(condition)) > COMPARISONS_MAX:
        message = f"the filter makes more than {COMPARISONS_MAX} comparisons"
        raise InvalidFilter(message)
    return condition


def split_scope(value: object) -> tuple[Mapping[str, tuple[str, ...]], object]:
    """Take ``user_id``, ``agent_id``, ``project_id`` and ``namespace`` out of a filter.

    Args:
        value: Anything that :func:`parse_filter` reads.

    Returns:
        The ids by word, and the rest of the filter for :func:`parse_filter`.

    Raises:
        InvalidFilter: A scope word stands under OR or NOT, has another operator than ``eq`` and
            ``in`` or no texts to compare with, or two conditions name different ids.
    """
    condition = all_of(_read(value))
    ids: dict[str, tuple[str, ...]] = {}
    rest: list[Filter] = []
    for part in condition.parts if isinstance(condition, AllOf) else (condition,):
        if isinstance(part, Comparison) and _names_scope(part):
            named = _scope_ids(part)
            if set(ids.setdefault(part.name, named)) != set(named):
                message = f"{part.name} is named twice, with different ids"
                raise InvalidFilter(message)
        elif misplaced := next(filter(_names_scope, _comparisons(part)), None):
            message = f"{misplaced.name} names the scope: it stands at the top or under AND"
            raise InvalidFilter(message)
        else:
            rest.append(part)
    return ids, all_of(*rest)


def all_of(*filters: Filter) -> Filter:
    """One filter that is true when all of these are, nested conjunctions laid flat."""
    parts = tuple(part for each in filters for part in _conjuncts(each))
    return parts[0] if len(parts) == 1 else AllOf(parts=parts)


def matches(condition: Filter, row: StoredRow) -> bool:
    """Whether the memory of ``row`` meets ``condition``, a tree that :func:`parse_filter` made."""
    match condition:
        case AllOf():
            return all(matches(part, row) for part in condition.parts)
        case AnyOf():
            return any(matches(part, row) for part in condition.parts)
        case NotThis():
            return not matches(condition.part, row)
        case Comparison():
            return _meets(condition, row.memory)


def _read(value: object) -> Filter:
    if value is None:
        return EVERYTHING
    if isinstance(value, Comparison | AllOf | AnyOf | NotThis):
        return value
    if isinstance(value, str):
        return read_text(value, depth_max=DEPTH_MAX)
    return _read_mapping(value, 0)


def _read_mapping(value: object, depth: int) -> Filter:
    if not isinstance(value, Mapping):
        message = f"a filter is a dict or a text, not {shown(value)}"
        raise InvalidFilter(message)
    if depth > DEPTH_MAX:
        message = f"the filter nests deeper than {DEPTH_MAX}"
        raise InvalidFilter(message)
    parts: list[Filter] = []
    for name, condition in value.items():
        if not isinstance(name, str):
            message = f"a name is a text, not {shown(name)}"
            raise InvalidFilter(message)
        if name in _JOINERS:
            parts.append(_read_joiner(_JOINERS[name], condition, depth=depth + 1))
        elif name.startswith("$"):
            message = f"there is no {shown(name)}, only AND, OR and NOT"
            raise InvalidFilter(message)
        else:
            parts.extend(_read_conditions(name, condition))
    return all_of(*parts)


def _read_joiner(word: str, value: object, *, depth: int) -> Filter:
    if word == "NOT":
        return NotThis(part=_read_mapping(value, depth))
    if not isinstance(value, (list, tuple)):
        message = f"{word} takes a list of filters, not {shown(value)}"
        raise InvalidFilter(message)
    parts = tuple(_read_mapping(each, depth) for each in value)
    if word == "AND":
        return all_of(*parts)
    if not parts:
        message = "OR takes at least one filter"
        raise InvalidFilter(message)
    return AnyOf(parts=parts)


def _read_conditions(name: str, value: object) -> Iterator[Comparison]:
    if not isinstance(value, Mapping):
        yield written(name, "eq", value=value)
        return
    if not value:
        message = f"{shown(name)} has no operator"
        raise InvalidFilter(message)
    for spelling, operand in value.items():
        yield written(name, str(spelling).removeprefix("$"), value=operand)


def _resolved(condition: Filter, tz: tzinfo) -> Filter:
    match condition:
        case AllOf():
            return all_of(*(_resolved(part, tz) for part in condition.parts))
        case AnyOf():
            return any_of(tuple(_resolved(part, tz) for part in condition.parts))
        case NotThis():
            return NotThis(part=_resolved(condition.part, tz))
        case Comparison():
            return typed(condition, tz)


def _conjuncts(condition: Filter) -> Iterator[Filter]:
    if isinstance(condition, AllOf):
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _comparisons(condition: Filter) -> Iterator[Comparison]:
    match condition:
        case AllOf() | AnyOf():
            for part in condition.parts:
                yield from _comparisons(part)
        case NotThis():
            yield from _comparisons(condition.part)
        case Comparison():
            yield condition


def _names_scope(comparison: Comparison) -> bool:
    return comparison.name in SCOPE_WORDS and not comparison.metadata


def _scope_ids(comparison: Comparison) -> tuple[str, ...]:
    name, value = comparison.name, comparison.value
    if comparison.operator not in ("eq", "in"):
        message = f"{name} names the scope: it takes eq or in, not {comparison.operator}"
        raise InvalidFilter(message)
    values = value if isinstance(value, tuple) else (value,)
    ids = tuple(each for each in values if isinstance(each, str))
    if not ids or len(ids) < len(values):
        message = f"{name} takes ids, which are texts, not {shown(value)}"
        raise InvalidFilter(message)
    return ids


class _Key(NamedTuple):
    """A scalar as something that compares: within one kind, by number and text."""

    kind: str
    number: Decimal | int = 0
    text: str = ""


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ORDERED: Final = frozenset({"number", "text", "time"})


def _meets(comparison: Comparison, memory: Memory) -> bool:
    found = _found(comparison, memory)
    if comparison.operator == "exists":
        return bool(found) == comparison.value
    positive = OPPOSITES.get(comparison.operator)
    meets = _MEANINGS[positive or comparison.operator]
    met = any(meets(each, comparison.value) for each in found)
    return met if positive is None else not met


def _found(comparison: Comparison, memory: Memory) -> tuple[object, ...]:
    """What the field holds, any of which may meet the comparison; nothing when it is missing."""
    name, kind = comparison.name, kind_of(comparison)
    if kind is Kind.TAGS:
        return (memory.tags,) if comparison.operator == "contains" else memory.tags
    if kind is Kind.JSON:
        entries = memory.metadata if comparison.metadata else memory.source
        entry = name if comparison.metadata else name.removeprefix(SOURCE_PREFIX)
        return (entries[entry],) if entry in entries else ()
    holder = memory.turn if name in _TURN_FIELDS else memory
    value = getattr(holder, name, None)
    return () if value is None else (value,)


_TURN_FIELDS: Final = frozenset({"conversation_id", "position", "role", "name"})


def _key(value: object) -> _Key | None:
    """The key of a scalar, ``None`` for a list or a dict."""
    if value is None:
        return _Key("null")
    if isinstance(value, bool):
        return _Key("flag", int(value))
    if isinstance(value, (int, float)):
        return _Key("number", decimal_of(value))
    if isinstance(value, str):
        return _Key("text", text=value)
    if isinstance(value, datetime):
        return _Key("time", (value - _EPOCH) // timedelta(microseconds=1))
    return None


def _equals(found: object, value: object) -> bool:
    key = _key(found)
    return key is not None and key == _key(value)


def _is_one_of(found: object, values: object) -> bool:
    return isinstance(values, tuple) and any(_equals(found, each) for each in values)


def _contains(found: object, value: object) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, Sequence) and any(_equals(each, value) for each in found)


def _contains_in_any_case(found: object, value: object) -> bool:
    pattern = any_case(str(value))
    if isinstance(found, str):
        return re.search(pattern, found) is not None
    return isinstance(found, Sequence) and any(
        isinstance(each, str) and re.fullmatch(pattern, each) is not None for each in found
    )


def _in_order(precedes: Callable[[_Key, _Key], bool]) -> Callable[[object, object], bool]:
    def meets(found: object, value: object) -> bool:
        left, right = _key(found), _key(value)
        if left is None or right is None or left.kind != right.kind:
            return False
        return left.kind in _ORDERED and precedes(left, right)

    return meets


_MEANINGS: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "eq": _equals,
    "in": _is_one_of,
    "gt": _in_order(operator.gt),
    "gte": _in_order(operator.ge),
    "lt": _in_order(operator.lt),
    "lte": _in_order(operator.le),
    "contains": _contains,
    "icontains": _contains_in_any_case,
}
