"""A store opens while its embedder is down; the embedder is held against the record later."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_manage.bootstrap import Parts
from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_server import Role
from memory_tool.bootstrap import open_tool
from memory_tool.errors import SpaceMismatch, Unavailable
from memory_tool.index_jobs.backfill import Backfill
from memory_tool.settings import load_settings
from memory_tool.tool import MemoryTool
from tests.contract.embedding_server import EmbeddingServer, Reply, Request, refusal
from tests.services.ports import unused_port
from tests.services.postgres import Database

LONG = "每次会议之后，the notes were sent to 47 people. " * 100
PATIENCE_SECONDS = 60.0


def down(_request: Request) -> Reply:
    """The answer of a server that starts."""
    return refusal(503, "starting")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """A server that is down, so far; a model of 64 numbers that no card knows."""
    with EmbeddingServer(dimension=64) as server:
        server.behaviour = down
        yield server


def opened(database: Database, folder: Path, *, url: str, **more: object) -> MemoryTool:
    """A tool with that embedder; the test looks for gaps itself."""
    given = {
        "data_dir": folder,
        "database_url": database.conninfo(Role.APP),
        "embedder": "openai:made",
        "embedder_url": url,
        "applying": False,
        **more,
    }
    return open_tool(load_settings(given, environment={}))


def complete_all(tool: MemoryTool) -> None:
    """Give every memory its vector, as soon as the embedder is tried again."""
    gaps = tool.stores.gaps
    assert gaps is not None
    end = time.monotonic() + PATIENCE_SECONDS
    while gaps.without_vectors(10):
        assert time.monotonic() < end, "the vectors never came"
        if not Backfill(gaps, tool.complete).run():
            time.sleep(0.1)


def test_a_new_store_takes_memories_before_its_space_is_known(
    database: Database, tmp_path: Path, server: EmbeddingServer
) -> None:
    """All that starts together must not have to start in order; nothing is lost meanwhile."""
    with opened(database, tmp_path, url=server.base_url) as tool:
        assert "not reached" in tool.where["embedder"]
        mine = MemoryManage(Parts(tool=tool)).scoped(user_id="u")
        short = mine.add("the blue kettle whistles")
        assert short.results[0].stores["vector"] == "none"
        mine.add(LONG)
        for _ in range(2):
            answer = mine.search("kettle")
            assert [item.id for item in answer] == [short.id]
            assert "vector" in {note.part for note in answer.degraded}
            assert tool.apply_now()
        assert tool.stores.spaces.active_space() is None
        with pytest.raises(Unavailable):
            mine.add("by the caller", embedding=[1.0] * 64, space="made/64")

        server.behaviour = server.embed
        complete_all(tool)
        recorded = tool.stores.spaces.active_space()
        assert recorded is not None
        assert recorded.name == "made/64"
        for _ in range(2):
            found = mine.search("the blue kettle whistles", mode="vector", limit=1)
            assert [item.id for item in found] == [short.id]
            assert found.degraded == ()
            assert tool.apply_now()


def test_a_recorded_store_opens_with_nobody_listening(
    database: Database, tmp_path: Path, server: EmbeddingServer
) -> None:
    """A worker needs no model, and an outage must not become one of all that restart in it."""
    server.behaviour = server.embed
    with opened(database, tmp_path, url=server.base_url) as tool:
        mine = MemoryManage(Parts(tool=tool)).scoped(user_id="u")
        first = mine.add("the blue kettle whistles").id
    with opened(database, tmp_path, url=f"http://127.0.0.1:{unused_port()}/v1") as tool:
        assert tool.where["embedder"] == "made/64"
        assert tool.space.dimension == 64
        mine = MemoryManage(Parts(tool=tool)).scoped(user_id="u")
        assert tool.apply_now()
        assert [item.id for item in mine.search("kettle")] == [first]
        assert mine.add("the red kite").results[0].stores["vector"] == "none"
        given = mine.add("by the caller", embedding=[1.0] * 64, space="made/64")
        assert given.results[0].stores["vector"] != "none"


def test_an_embedder_of_another_space_is_refused_when_it_is_back(
    database: Database, tmp_path: Path, server: EmbeddingServer
) -> None:
    """It could not be held against the record when the store was opened, so it is now."""
    with opened(database, tmp_path, url="", embedder="hashing") as tool:
        MemoryManage(Parts(tool=tool)).add("the blue kettle whistles", user_id="u")
    with opened(database, tmp_path, url=server.base_url) as tool:
        mine = MemoryManage(Parts(tool=tool)).scoped(user_id="u")
        server.behaviour = server.embed
        with pytest.raises(SpaceMismatch, match="made/64"):
            mine.add("the red kite")
        answer = mine.search("kettle")
        assert len(answer) == 1
        assert any("made/64" in note.reason for note in answer.degraded)
        assert tool.health().stores["embedder"].startswith("SpaceMismatch")
