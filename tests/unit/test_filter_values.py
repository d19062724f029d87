"""Days, instants and letters in filters."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory_tool.errors import InvalidTime
from memory_tool.filter_values import any_case
from memory_tool.filters import matches, parse_filter
from memory_tool.model import StoredRow
from memory_tool.query import AllOf, Comparison, Filter
from tests.unit.filter_rows import NOON, PLAIN, row_of, row_with

SHANGHAI = ZoneInfo("Asia/Shanghai")


def parsed(value: object) -> Filter:
    """The filter, with days in Shanghai."""
    return parse_filter(value, tz=SHANGHAI)


def meets(row: StoredRow, value: object) -> bool:
    """Whether the row meets the filter."""
    return matches(parsed(value), row)


DAY = datetime(2025, 6, 30, 16, tzinfo=UTC)
NEXT_DAY = DAY + timedelta(days=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("operator", "first", "last"),
    [
        ("eq", DAY, NEXT_DAY - TICK),
        ("gte", DAY, None),
        ("gt", NEXT_DAY, None),
        ("lt", None, DAY - TICK),
        ("lte", None, NEXT_DAY - TICK),
    ],
)
@pytest.mark.parametrize("day", ["2025-07-01", date(2025, 7, 1)])
def test_a_bare_date_is_the_whole_day_in_the_zone(
    operator: str, first: datetime | None, last: datetime | None, day: object
) -> None:
    """An evening in Shanghai belongs to its day there, not to the day in Greenwich."""
    for moment in (first, last):
        if moment is not None:
            assert meets(row_of(replace(PLAIN, created_at=moment)), {"created_at": {operator: day}})
    outside = [first - TICK] if first else []
    outside += [last + TICK] if last else []
    for moment in outside:
        row = row_of(replace(PLAIN, created_at=moment))
        assert not meets(row, {"created_at": {operator: day}})


def test_lists_of_times_may_hold_days_and_instants() -> None:
    """``in`` means equal to one of them, for days as for instants."""
    listed = ["2025-06-30", DAY.isoformat()]
    inside = [DAY - timedelta(days=1), DAY - TICK, DAY]
    for moment in inside:
        row = row_of(replace(PLAIN, created_at=moment))
        assert meets(row, {"created_at": {"in": listed}})
        assert not meets(row, {"created_at": {"nin": listed}})
    after = row_of(replace(PLAIN, created_at=DAY + TICK))
    assert not meets(after, {"created_at": {"in": listed}})
    assert meets(after, {"created_at": {"nin": listed, "ne": "2025-06-30"}})


def test_a_day_is_as_long_as_the_clocks_say() -> None:
    """The day when summer time begins in Berlin has 23 hours."""
    condition = parse_filter({"created_at": "2025-03-30"}, tz=ZoneInfo("Europe/Berlin"))
    assert condition == AllOf(
        parts=(
            Comparison(
                name="created_at", operator="gte", value=datetime(2025, 3, 29, 23, tzinfo=UTC)
            ),
            Comparison(
                name="created_at", operator="lt", value=datetime(2025, 3, 30, 22, tzinfo=UTC)
            ),
        )
    )


@pytest.mark.parametrize(
    "moment",
    [
        "2025-07-01T12:00:00",
        NOON.replace(tzinfo=None),
        "yesterday",
        "2025-13-01",
        "",
        "9999-12-31",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_a_time_without_zone_is_refused(moment: object) -> None:
    """A naive time means another instant on each machine."""
    with pytest.raises(InvalidTime, match="created_at"):
        parsed({"created_at": {"gte": moment}})


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("École", "éCOLE"),
        ("ＡＢＣ", "ａｂｃ"),
        ("ПРИВЕТ", "привет"),
        ("x中文y", "中文"),
        ("a.b", "A.B"),
    ],
)
def test_icontains_does_not_tell_capitals(stored: str, asked: str) -> None:
    """In every script that has them, and without patterns."""
    assert meets(row_with(a=stored), {"a": {"icontains": asked}})


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("straße", "STRASSE"),
        ("ǆ", "ǅ"),
        ("İ", "i"),
        ("ς", "Σ"),
        ("\u212a", "k"),
        ("axb", "a.b"),
        ("aa", "a+"),
    ],
)
def test_icontains_changes_nothing_but_single_letters(stored: str, asked: str) -> None:
    """Where scripts and engines disagree about case, letters only equal themselves."""
    assert not meets(row_with(a=stored), {"a": {"icontains": asked}})


def test_letters_pair_up() -> None:
    """If a finds A then A must find a: a search must not depend on who wrote first."""
    forms: dict[str, set[str]] = {}
    for character in map(chr, [*range(0xD800), *range(0xE000, 0x1F000)]):
        if character.lower() != character.upper():
            forms.setdefault(any_case(character), set()).add(character)
    assert all(pattern.count("\\U") == len(letters) for pattern, letters in forms.items())
