"""Messages as memories."""

from datetime import UTC, datetime

import pytest

from memory_manage.conversation import Skipped, messages_to_memories
from memory_tool.errors import InputError
from memory_tool.model import MemoryType, NewMemory


def stored(item: NewMemory | Skipped) -> NewMemory:
    """The memory of a message that is stored."""
    assert isinstance(item, NewMemory)
    return item


def test_each_message_keeps_its_place_role_name_and_time() -> None:
    """The turn before and the turn after have to be found later."""
    found = messages_to_memories(
        [
            {
                "role": "user",
                "name": "Ada",
                "content": "早上好",
                "timestamp": "2025-07-01T08:00:00+08:00",
            },
            {"role": "assistant", "content": "Good morning"},
        ],
        {"run_id": "s7"},
    )

    first, second = map(stored, found)
    assert first.turn is not None
    assert (first.turn.conversation_id, first.turn.position) == ("s7", 0)
    assert (first.turn.role, first.turn.name) == ("user", "Ada")
    assert first.occurred_at == datetime(2025, 7, 1, tzinfo=UTC)
    assert first.type is MemoryType.CONVERSATION
    assert second.turn is not None
    assert second.turn.position == 1


def test_a_conversation_without_a_name_gets_one() -> None:
    """Two anonymous conversations must not run into each other."""
    messages = [{"role": "user", "content": "hello"}]
    one = stored(messages_to_memories(messages, {})[0])
    other = stored(messages_to_memories(messages, {})[0])

    assert one.turn is not None
    assert other.turn is not None
    assert one.turn.conversation_id != other.turn.conversation_id


def test_tool_messages_are_observations_with_their_outcome() -> None:
    """What a tool returned is no one's opinion."""
    message = {"role": "tool", "name": "search", "tool_call_id": "c1", "content": "3 flights"}
    found = stored(messages_to_memories([message], {})[0])

    assert found.type is MemoryType.OBSERVATION
    assert found.metadata == {"tool": "search", "tool_call_id": "c1"}


def test_tool_messages_can_be_left_out_and_empty_ones_are_reported() -> None:
    """Nothing disappears without a word; positions count every message."""
    found = messages_to_memories(
        [
            {"role": "tool", "content": "noise"},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": None},
            {"role": "user", "content": "kept"},
        ],
        {"skip_tools": True},
    )

    assert [type(item) for item in found] == [Skipped, Skipped, Skipped, NewMemory]
    last = stored(found[3])
    assert last.turn is not None
    assert last.turn.position == 3


def test_text_parts_are_joined_and_others_reported() -> None:
    """A picture can't be remembered as text, and must not vanish silently."""
    message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {}},
            {"type": "text", "text": "here"},
        ],
    }
    found = stored(messages_to_memories([message], {})[0])

    assert found.content == "look\nhere"
    assert found.metadata == {"left_out": "image_url"}


@pytest.mark.parametrize("message", [{"content": "no role"}, {"role": "user", "content": 5}])
def test_a_malformed_message_is_refused(message: dict[str, object]) -> None:
    """A typo in a message must not store half a conversation."""
    with pytest.raises(InputError):
        messages_to_memories([message], {})
