"""The values of filters: which ones there are, days and instants, numbers, and letters."""

import re
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Final, TypeAlias

from memory_tool.errors import InvalidFilter, InvalidTime
from memory_tool.query import Scalar

NEVER_STORED: Final = re.compile("[\0\ud800-\udfff]")
"""Characters that PostgreSQL can't hold: NUL, and halves of surrogate pairs."""

Span: TypeAlias = tuple[datetime, datetime | None]
"""An instant, or the first instant of a day and of the day after."""


def shown(value: object) -> str:
    """``value`` as an error message shows it: its repr, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"  # noqa: PLR2004 - said in the docstring


def scalar(name: str, value: object) -> Scalar:
    """The plain scalar that ``value`` is, freed of subclasses such as members of an enum.

    A date without time becomes its ISO text.

    Raises:
        InvalidFilter: It is no scalar, or one that can't be stored; the message tells ``name``.
    """
    if value is None or isinstance(value, (bool, datetime)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        if NEVER_STORED.search(value):
            message = f"the value for {shown(name)} holds a NUL or a lone surrogate"
            raise InvalidFilter(message)
        return str.__str__(value)
    if isinstance(value, (int, float)):
        if not abs(value) <= sys.float_info.max:
            message = f"the number for {shown(name)} is not finite, or too large"
            raise InvalidFilter(message)
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, (list, tuple)):
        message = f"{shown(name)} has a list where a scalar belongs; use in for lists"
        raise InvalidFilter(message)
    found = type(value).__name__
    message = f"{shown(name)} takes a text, number, true, false or null, not a {found}"
    raise InvalidFilter(message)


def or_missing(value: object) -> str:
    """What a refusal of ``null`` adds: how to ask for a missing value."""
    return "; for a field without value use exists" if value is None else ""


def span(name: str, value: Scalar, *, tz: tzinfo) -> Span:
    """The instant that ``value`` is, or the whole day in ``tz`` that a bare date stands for; UTC.

    Raises:
        InvalidFilter: It is neither a time nor a text.
        InvalidTime: It has no zone, can't be read, or lies outside the years 1 to 9999.
    """
    if not isinstance(value, (str, datetime)):
        message = f"{name} takes a time, not {shown(value)}{or_missing(value)}"
        raise InvalidFilter(message)
    try:
        moment = _read_iso(value) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            return _instant(name, moment), None
        return _midnight(moment, tz), _midnight(moment + timedelta(days=1), tz)
    except (ValueError, OverflowError) as error:
        message = f"{name} takes an ISO time with an offset, or a date, not {shown(value)}"
        raise InvalidTime(message) from error


def _read_iso(text: str) -> date | datetime:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)


def _instant(name: str, moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        message = f"the time for {name} needs a zone: {moment.isoformat()}"
        raise InvalidTime(message)
    return moment.astimezone(UTC)


def _midnight(day: date, tz: tzinfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=tz).astimezone(UTC)


def decimal_of(number: float) -> Decimal:
    """The decimal number that ``number`` is written as, which is what JSON stores of it."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def any_case(text: str) -> str:
    r"""A regular expression that finds ``text`` literally, whether letters are small or capital.

    Two letters are the same here when each is the only other form of the other: ``é`` and ``É``,
    ``Ａ`` and ``ａ``; ``ß``, ``İ`` and ``ς`` only equal themselves. The pattern holds nothing but
    ``[…]`` around ``\U`` escapes: Python and PostgreSQL read it alike, and no locale has a say.
    """
    return "".join(f"[{''.join(map(_escaped, _forms(character)))}]" for character in text)


def _forms(character: str) -> Sequence[str]:
    small, capital = character.lower(), character.upper()
    single = len(small) == len(capital) == 1 and character in (small, capital)
    if single and small.upper() == capital and capital.lower() == small:
        return sorted({small, capital})
    return (character,)


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"
