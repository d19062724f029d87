"""Filling a space: batch by batch, pass after pass, whatever a model refuses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.errors import InvalidEmbedding, Unavailable
from memory_tool.index_jobs.reembed_filling import Filling
from memory_tool.model import Vector
from memory_tool.space_ports import VectorFiller
from memory_tool.space_values import FilledChunk, Unembedded


@dataclass(slots=True)
class Texts(VectorFiller):
    """Texts by namespace; those that have a vector; the namespaces that were looked at."""

    texts: dict[int, list[str]]
    filled: set[str] = field(default_factory=set)
    looked: list[list[int]] = field(default_factory=list)

    def clocks(self) -> Mapping[int, int]:
        """As many numbers as texts."""
        return {ns_id: len(texts) for ns_id, texts in self.texts.items()}

    def count_missing(self, space: int) -> tuple[int, int]:
        """Nobody asks."""
        raise NotImplementedError

    def missing(self, space: int, ns_ids: Sequence[int]) -> Iterator[Unembedded]:
        """A memory of one chunk for each text."""
        self.looked.append(list(ns_ids))
        for ns_id in ns_ids:
            for text in self.texts[ns_id]:
                if text not in self.filled:
                    yield Unembedded(
                        ns_id=ns_id,
                        memory_id=text,
                        content=text,
                        content_hash=b"",
                        chunks=((0, 0, len(text)),),
                    )

    def fill(self, space: int, ns_id: int, *, chunks: Sequence[FilledChunk]) -> int:
        """Remember which."""
        self.filled.update(chunk.memory_id for chunk in chunks)
        return len(chunks)

    def settle(self, ns_id: int) -> None:
        """Nobody asks."""
        raise NotImplementedError


class Choosy(HashingEmbedder):
    """Refuses some texts, or everything."""

    down = False
    calls = 0

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Nothing at all where one text is bad."""
        self.calls += 1
        if self.down:
            raise Unavailable
        if any("bad" in text for text in texts):
            raise InvalidEmbedding
        return super().embed_passages(texts)


def test_one_bad_text_costs_no_other_its_vector() -> None:
    """It is told apart from what is merely missing: the rest can be switched to."""
    texts = Texts({1: ["a", "bad", "b"], 2: ["c"]})
    done: list[int] = []
    filling = Filling(texts, Choosy(), space=2, batch=4)
    assert filling.run(lambda: True, done.append)
    assert texts.filled == {"a", "b", "c"}
    assert done == [3]
    assert filling.run(lambda: True, done.append)
    assert filling.refused == 1


def test_a_further_pass_looks_at_what_was_written_since() -> None:
    """Most namespaces of a store don't change within hours."""
    texts = Texts({1: ["a"], 2: ["b"]})
    filling = Filling(texts, Choosy(), space=2, batch=4)
    filling.run(lambda: True, lambda _done: None)
    texts.texts[2].append("c")
    filling.run(lambda: True, lambda _done: None)
    filling.run(lambda: True, lambda _done: None)
    assert texts.filled == {"a", "b", "c"}
    assert texts.looked == [[1, 2], [2], []]


def test_what_was_made_stays_when_it_stops() -> None:
    """It is asked before each batch, and goes on behind it the next time."""
    texts = Texts({1: [f"text {n}" for n in range(10)]})
    embedder = Choosy()
    left = iter([True, True, False])
    assert not Filling(texts, embedder, space=2, batch=3).run(
        lambda: next(left), lambda _done: None
    )
    assert len(texts.filled) == 6
    embedder.down = True
    with pytest.raises(Unavailable):
        Filling(texts, embedder, space=2, batch=3).run(lambda: True, lambda _done: None)
    embedder.down = False
    assert Filling(texts, embedder, space=2, batch=3).run(lambda: True, lambda _done: None)
    assert len(texts.filled) == 10
    assert embedder.calls == 5
