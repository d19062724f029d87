"""Cursors work for their own question only."""

from datetime import UTC, datetime

import pytest

from memory_manage.cursors import (
    ListCursor,
    SearchCursor,
    fingerprint,
    read_list_cursor,
    read_search_cursor,
    write_list_cursor,
    write_search_cursor,
)
from memory_tool.errors import InvalidCursor

NOW = datetime(2025, 7, 1, 12, tzinfo=UTC)


def test_a_search_cursor_comes_back() -> None:
    """The next page is ranked at the same moment as the first."""
    cursor = SearchCursor(offset=10, now=NOW, reach=100)

    assert read_search_cursor("q", write_search_cursor("q", cursor)) == cursor


def test_a_list_cursor_comes_back() -> None:
    """It holds the last item seen, not an offset that new memories would shift."""
    cursor = ListCursor(event_time=NOW, memory_id="0" * 32)

    assert read_list_cursor("q", write_list_cursor("q", cursor)) == cursor


@pytest.mark.parametrize("text", ["", "nonsense", "e30", "WzEsMiwzXQ", "💥"])
def test_a_made_up_cursor_is_refused(text: str) -> None:
    """Not every text is a page."""
    with pytest.raises(InvalidCursor):
        read_search_cursor("q", text)


def test_a_cursor_of_another_question_is_refused() -> None:
    """Its offset would skip other results."""
    text = write_search_cursor(fingerprint("a"), SearchCursor(offset=5, now=NOW, reach=100))

    with pytest.raises(InvalidCursor):
        read_search_cursor(fingerprint("b"), text)
