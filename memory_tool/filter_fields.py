"""What a filter may name: the fields of a record, their operators, and the values they take.

A name as written is a field of the record, ``source.<name>``, or else the name of one metadata
entry, taken whole: ``a.b`` is the entry ``"a.b"``, not a path. ``metadata.<name>`` says so
explicitly, and reaches entries that are called like a field or an operator.
"""

import enum
import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Final, get_args

from memory_tool.errors import InvalidFilter
from memory_tool.filter_values import NEVER_STORED, Span, or_missing, scalar, shown, span
from memory_tool.model import MemoryType, Tier
from memory_tool.query import AllOf, AnyOf, Comparison, Filter, NotThis, Operator, Scalar

NAME_LENGTH_MAX: Final = 256
"""Longest name, in characters."""

LIST_LENGTH_MAX: Final = 1_000
"""Most values of one ``in`` or ``nin``."""

SEARCHED_LENGTH_MAX: Final = 1_000
"""Longest text that ``icontains`` looks for, in characters: PostgreSQL reads its pattern in 8 ms,
one of 20,000 characters in 3.5 s."""

SCOPE_WORDS: Final = frozenset({"user_id", "agent_id", "project_id", "namespace"})
"""Names that choose where to look and are no conditions on a record."""

OPPOSITES: Final[Mapping[Operator, Operator]] = {"ne": "eq", "nin": "in"}
"""Operators that match exactly where the other one doesn't, missing fields included."""

SOURCE_PREFIX: Final = "source."
"""Starts the name of an entry of ``source``, which is compared like metadata."""

_METADATA_PREFIX: Final = "metadata."


class Kind(enum.Enum):
    """What a field holds, and so which operators and values it takes. JSON takes all of them."""

    IDENTITY = "an id"
    WORD = "a word of a fixed set"
    TEXT = "a text"
    NUMBER = "a number"
    FLAG = "true or false"
    TIME = "a time"
    TAGS = "a list of texts"
    JSON = "any JSON value"


_RECORD_FIELDS: Final[Mapping[str, Kind]] = {
    "id": Kind.IDENTITY,
    "type": Kind.WORD,
    "tier": Kind.WORD,
    "key": Kind.TEXT,
    "run_id": Kind.TEXT,
    "conversation_id": Kind.TEXT,
    "role": Kind.TEXT,
    "name": Kind.TEXT,
    "version": Kind.NUMBER,
    "importance": Kind.NUMBER,
    "confidence": Kind.NUMBER,
    "position": Kind.NUMBER,
    "pinned": Kind.FLAG,
    "tags": Kind.TAGS,
    "created_at": Kind.TIME,
    "updated_at": Kind.TIME,
    "occurred_at": Kind.TIME,
    "event_time": Kind.TIME,
    "expires_at": Kind.TIME,
    "verified_at": Kind.TIME,
}
_WITHOUT_A_FILTER: Final[Mapping[str, str]] = {
    "content": "search for it instead",
    "embedding": "search for it instead",
    "metadata": "name one entry, as in metadata.colour",
    "source": "name one entry, as in source.trace_id",
    "turn": "name conversation_id, position, role or name",
}
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": tuple(MemoryType),
    "tier": tuple(Tier),
}

_OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
_EQUALITY: Final = frozenset({"eq", "ne", "in", "nin", "exists"})
_ORDER: Final = frozenset({"gt", "gte", "lt", "lte"})
_PARTS: Final = frozenset({"contains", "icontains"})
_OPERATORS_OF: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.IDENTITY: _EQUALITY,
    Kind.WORD: _EQUALITY,
    Kind.TEXT: _EQUALITY | _ORDER | _PARTS,
    Kind.NUMBER: _EQUALITY | _ORDER,
    Kind.FLAG: _EQUALITY,
    Kind.TIME: _EQUALITY | _ORDER,
    Kind.TAGS: _EQUALITY | _PARTS,
    Kind.JSON: _EQUALITY | _ORDER | _PARTS,
}

_HEXADECIMAL_ID: Final = re.compile("[0-9a-f]{32}")


def kind_of(comparison: Comparison) -> Kind:
    """What the field of a typed comparison holds.

    Raises:
        InvalidFilter: The record has no such field.
    """
    if comparison.metadata or comparison.name.startswith(SOURCE_PREFIX):
        return Kind.JSON
    kind = _RECORD_FIELDS.get(comparison.name)
    if kind is None:
        message = f"{shown(comparison.name)} is not a field of the record"
        raise InvalidFilter(message)
    return kind


def written(name: str, operator: str, *, value: object) -> Comparison:
    """A comparison as somebody wrote it: its shape is right, its name not looked up yet.

    Raises:
        InvalidFilter: An unknown operator, a name or list that is too long, or a value that is
            neither a scalar nor, for ``in`` and ``nin``, a list of scalars.
    """
    known = next((each for each in _OPERATORS if each == operator), None)
    if known is None:
        message = f"{shown(operator)} on {shown(name)} is no operator; there are "
        raise InvalidFilter(message + ", ".join(_OPERATORS))
    if not 0 < len(name) <= NAME_LENGTH_MAX or NEVER_STORED.search(name):
        message = f"a name has 1 to {NAME_LENGTH_MAX} characters: {shown(name)}"
        raise InvalidFilter(message)
    if known not in ("in", "nin"):
        return Comparison(name=name, operator=known, value=scalar(name, value))
    if not isinstance(value, (list, tuple)):
        message = f"{known} on {shown(name)} takes a list, not {shown(value)}"
        raise InvalidFilter(message)
    if len(value) > LIST_LENGTH_MAX:
        message = f"the list for {shown(name)} is longer than {LIST_LENGTH_MAX:,} values"
        raise InvalidFilter(message)
    scalars = tuple(scalar(name, each) for each in value)
    return Comparison(name=name, operator=known, value=scalars)


def typed(comparison: Comparison, tz: tzinfo) -> Filter:
    """The same comparison with its name looked up and its values in the type of the field.

    A bare date on a time stands for the whole day in ``tz``, so it becomes a range. What is typed
    already stays as it is.

    Raises:
        InvalidFilter: The field can't be filtered, not by this operator, or not with this value.
        InvalidTime: A time has no zone or can't be read.
    """
    located = _located(comparison)
    kind = kind_of(located)
    name, operator, value = located.name, located.operator, located.value
    if operator not in _OPERATORS_OF[kind]:
        message = f"{shown(name)} is {kind.value} and can't be compared by {operator}"
        raise InvalidFilter(message)
    if operator == "exists":
        if not isinstance(value, bool):
            message = f"exists on {shown(name)} takes true or false, not {shown(value)}"
            raise InvalidFilter(message)
        return located
    if operator == "icontains" and len(_text(name, value)) > SEARCHED_LENGTH_MAX:
        message = f"icontains on {shown(name)} takes at most {SEARCHED_LENGTH_MAX:,} characters"
        raise InvalidFilter(message)
    if kind is Kind.TIME:
        return _at_times(located, tz)
    convert = _CONVERSIONS[kind]
    if isinstance(value, tuple):
        converted: Scalar | tuple[Scalar, ...] = tuple(convert(name, each) for each in value)
    else:
        converted = convert(name, value)
    return Comparison(name=name, operator=operator, value=converted, metadata=located.metadata)


def any_of(parts: tuple[Filter, ...]) -> Filter:
    """One filter that is true when any part is; a single part stands for itself."""
    return parts[0] if len(parts) == 1 else AnyOf(parts=parts)


def _located(comparison: Comparison) -> Comparison:
    name = comparison.name
    if comparison.metadata or name in _RECORD_FIELDS:
        return comparison
    if name in SCOPE_WORDS:
        message = f"{name} names the scope: it stands at the top or under AND, with eq or in only"
        raise InvalidFilter(message)
    if name in _WITHOUT_A_FILTER:
        message = f"{name} can't be filtered: {_WITHOUT_A_FILTER[name]}"
        raise InvalidFilter(message)
    if name in (SOURCE_PREFIX, _METADATA_PREFIX):
        message = f"{shown(name)} lacks the name of an entry"
        raise InvalidFilter(message)
    if name.startswith(SOURCE_PREFIX):
        return comparison
    return Comparison(
        name=name.removeprefix(_METADATA_PREFIX),
        operator=comparison.operator,
        value=comparison.value,
        metadata=True,
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        message = f"{shown(name)} takes a text here, not {shown(value)}{or_missing(value)}"
        raise InvalidFilter(message)
    return value


def _word(name: str, value: object) -> str:
    known = _WORDS[name]
    if value not in known:
        choices = ", ".join(known)
        message = f"{name} takes one of {choices}; not {shown(value)}"
        raise InvalidFilter(message)
    return _text(name, value)


def _identity(name: str, value: object) -> str:
    digits = _text(name, value).replace("-", "").lower()
    if not _HEXADECIMAL_ID.fullmatch(digits):
        message = f"{name} takes 32 hexadecimal digits, not {shown(value)}"
        raise InvalidFilter(message)
    return digits


def _number(name: str, value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{name} takes a number, not {shown(value)}{or_missing(value)}"
        raise InvalidFilter(message)
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        message = f"{name} takes true or false, not {shown(value)}"
        raise InvalidFilter(message)
    return value


def _json(name: str, value: Scalar) -> Scalar:
    if isinstance(value, datetime):
        message = f"{shown(name)} holds JSON, which has no times: compare the stored text"
        raise InvalidFilter(message)
    return value


_CONVERSIONS: Final[Mapping[Kind, Callable[[str, Scalar], Scalar]]] = {
    Kind.IDENTITY: _identity,
    Kind.WORD: _word,
    Kind.TEXT: _text,
    Kind.NUMBER: _number,
    Kind.FLAG: _flag,
    Kind.TAGS: _text,
    Kind.JSON: _json,
}


def _at_times(comparison: Comparison, tz: tzinfo) -> Filter:
    name, operator, value = comparison.name, comparison.operator, comparison.value
    if not isinstance(value, tuple):
        return _at_time(name, operator, span=span(name, value, tz=tz))
    spans = [span(name, each, tz=tz) for each in value]
    if all(stop is None for _, stop in spans):
        starts = tuple(start for start, _ in spans)
        return Comparison(name=name, operator=operator, value=starts)
    within = any_of(tuple(_at_time(name, "eq", span=each) for each in spans))
    return within if operator == "in" else NotThis(part=within)


def _at_time(name: str, operator: Operator, *, span: Span) -> Filter:
    start, stop = span
    if stop is None or operator in ("gte", "lt"):
        return Comparison(name=name, operator=operator, value=start)
    if operator == "gt":
        return Comparison(name=name, operator="gte", value=stop)
    before_the_end = Comparison(name=name, operator="lt", value=stop)
    if operator == "lte":
        return before_the_end
    day = AllOf(parts=(Comparison(name=name, operator="gte", value=start), before_the_end))
    return day if operator == "eq" else NotThis(part=day)
