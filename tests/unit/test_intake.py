"""Records and messages are told apart, and nothing that they say is lost silently."""

import pytest

from memory_manage.intake import is_record, record_memory, time_of
from memory_tool.errors import InputError, InvalidTime
from memory_tool.model import Turn


@pytest.mark.parametrize(
    "content",
    [
        {"content": "a"},
        {"role": "user", "content": "a", "conversation_id": "c", "tags": ["x"]},
        {"role": "user", "content": "a", "metadata": {"x": 1}},
    ],
)
def test_a_record_says_more_than_a_message(content: dict[str, object]) -> None:
    """A memory of a dialogue has a role too; read as a message it lost its tags."""
    assert is_record(content)


@pytest.mark.parametrize("name", [{}, {"name": "Ada"}])
def test_a_message_has_a_role_and_no_more(name: dict[str, str]) -> None:
    """It becomes a conversation of one."""
    assert not is_record({"role": "user", "content": "a", **name})


def test_a_record_keeps_its_place_in_the_dialogue() -> None:
    """As it was exported."""
    record = {"content": "a", "conversation_id": "c", "position": 4, "role": "assistant"}

    assert record_memory(record, {}).turn == Turn(
        conversation_id="c", position=4, role="assistant", name=None
    )


@pytest.mark.parametrize("name", ["role", "position", "name"])
def test_a_place_without_a_dialogue_is_refused(name: str) -> None:
    """It was dropped without a word."""
    with pytest.raises(InputError, match="conversation_id"):
        record_memory({"content": "a", name: 1}, {})


def test_a_time_without_a_zone_is_answered_with_one_that_has_it() -> None:
    """Whoever typed a date sees what to type instead, not how Python writes it."""
    with pytest.raises(InvalidTime, match=r"such as 2025-03-01T00:00:00\+00:00$"):
        time_of("2025-03-01", "occurred_at")
