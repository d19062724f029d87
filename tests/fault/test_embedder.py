"""The embedding server is away, or hangs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

import pytest

from memory_tool.index_jobs import agenda
from tests.acceptance.asking import texts
from tests.contract.embedding_server import EmbeddingServer, Reply, Request, refusal
from tests.fault.outage import LONG, Outage, outage_of
from tests.fault.traffic import QUESTION, USER

Opener: TypeAlias = Callable[[str], AbstractContextManager[Outage]]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """A server that embeds by hashing."""
    with EmbeddingServer(dimension=64) as server:
        yield server


@pytest.fixture
def opened(
    folder: Path,
    database_url: str,
    server: EmbeddingServer,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Opener:
    """Opens a memory whose embedder is that server, and who looks for open jobs each second."""
    monkeypatch.setattr(agenda, "OFFER_SECONDS", 1.0)
    monkeypatch.setattr(agenda, "LOOK_SECONDS", 1.0)

    def open_it(name: str) -> AbstractContextManager[Outage]:
        return outage_of(
            name,
            record_property,
            data_dir=folder,
            database_url=database_url,
            embedder="openai:made",
            embedder_url=server.base_url,
            embed_cache=0,
            # A memory that waits for its vector is found by its words.
            modes=("keyword", "hybrid"),
        )

    return open_it


def missing_from_vectors(outage: Outage) -> int:
    """How many memories can't be found by their vectors yet."""
    answer = outage.memory.search(QUESTION, user_id=USER, mode="vector", limit=1000, threshold=0.0)
    return len(outage.journal.living) - len(texts(answer))


@LONG
def test_an_embedder_that_refuses(opened: Opener, server: EmbeddingServer) -> None:
    """Words find all the same; memories get their vectors when it is back, without any call."""
    with opened("embedder answers 503") as outage:
        outage.traffic.let_pass(1.0)
        server.behaviour = lambda _request: refusal(503, "overloaded")
        outage.traffic.let_pass(3.0)
        answer = outage.memory.search(QUESTION, user_id=USER, limit=1000, threshold=0.0)
        assert {note.part for note in answer.degraded} == {"vector"}
        assert set(texts(answer)) >= outage.journal.living
        server.behaviour = server.embed
        outage.traffic.pause()
        outage.until(lambda: missing_from_vectors(outage) == 0)
        outage.end()


@LONG
def test_an_embedder_that_hangs(opened: Opener, server: EmbeddingServer) -> None:
    """After three calls nobody waits for it any more, neither a search nor a write."""
    released = threading.Event()

    def hang(request: Request) -> Reply:
        released.wait()
        return server.embed(request)

    with opened("embedder hangs") as outage:
        outage.traffic.let_pass(1.0)
        server.behaviour = hang
        try:
            outage.until(lambda: outage.went("embedder", "down"))
            outage.traffic.let_pass(1.0, writes=10)
        finally:
            server.behaviour = server.embed
            released.set()
        outage.traffic.pause()
        outage.until(lambda: missing_from_vectors(outage) == 0)
        outage.end()
