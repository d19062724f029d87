"""The cache in front of an embedder: what it keeps, how long, and what it asks."""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.embedding_cache import DAY_SECONDS, CachedEmbedder
from memory_tool.errors import InvalidEmbedding, Unavailable
from memory_tool.model import Vector


class CountingEmbedder(HashingEmbedder):
    """Notes which texts it was asked for, one tuple for each call."""

    def __init__(self) -> None:
        super().__init__(dimension=8)
        self.calls: list[tuple[str, ...]] = []

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """As its parent; the text ``down`` is one that it can't reach."""
        self.calls.append(tuple(texts))
        if "down" in texts:
            raise Unavailable(store="embedder")
        return super().embed_passages(texts)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def model() -> CountingEmbedder:
    """The embedder that is asked."""
    return CountingEmbedder()


@pytest.fixture
def clock() -> Clock:
    """The time of the cache."""
    return Clock()


def test_a_text_is_embedded_once(model: CountingEmbedder) -> None:
    """A model takes milliseconds, a look-up microseconds."""
    cached = CachedEmbedder(model)
    first = cached.embed_passages(["a", "b"])
    second = cached.embed_passages(["b", "c", "a"])
    assert model.calls == [("a", "b"), ("c",)]
    assert np.array_equal(second[[2, 0]], first)
    assert (cached.hits, cached.misses) == (2, 3)


def test_a_text_that_comes_twice_in_a_call_is_embedded_once(model: CountingEmbedder) -> None:
    """Conversations are full of the same short answers."""
    cached = CachedEmbedder(model, size=0)
    rows = cached.embed_passages(["ok", "no", "ok"])
    assert model.calls == [("ok", "no")]
    assert np.array_equal(rows[0], rows[2])
    assert (cached.hits, cached.misses) == (1, 2)


def test_questions_and_passages_are_kept_apart(model: CountingEmbedder) -> None:
    """Most models embed the same words differently as a question."""
    cached = CachedEmbedder(model)
    cached.embed_passages(["a"])
    cached.embed_queries(["a"])
    assert cached.misses == 2


def test_misses_go_to_the_model_in_batches(model: CountingEmbedder) -> None:
    """One giant call would need memory for all texts at once, and fail as a whole."""
    cached = CachedEmbedder(model, batch=32)
    texts = [str(number) for number in range(70)]
    rows = cached.embed_passages(texts)
    assert [len(call) for call in model.calls] == [32, 32, 6]
    assert np.array_equal(rows, model.embed_passages(texts))


def test_batches_before_a_failure_are_kept(model: CountingEmbedder) -> None:
    """The repetition after a failure must not start from the beginning."""
    cached = CachedEmbedder(model, batch=1)
    with pytest.raises(Unavailable):
        cached.embed_passages(["a", "down"])
    cached.embed_passages(["a"])
    assert model.calls == [("a",), ("down",)]


def test_the_least_recently_used_goes_first(model: CountingEmbedder) -> None:
    """The bound keeps memory flat however many texts pass through."""
    cached = CachedEmbedder(model, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed_passages([text])
    assert model.calls == [("a",), ("b",), ("c",), ("b",)]


def test_a_call_larger_than_the_cache_is_answered(model: CountingEmbedder) -> None:
    """What was pushed out during the call is still part of its answer."""
    cached = CachedEmbedder(model, size=2, batch=2)
    cached.embed_passages(["a"])
    rows = cached.embed_passages(["a", "b", "c", "d", "e"])
    assert np.array_equal(rows, model.embed_passages(["a", "b", "c", "d", "e"]))


def test_an_embedding_is_forgotten_after_a_day(model: CountingEmbedder, clock: Clock) -> None:
    """Traces of an erased text may not stay; use doesn't prolong its time."""
    cached = CachedEmbedder(model, clock=clock)
    cached.embed_passages(["a"])
    clock.now += DAY_SECONDS - 1
    cached.embed_passages(["a"])
    assert len(model.calls) == 1
    clock.now += 1
    cached.embed_passages(["a"])
    assert len(model.calls) == 2


def test_any_call_drops_what_is_past_its_time(model: CountingEmbedder, clock: Clock) -> None:
    """A trace may not wait for somebody to ask for the same text again."""
    cached = CachedEmbedder(model, seconds=10, clock=clock)
    cached.embed_passages(["a"])
    clock.now += 10
    cached.embed_passages([])
    clock.now -= 10  # a clock doesn't run backwards: this only looks whether anything is left
    cached.embed_passages(["a"])
    assert model.calls == [("a",), ("a",)]


def test_forgetting_empties_the_cache(model: CountingEmbedder) -> None:
    """Erasing a person asks every cache to forget."""
    cached = CachedEmbedder(model)
    cached.embed_passages(["a"])
    cached.forget()
    cached.embed_passages(["a"])
    assert model.calls == [("a",), ("a",)]


def test_no_text_is_kept(model: CountingEmbedder) -> None:
    """A dump of the process must not be a dump of memories."""
    cached = CachedEmbedder(HashingEmbedder())
    cached.embed_passages(["secret words"])
    assert "secret" not in repr(vars(cached))


def test_a_foreign_embedder_is_held_to_the_contract() -> None:
    """`open(embedder=…)` takes any object: a wrong vector must not reach a store."""

    class Zeros(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vector:
            return np.zeros((len(texts), 64), dtype=np.float32)

    class TooFew(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vector:
            return super().embed_passages(texts[1:])

    for embedder in (Zeros(), TooFew()):
        with pytest.raises(InvalidEmbedding):
            CachedEmbedder(embedder).embed_passages(["a", "b"])


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_share_one_cache() -> None:
    """Searches and writes of one process go through the same cache."""
    cached = CachedEmbedder(HashingEmbedder(dimension=8), size=20)
    texts = [str(number) for number in range(30)]
    expected = HashingEmbedder(dimension=8).embed_passages(texts)

    def ask(start: int) -> None:
        for number in range(start, start + 300):
            some = [(number + step) % 30 for step in range(10)]
            rows = cached.embed_passages([texts[index] for index in some])
            assert np.array_equal(rows, expected[some])

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(ask, 7 * start) for start in range(8)]:
            done.result()
    assert cached.hits + cached.misses == 8 * 300 * 10
