"""The options of a search or a listing as a filter, times and zone. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory_tool.errors import InputError
from memory_tool.filters import all_of, parse_filter
from memory_tool.query import Filter
from memory_tool.validation import memory_type_of


def zone_of(name: object, default: str) -> tzinfo:
    """The zone of bare dates: the one named, else the setting's, else the machine's.

    Raises:
        InputError: There is no such zone.
    """
    chosen = name or default
    if not chosen:
        return MachineZone()
    try:
        return ZoneInfo(str(chosen))
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = f"{chosen!r} is no known time zone"
        raise InputError(message) from error


class MachineZone(tzinfo):
    """The zone of the machine with its summer time: an offset of today would be wrong in winter."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """The offset that the machine's rules give for that local time."""
        local = (moment or datetime.now(UTC)).replace(tzinfo=None)
        return local - datetime.fromtimestamp(local.timestamp(), UTC).replace(tzinfo=None)

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Not told apart from the offset."""
        del moment
        return None

    def tzname(self, moment: datetime | None) -> str:
        """What it is."""
        del moment
        return "the machine's zone"

    def fromutc(self, moment: datetime) -> datetime:
        """The local time of a moment."""
        local = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006 - local is meant
        return local.replace(tzinfo=self)


def option_filter(options: Mapping[str, Any], tz: tzinfo) -> Filter:
    """What ``since``, ``until``, ``types`` and ``tags`` ask for. A bare date is a whole day."""
    conditions: list[Filter] = []
    for name, operator in (("since", "gte"), ("until", "lte")):
        value = options.get(name)
        if value is not None:
            conditions.append(parse_filter({"event_time": {operator: _when(value)}}, tz=tz))
    if options.get("types"):
        types = [memory_type_of(kind).value for kind in _texts(options["types"], "types")]
        conditions.append(parse_filter({"type": {"in": types}}, tz=tz))
    if options.get("tags"):
        conditions.append(parse_filter({"tags": {"in": _texts(options["tags"], "tags")}}, tz=tz))
    return all_of(*conditions)


def _when(value: object) -> object:
    is_bare = isinstance(value, date) and not isinstance(value, datetime)
    return value.isoformat() if is_bare and isinstance(value, date) else value


def _texts(value: object, what: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        message = f"{what} must be a list of texts, not {type(value).__name__}"
        raise InputError(message)
    return list(value)


def checked_limit(value: object, *, largest: int) -> int:
    """A number of results between 1 and ``largest``.

    Raises:
        InputError: It isn't.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        message = f"limit is a whole number from 1 to {largest:,}, not {value!r}"
        raise InputError(message)
    return value
