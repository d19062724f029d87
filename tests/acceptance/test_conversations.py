"""Conversations: one memory for each message, in its place, with its role and time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import InputError, InvalidTime
from memory_tool.model import Json
from tests.acceptance.asking import statuses, texts

START: Final = datetime(2025, 7, 1, 9, tzinfo=UTC)
IMAGE: Final[Mapping[str, Json]] = {"type": "image_url", "image_url": {"url": "x"}}
TWO_TEXTS: Final[tuple[Json, ...]] = ({"type": "text", "text": "And"}, "this:")
DIALOGUE: Final[tuple[Mapping[str, Json], ...]] = (
    {
        "role": "user",
        "content": "我们把会议改到周三吧",
        "name": "张伟",
        "timestamp": "2025-07-01T09:00:00Z",
    },
    {"role": "assistant", "content": "好的"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c1"}]},
    {"role": "tool", "content": "moved", "tool_call_id": "c1", "name": "calendar"},
    {"role": "user", "content": TWO_TEXTS},
    {"role": "user", "content": [IMAGE]},
    {"role": "user", "content": ["look", IMAGE]},
    {"role": "assistant", "content": "好的"},
)


def test_each_message_is_a_memory_in_its_place(mine: MemoryManage) -> None:
    """Position, role, name and time let the turn before and after be found."""
    written = mine.add(DIALOGUE, run_id="s7")
    added, skipped = "added", "skipped"
    expected = [added, added, skipped, added, added, skipped, added, added]
    assert statuses(written) == expected
    stored = sorted(mine.get_all(), key=lambda item: item.position or 0)
    assert [item.position for item in stored] == [0, 1, 3, 4, 6, 7]
    assert {item.conversation_id for item in stored} == {item.run_id for item in stored} == {"s7"}
    first = stored[0]
    assert (first.role, first.name, first.occurred_at) == ("user", "张伟", START)
    assert [item.memory for item in stored][3:5] == ["And\nthis:", "look"]


def test_a_second_yes_is_kept(mine: MemoryManage) -> None:
    """What is a duplicate among notes is another turn in a dialogue."""
    mine.add(DIALOGUE, conversation_id="c")
    mine.add("好的", conversation_id="ignored for a note")
    assert texts(mine.get_all()).count("好的") == 3


def test_a_tool_message_is_an_observation(mine: MemoryManage) -> None:
    """What a tool said is kept apart from what people said, with its outcome."""
    mine.add(DIALOGUE, conversation_id="c")
    (tool,) = mine.get_all(types=["observation"])
    assert (tool.memory, tool.metadata) == ("moved", {"tool_call_id": "c1", "tool": "calendar"})
    assert {item.type for item in mine.get_all()} == {"conversation", "observation"}


def test_tool_messages_may_be_left_out(memory: MemoryManage, user: str) -> None:
    """They are reported as skipped, and still count as positions."""
    written = memory.add(DIALOGUE, user_id=user, conversation_id="c", skip_tools=True)
    assert written.results[3].status == "skipped"
    assert written.results[3].error == "a tool message"
    assert len(memory.get_all(user_id=user, types=["observation"])) == 0


def test_what_cannot_be_stored_of_a_message_is_told(mine: MemoryManage) -> None:
    """An image is not text: a message of nothing else is skipped, beside text it is noted."""
    written = mine.add(DIALOGUE, conversation_id="c")
    assert written.results[5].error == "no text (image_url)"
    assert mine.get(written.results[6].id or "").metadata == {"left_out": "image_url"}


def test_a_conversation_goes_on_where_it_ended(mine: MemoryManage) -> None:
    """Each session of an agent adds to what was said before, also what it says out of order."""
    for number in range(3):
        mine.add([{"role": "user", "content": f"line {number}"}], run_id="s7")
    assert [item.position for item in mine.get_all()] == [2, 1, 0]
    older = START - timedelta(days=400)
    mine.add([{"role": "user", "content": "from before", "timestamp": older}], run_id="s7")
    mine.add([{"role": "user", "content": "from now"}], run_id="s7")
    assert {item.memory: item.position for item in mine.get_all()} == {
        "line 0": 0,
        "line 1": 1,
        "line 2": 2,
        "from before": 3,
        "from now": 4,
    }


def test_a_long_conversation_goes_on_whatever_its_clock_says(mine: MemoryManage) -> None:
    """More messages than one page, told by a clock that runs backwards: positions still count."""
    lines = [
        {"role": "user", "content": f"line {n}", "timestamp": START - timedelta(minutes=n)}
        for n in range(130)
    ]
    mine.add(lines, conversation_id="c")
    mine.add([{"role": "user", "content": "the last"}], conversation_id="c")
    positions = {item.position for item in mine.get_all(limit=1000)}
    assert positions == set(range(131))


def test_the_turn_after_a_hit_can_be_found(mine: MemoryManage) -> None:
    """A remark is often understood by what was answered."""
    mine.add(DIALOGUE, conversation_id="c")
    (hit,) = mine.search("会议改到周三", limit=1)
    place = {"conversation_id": hit.conversation_id, "position": (hit.position or 0) + 1}
    assert texts(mine.get_all(filters=place)) == ["好的"]


def test_conversations_stay_apart(memory: MemoryManage, user: str) -> None:
    """One without a name gets a name of its own; equal names of two users are two conversations."""
    lines = [{"role": "user", "content": "hello"}]
    first = memory.add(lines, user_id=user).id
    second = memory.add(lines, user_id=user).id
    one, two = (memory.get(id_, user_id=user).conversation_id for id_ in (first, second))
    assert one != two
    memory.add(lines, user_id=user, conversation_id="c")
    memory.add(lines, user_id=f"{user}-b", conversation_id="c")
    assert len(memory.get_all(user_id=user, filters={"conversation_id": "c"})) == 1


def test_a_single_message_is_a_conversation_of_one(mine: MemoryManage) -> None:
    """A message need not come in a list."""
    written = mine.add({"role": "user", "content": "just this"}, run_id="s")
    assert mine.get(written.id).role == "user"
    assert statuses(mine.add([])) == []


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"content": "who says that?"}, InputError),
        ({"role": "", "content": "x"}, InputError),
        ({"role": "user", "content": 5}, InputError),
        ({"role": "user", "content": "x", "timestamp": "2025-07-01T09:00:00"}, InvalidTime),
    ],
)
def test_a_malformed_message_stops_the_whole_call(
    mine: MemoryManage, message: Mapping[str, Json], error: type[Exception]
) -> None:
    """Half a dialogue is worse than none: nothing is stored."""
    with pytest.raises(error):
        mine.add([{"role": "user", "content": "a good one"}, message])
    assert len(mine.get_all()) == 0


def test_a_message_of_characters_that_cannot_be_stored_fails_alone(mine: MemoryManage) -> None:
    """A failed item never hides among good ones."""
    written = mine.add(
        [
            {"role": "user", "content": "a\0b"},
            {"role": "user", "content": "a good one"},
        ]
    )
    assert statuses(written) == ["failed", "added"]
    assert texts(mine.get_all()) == ["a good one"]


def test_a_key_or_a_vector_belongs_to_one_message(mine: MemoryManage) -> None:
    """With a key for all of them each message would replace the one before."""
    lines = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    with pytest.raises(InputError):
        mine.add(lines, key="k")
    with pytest.raises(InputError):
        mine.add(lines, embedding=[1.0] * 64, space="hashing/64")
    assert len(mine.get_all()) == 0
