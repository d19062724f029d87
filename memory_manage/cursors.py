"""Opaque cursors: where a page ended, bound to the question that it belongs to. Pure."""

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory_tool.errors import InvalidCursor, InvalidTime, NotFound
from memory_tool.model import MemoryId
from memory_tool.validation import check_time, checked_id

LIMIT_MAX: Final = 1000
"""Most results of one page of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCursor:
    """The next page of a search.

    Attributes:
        offset: How many results were shown.
        reach: The limit of the first page. It sets how deep the arms search, and every page has to
            be cut from the same candidates.
        now: The time they were ranked at.
    """

    offset: int
    reach: int
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCursor:
    """The next page of a listing: the event time and id of the last item shown."""

    event_time: datetime
    memory_id: str


def fingerprint(*parts: object) -> str:
    """What tells one question from another: its words, scope, filters and options."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_search_cursor(question: str, cursor: SearchCursor) -> str:
    """The cursor as a text."""
    return _write([question, cursor.offset, cursor.reach, cursor.now.isoformat()])


def read_search_cursor(question: str, text: str) -> SearchCursor:
    """The cursor of this question.

    Raises:
        InvalidCursor: It belongs to another question, or is none of ours.
    """
    match _read(question, text):
        case [int(offset), int(reach), str(now)] if offset > 0 and 0 < reach <= LIMIT_MAX:
            return SearchCursor(offset=offset, reach=reach, now=_time(now))
    raise InvalidCursor


def write_list_cursor(question: str, cursor: ListCursor) -> str:
    """The cursor as a text."""
    return _write([question, cursor.event_time.isoformat(), cursor.memory_id])


def read_list_cursor(question: str, text: str) -> ListCursor:
    """The cursor of this listing.

    Raises:
        InvalidCursor: It belongs to another listing, or is none of ours.
    """
    match _read(question, text):
        case [str(event_time), str(memory_id)]:
            return ListCursor(event_time=_time(event_time), memory_id=_id(memory_id))
    raise InvalidCursor


def _write(parts: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _read(question: str, text: str) -> list[object]:
    try:
        padded = text + "=" * (-len(text) % 4)
        parts: list[object] = list(json.loads(base64.urlsafe_b64decode(padded.encode())))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidCursor from error
    if parts[:1] != [question]:
        raise InvalidCursor
    return parts[1:]


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        check_time(time, "the cursor")
    except (ValueError, InvalidTime) as error:
        raise InvalidCursor from error
    return time


def _id(text: str) -> MemoryId:
    try:
        return checked_id(text)
    except NotFound as error:
        raise InvalidCursor from error
