"""Opaque cursors: where a page ended, bound to the question that it belongs to. Pure."""

import base64
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from memory_tool.errors import InvalidCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCursor:
    """The next page of a search: how many results were shown, and the time they were ranked at."""

    offset: int
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
    return _write([question, cursor.offset, cursor.now.isoformat()])


def read_search_cursor(question: str, text: str) -> SearchCursor:
    """The cursor of this question.

    Raises:
        InvalidCursor: It belongs to another question, or is none of ours.
    """
    offset, now = _read(question, text)
    try:
        return SearchCursor(offset=int(str(offset)), now=datetime.fromisoformat(str(now)))
    except ValueError as error:
        raise InvalidCursor from error


def write_list_cursor(question: str, cursor: ListCursor) -> str:
    """The cursor as a text."""
    return _write([question, cursor.event_time.isoformat(), cursor.memory_id])


def read_list_cursor(question: str, text: str) -> ListCursor:
    """The cursor of this listing.

    Raises:
        InvalidCursor: It belongs to another listing, or is none of ours.
    """
    event_time, memory_id = _read(question, text)
    try:
        return ListCursor(
            event_time=datetime.fromisoformat(str(event_time)), memory_id=str(memory_id)
        )
    except ValueError as error:
        raise InvalidCursor from error


def _write(parts: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _read(question: str, text: str) -> tuple[object, object]:
    try:
        padded = text + "=" * (-len(text) % 4)
        asked, first, second = json.loads(base64.urlsafe_b64decode(padded.encode()))
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidCursor from error
    if asked != question:
        raise InvalidCursor
    return first, second
