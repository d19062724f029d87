"""Embeddings that were made a moment ago, kept for when the same text comes again."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.ports import Embedder
from memory_tool.token_spans import Span
from memory_tool.unit_vectors import unit_vectors

DAY_SECONDS: Final = 86_400.0

_Key: TypeAlias = bytes


class CachedEmbedder:
    """An embedder that asks another one only for what it doesn't remember.

    It remembers vectors under the SHA-256 of kind and text, never a text. The least recently used
    go first when there are too many, those past their time at the next call. Whatever embedder is
    wrapped, what comes out are unit vectors of its space. Any number of threads may share it.

    Args:
        embedder: The embedder that is asked.
        size: Most embeddings kept; 0 keeps none.
        seconds: How long one is kept, from when it was made.
        batch: Most texts of one call of ``embedder``.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        size: int = 1000,
        seconds: float = DAY_SECONDS,
        batch: int = 32,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._embedder = embedder
        self._size = size
        self._seconds = seconds
        self._batch = batch
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[float, Vector]] = OrderedDict()
        self._hits = 0
        self._misses = 0

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the embedder that is asked."""
        return self._embedder.space

    @property
    def max_tokens(self) -> int:
        """The limit of the embedder that is asked."""
        return self._embedder.max_tokens

    @property
    def hits(self) -> int:
        """Texts answered without the model, repetitions within one call among them."""
        return self._hits

    @property
    def misses(self) -> int:
        """Texts that the model embedded."""
        return self._misses

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """What the embedder makes of passages, shape (len(texts), dimension).

        Raises:
            Unavailable: The embedder failed; the batches before are remembered.
            InvalidEmbedding: The embedder made something else than one vector for each text.
        """
        return self._embed("passage", texts, model=self._embedder.embed_passages)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, for questions."""
        return self._embed("query", texts, model=self._embedder.embed_queries)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The tokens of the embedder that is asked."""
        return self._embedder.token_spans(text)

    def forget(self) -> None:
        """Drop every embedding that is kept."""
        with self._lock:
            self._kept.clear()

    def _embed(
        self, kind: str, texts: Sequence[str], *, model: Callable[[Sequence[str]], Vector]
    ) -> Vector:
        keys = [hashlib.sha256(f"{kind}\0{text}".encode()).digest() for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        known = self._remembered(wanted)
        missing = [key for key in wanted if key not in known]
        dimension = self.space.dimension
        for start in range(0, len(missing), self._batch):
            part = missing[start : start + self._batch]
            rows = model([wanted[key] for key in part])
            vectors = unit_vectors(rows, count=len(part), dimension=dimension)
            made = dict(zip(part, vectors, strict=True))
            self._remember(made)
            known |= made
        with self._lock:
            self._hits += len(keys) - len(missing)
            self._misses += len(missing)
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, dimension), "f4")

    def _remembered(self, keys: Iterable[_Key]) -> dict[_Key, Vector]:
        oldest = self._clock() - self._seconds
        with self._lock:
            for key in [key for key, (made_at, _) in self._kept.items() if made_at <= oldest]:
                del self._kept[key]
            found = {key: self._kept[key][1] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def _remember(self, made: Mapping[_Key, Vector]) -> None:
        now = self._clock()
        with self._lock:
            for key, vector in made.items():
                # A copy: a row of a batch would keep the whole batch in memory.
                self._kept[key] = (now, vector.copy())
                self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
