"""Degraded answers say what is missing, and no part can make them wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.errors import Degraded, Unavailable
from memory_tool.model import MemoryId, Vector
from memory_tool.port_values import KeywordQuery, Pointer
from memory_tool.query import Candidate
from tests.acceptance.asking import found, ids, statuses, texts
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database


class MoodyEmbedder(HashingEmbedder):
    """An embedder that can be down, or answer nonsense."""

    down = False
    nonsense = False

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Vectors, unless it is down or talks nonsense."""
        if self.down:
            message = "the model is out"
            raise Unavailable(message, store="embedder")
        vectors = super().embed_passages(texts)
        return np.full_like(vectors, np.nan) if self.nonsense else vectors


@dataclass(slots=True)
class LyingIndex:
    """Both kinds of index: holds everything, it says, and proposes whatever it was told to."""

    target: str
    candidates: list[Candidate] = field(default_factory=list)
    broken: bool = False
    mark: str | None = None
    remote: bool = False

    def view(self, pointer: Pointer | None = None) -> "LyingIndex":
        """Itself, unless it is broken."""
        if self.broken:
            message = "the index is out"
            raise Unavailable(message, store=self.target)
        return self

    def clock(self, ns_id: int) -> int:
        """Further than any namespace is."""
        return 10**9

    def search(
        self,
        vector: Vector | KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """The same for every question of anybody."""
        return tuple(self.candidates)

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:
        """The same."""
        return tuple(self.candidates)

    def term_documents(self, terms: Sequence[str]) -> dict[str, int]:
        """Nothing is known of any term."""
        return {}

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A memory with parts that a test may break."""

    memory: MemoryManage
    embedder: MoodyEmbedder


@pytest.fixture
def house(own_store: OwnStore) -> Iterator[House]:
    """A store with two memories and an embedder of the test's own."""
    embedder = MoodyEmbedder()
    with own_store.open(embedder=embedder) as memory:
        memory.add_many(["the red kite", "the blue kite"], user_id="u")
        yield House(memory=memory, embedder=embedder)


def test_without_an_embedder_words_still_find(house: House) -> None:
    """The answer says that meaning was left out, and the caller may insist on the whole."""
    whole = house.memory.search("red kite", user_id="u", on_degraded="raise")
    assert whole.degraded == ()
    house.embedder.down = True
    partial = house.memory.search("the red kites", user_id="u")
    assert texts(partial)[0] == "the red kite"
    assert {note.part for note in partial.degraded} == {"vector"}
    with pytest.raises(Degraded, match="vector"):
        house.memory.search("the red kites", user_id="u", on_degraded="raise")
    by_words = house.memory.search("red", user_id="u", mode="keyword", on_degraded="raise")
    assert texts(by_words) == ["the red kite"]


def test_without_an_embedder_memories_are_stored_without_a_vector(house: House) -> None:
    """A write is not lost for want of a model; it says what is missing and is found by words."""
    house.embedder.down = True
    written = house.memory.add("the green kite", user_id="u")
    assert statuses(written) == ["added"]
    assert written.results[0].stores["vector"] == "none"
    house.embedder.down = False
    assert texts(house.memory.search("green", user_id="u", mode="keyword")) == ["the green kite"]


@pytest.mark.parametrize("query", ["the yellow kite", "the green kite"])
def test_an_embedder_that_answers_nonsense_spoils_nothing(house: House, query: str) -> None:
    """NaN in a vector would make every comparison false."""
    house.embedder.nonsense = True
    house.memory.add("the green kite", user_id="u")
    answer = house.memory.search(query, user_id="u")
    assert {note.part for note in answer.degraded} == {"vector"}
    house.embedder.nonsense = False
    everything = {"the red kite", "the blue kite", "the green kite"}
    assert found(house.memory, "kite", user_id="u") == everything


def lie(database: Database, ids_: Sequence[str]) -> list[Candidate]:
    """Candidates for these memories under every number and version that they might have."""
    with database.admin() as connection:
        records = connection.execute("SELECT ns_id FROM threefold.namespace").fetchall()
    namespaces = [int(number) for (number,) in records]
    return [
        Candidate(ns_id, id_, 0, version, 1.0)
        for id_ in ids_
        for ns_id in (*namespaces, max(namespaces) + 1)
        for version in range(1, 8)
    ]


def test_no_index_can_show_what_may_not_be_seen(own_store: OwnStore, database: Database) -> None:
    """P3: a deleted, an expired or another's memory stays hidden even if both indexes are wrong."""
    vectors, keywords = LyingIndex("a vector index"), LyingIndex("a keyword index")
    with own_store.open(vector_index=vectors, keyword_index=keywords) as memory:
        kept = memory.add("kept", user_id="u").id
        deleted = memory.add("deleted", user_id="u").id
        expired = memory.add("expired", user_id="u", expires_at="2020-01-01T00:00:00Z").id
        foreign = memory.add("foreign", user_id="v").id
        memory.delete(deleted, user_id="u")
        lies = lie(database, [kept, deleted, expired, foreign, "0" * 32])
        vectors.candidates, keywords.candidates = lies, lies
        assert found(memory, "anything", user_id="u") == {"kept"}
        assert found(memory, "anything", user_id="v") == {"foreign"}
        assert found(memory, "anything", user_id="u", filters={"pinned": True}) == set()


def test_an_outdated_hit_is_dropped(own_store: OwnStore, database: Database) -> None:
    """A hit of an older version scored a text that is no longer there."""
    vectors, keywords = LyingIndex("a vector index"), LyingIndex("a keyword index")
    with own_store.open(vector_index=vectors, keyword_index=keywords) as memory:
        id_ = memory.add("the old text", user_id="u").id
        old = [item for item in lie(database, [id_]) if item.version == 1]
        vectors.candidates, keywords.candidates = old, old
        assert found(memory, "text", user_id="u") == {"the old text"}
        memory.update(id_, content="a new text", user_id="u")
        assert found(memory, "text", user_id="u") == set()


@pytest.mark.parametrize("broken", ["vector", "keyword"])
def test_a_broken_index_is_replaced_by_the_truth(own_store: OwnStore, broken: str) -> None:
    """PostgreSQL answers in its place, and the answer says so."""
    index = LyingIndex(f"a {broken} index", broken=True)
    given = {f"{broken}_index": index}
    with own_store.open(**given) as memory:
        wanted = memory.add("the red kite", user_id="u").id
        memory.add("a boat", user_id="u")
        for mode in (broken, "hybrid"):
            answer = memory.search("red kite", user_id="u", mode=mode, limit=1)  # type: ignore[arg-type] # a mode by name
            assert ids(answer) == [wanted]
            assert {note.part for note in answer.degraded} == {broken}
        assert memory.health().stores[f"{broken} index"].startswith("Unavailable")
        assert not memory.health().ok
