"""Filters and rows at random, drawn from one small world each time so that they often meet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import strategies as st

from memory_tool.model import Json, Memory, MemoryType, StoredRow, Tier, Turn
from memory_tool.query import Scalar
from memory_tool.scope import Namespace
from tests.unit.filter_rows import PLAIN, row_of

HOSTILE = (
    "'; DROP TABLE m; --",
    '"',
    "''",
    "\\'",
    "\\",
    "%s",
    "%(f0)s",
    "%",
    "_",
    "$1",
    "{}",
    "[]",
    "^.*$",
    "(a|b)+",
    "[a-z]",
    "***=x",
    "a' OR '1'='1",
    "type = 'event'",
    "') OR TRUE --",
    '{"gte": 1}',
    "*:*",
    "/.*/",
    "\n\t",
    "AND",
    "$or",
    "项目 😀",
    "metadata.a",
)
"""Texts that mean something to SQL, to patterns, to JSON, or to a query language."""

_LETTERS = ("a", "A", "É", "ß", "ẞ", "SS", "İ", "i̇", "I", "ı", "Σ", "ς", "σ", "K", "k", "ǅ", "Ａ")
_WORDS = ("", "event", "中文", "客户", "😀", "z\u0301", "true", "null", "5", "it's")
_NUMBERS = (0, 1, 1.0, -0.0, 5, 0.1, 2**53 + 1, float(2**53), 1e23, 10**23, 5e-324, -1e308)
_NAMES = ("a", "a.b", "项目", "NOT", "type", "metadata.a", *HOSTILE)
_MOMENTS = tuple(
    datetime(2025, 7, 1, tzinfo=UTC) + timedelta(hours=hours, microseconds=offset)
    for hours in (-8, 0, 16)
    for offset in (-1, 0)
)
_DATES = ("2025-06-30", "2025-07-01", "2025-07-02")
_IDS = ("0" * 32, "f" * 32)
_ROLES = ("user", "assistant")

_any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
_texts = st.sampled_from(_LETTERS + _WORDS + HOSTILE) | _any_text
_numbers = (
    st.sampled_from(_NUMBERS)
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A filter in both of its forms."""

    mapping: Mapping[str, object]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The few names and values that the rows and filters of one example are made of."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[float, ...]

    @property
    def scalars(self) -> tuple[bool | float | str | None, ...]:
        """Every JSON scalar of this world."""
        return (None, True, False, *self.numbers, *self.texts)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world where each value has cousins: other spellings, and the same in another type."""
    text, number = draw(_texts), draw(_numbers)
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=2, unique=True))
    other = draw(st.sampled_from([text.swapcase(), text.upper(), text.lower(), f"a{text}b"]))
    near = draw(st.sampled_from([1, 0, number + 1, -number]))
    return World(
        names=tuple(names),
        texts=(text, other, draw(st.sampled_from([repr(number), "true", ""]))),
        numbers=(number, near, float(near)),
    )


def quoted(text: str, quote: str = "'") -> str:
    """``text`` as the string form quotes it."""
    return quote + text.replace(quote, quote * 2) + quote


def rows(world: World) -> st.SearchStrategy[StoredRow]:
    """A live row; any field that may be missing sometimes is."""
    texts, times = st.sampled_from(world.texts), st.sampled_from(_MOMENTS)
    scalars: st.SearchStrategy[Json] = st.sampled_from(world.scalars)
    inner = scalars | st.lists(scalars, max_size=2)
    values = scalars | st.lists(inner, max_size=3) | st.fixed_dictionaries({"a": scalars})
    entries = st.fixed_dictionaries({}, optional=dict.fromkeys(world.names, values))
    turns = st.builds(
        Turn,
        conversation_id=texts,
        position=st.integers(0, 2),
        role=st.sampled_from(_ROLES),
        name=st.none() | texts,
    )
    memories = st.builds(
        Memory,
        id=st.sampled_from(_IDS),
        namespace=st.just(Namespace(user="u1")),
        content=st.just("text"),
        type=st.sampled_from(MemoryType),
        tier=st.sampled_from(Tier),
        version=st.integers(1, 3),
        created_at=times,
        updated_at=times,
        importance=st.none() | st.integers(1, 5),
        pinned=st.booleans(),
        confidence=st.sampled_from([0.0, 0.1, 1 / 3, 1.0]) | st.floats(0, 1),
        source=entries,
        tags=st.lists(texts, max_size=2).map(tuple),
        metadata=entries,
        occurred_at=st.none() | times,
        expires_at=st.none() | times,
        verified_at=st.none() | times,
        key=st.none() | texts,
        run_id=st.none() | texts,
        turn=st.none() | turns,
    )
    return memories.map(row_of)


_EQUALITY = ("eq", "ne", "in", "nin", "exists")
_ORDER = ("gt", "gte", "lt", "lte")
_PARTS = ("contains", "icontains")
_SIGNS = {"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_TEXT_FIELDS = ("key", "run_id", "conversation_id", "name")
_TIME_FIELDS = (
    "created_at",
    "updated_at",
    "occurred_at",
    "event_time",
    "expires_at",
    "verified_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    names: tuple[str, ...]
    operators: tuple[str, ...]
    values: tuple[Scalar, ...]


def _fields(world: World) -> tuple[_Field, ...]:
    stars = (1, 2.0, 3, 4.5, *world.numbers)
    times = (*(moment.isoformat() for moment in _MOMENTS), *_DATES)
    entries = [f"{place}.{name}" for place in ("metadata", "source") for name in world.names]
    everything = _EQUALITY + _ORDER + _PARTS
    on_entries = _Field(names=tuple(entries), operators=everything, values=world.scalars)
    return (
        _Field(names=("id",), operators=_EQUALITY, values=_IDS),
        _Field(names=("type",), operators=_EQUALITY, values=tuple(map(str, MemoryType))),
        _Field(names=("tier",), operators=_EQUALITY, values=tuple(map(str, Tier))),
        _Field(names=("role",), operators=everything, values=_ROLES),
        _Field(names=_TEXT_FIELDS, operators=everything, values=world.texts),
        _Field(names=("version", "importance"), operators=_EQUALITY + _ORDER, values=stars),
        _Field(names=("position",), operators=_EQUALITY + _ORDER, values=stars),
        _Field(names=("confidence",), operators=_EQUALITY + _ORDER, values=(0.1, 1 / 3, *stars)),
        _Field(names=("pinned",), operators=_EQUALITY, values=(True, False)),
        _Field(names=_TIME_FIELDS, operators=_EQUALITY + _ORDER, values=times),
        _Field(names=("tags",), operators=_EQUALITY + _PARTS, values=world.texts),
        *(on_entries for _ in range(5)),
    )


def entry_rows(world: World) -> list[StoredRow]:
    """A row for each value that the metadata may have under ``a``, and one without."""
    values: list[Json] = [*world.scalars, [], {}, [[]], list(world.scalars)]
    for scalar in world.scalars:
        values += [[scalar], [[scalar]], {"a": scalar}]
    memories = [replace(PLAIN, metadata={"a": value}) for value in values]
    return [row_of(PLAIN), *map(row_of, memories)]


def entry_comparisons(world: World) -> Iterator[Written]:
    """Every operator on the metadata under ``a``, with every scalar that it takes."""
    for operator in _EQUALITY + _ORDER + _PARTS:
        values: Sequence[object] = world.scalars
        if operator == "exists":
            values = (True, False)
        elif operator in ("in", "nin"):
            values = [[], *([first, second] for first, second in pairwise(world.scalars))]
        elif operator == "icontains":
            values = world.texts
        for value in values:
            yield _written("metadata.a", operator, value=value)


def comparisons(world: World) -> st.SearchStrategy[Written]:
    """One condition on one field, with a value that the field takes."""
    return st.sampled_from(_fields(world)).flatmap(lambda field: _comparison(world, field=field))


@st.composite
def _comparison(draw: st.DrawFn, world: World, *, field: _Field) -> Written:
    name = draw(st.sampled_from(field.names))
    operator = draw(st.sampled_from(field.operators))
    if operator == "exists":
        value: object = draw(st.booleans())
    elif operator in ("in", "nin"):
        value = draw(st.lists(st.sampled_from(field.values), max_size=2))
    elif operator == "icontains":
        value = draw(st.sampled_from(world.texts))
    else:
        value = draw(st.sampled_from(field.values))
    return _written(name, operator, value=value)


def _written(name: str, operator: str, *, value: object) -> Written:
    return Written(
        mapping={name: {operator: value}}, text=_comparison_text(name, operator, value=value)
    )


def _comparison_text(name: str, operator: str, *, value: object) -> str:
    name = quoted(name, '"')
    match operator:
        case "exists":
            return f"{name} EXISTS" if value else f"{name} NOT EXISTS"
        case "in":
            return f"{name} IN {_literal(value)}"
        case "nin":
            return f"{name} NOT IN {_literal(value)}"
        case "contains" | "icontains":
            return f"{name} {operator} {_literal(value)}"
        case _:
            return f"{name} {_SIGNS[operator]} {_literal(value)}"


def _literal(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"({', '.join(map(_literal, value))})"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def filters(world: World) -> st.SearchStrategy[Written]:
    """Conditions nested a few levels deep."""
    return st.recursive(comparisons(world), _combined, max_leaves=6)


def _combined(parts: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    several = st.lists(parts, min_size=1, max_size=3)
    return several.map(_joined("AND")) | several.map(_joined("OR")) | parts.map(_negated)


def _joined(word: str) -> Callable[[list[Written]], Written]:
    def join(parts: list[Written]) -> Written:
        text = f" {word} ".join(f"({part.text})" for part in parts)
        return Written(mapping={word: [part.mapping for part in parts]}, text=text)

    return join


def _negated(part: Written) -> Written:
    return Written(mapping={"NOT": part.mapping}, text=f"NOT ({part.text})")
