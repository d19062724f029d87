"""MemoryTool alone: the hands without the brain."""

from collections.abc import Iterator
from typing import Any

import pytest

from memory_tool.bootstrap import open_tool
from memory_tool.errors import InputError, InvalidFilter, InvalidText, ScopeRequired
from memory_tool.settings import load_settings
from memory_tool.tool import MemoryTool
from tests.acceptance.opening import OwnStore


@pytest.fixture
def tool(own_store: OwnStore) -> Iterator[MemoryTool]:
    """A tool on a store of its own."""
    settings = load_settings(
        {
            "data_dir": own_store.data_dir(),
            "database_url": own_store.database_url,
            "embedder": "hashing",
        }
    )
    with open_tool(settings) as tool:
        yield tool


def test_what_is_stored_is_retrieved(tool: MemoryTool) -> None:
    """Scope words stand in the metadata of a write and in the filters of a read."""
    scope = {"user_id": "anna", "agent_id": "a1"}
    kept = tool.store_memory("preference", "Anna likes blue products", {**scope, "room": 5})
    tool.store_memory(None, "Ben likes red products", {"user_id": "ben"})
    (found,) = tool.retrieve_memories("blue products", {"user_id": "anna", "room": {"gte": 5}})
    assert (found.memory.id, found.memory.type) == (kept.id, "preference")
    assert found.memory.metadata == {"room": 5}
    assert tool.retrieve_memories("blue products", {"user_id": "anna", "room": 6}) == ()


def test_the_most_relevant_come_first(tool: MemoryTool) -> None:
    """Neither arm alone decides: words and meaning are fused before the best are cut off."""
    padding = " ".join(f"filler {number}" for number in range(120))
    wanted = tool.store_memory(None, f"zanzibar clause {padding}", {"user_id": "u"}).id
    for number in range(20):
        tool.store_memory(None, f"a clause, number {number}", {"user_id": "u"})
    found = tool.retrieve_memories("zanzibar clause", {"user_id": "u"}, limit=21)
    relevances = [each.hit.relevance for each in found]
    assert relevances == sorted(relevances, reverse=True)
    assert wanted in {each.memory.id for each in found}


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (None, ScopeRequired),
        ({"room": 5}, ScopeRequired),
        ({"user_id": 5}, InputError),
        ({"user_id": "anna", "x": float("nan")}, InputError),
    ],
)
def test_a_write_that_cannot_be_is_refused(
    tool: MemoryTool, metadata: dict[str, Any] | None, error: type[Exception]
) -> None:
    """The hands check for themselves, whoever calls them."""
    with pytest.raises(error):
        tool.store_memory(None, "a text", metadata)


def test_a_question_that_cannot_be_is_refused(tool: MemoryTool) -> None:
    """The same for reads."""
    with pytest.raises(ScopeRequired):
        tool.retrieve_memories("a text")
    with pytest.raises(InvalidFilter):
        tool.retrieve_memories("a text", {"user_id": "anna", "room": {"above": 5}})
    for query in ("", "\0", "\ud83d"):
        with pytest.raises(InvalidText):
            tool.retrieve_memories(query, {"user_id": "anna"})
    with pytest.raises(InputError):
        tool.store_memory("rumour", "a text", {"user_id": "anna"})
