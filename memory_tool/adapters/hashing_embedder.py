"""An embedder without a model, for tests: similar vectors for similar texts, the same anywhere."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.token_spans import Span, approximate_spans
from memory_tool.unit_vectors import unit_vectors

_SIZES = (2, 3)
"""Lengths of the pieces that are counted: two characters suit Chinese, three English."""

_EDGE = "\n"
"""Marks both ends, so that the shortest text has a piece; no piece holds it otherwise."""


class HashingEmbedder:
    """Adds up random directions, one for each run of two or three characters of a text.

    The direction of a run is the bits of its SHAKE-128 hash as signs, so it is the same in every
    process and on every platform. Texts that share runs share directions; unrelated texts lie at a
    cosine of 0 give or take 1 / sqrt(dimension). Capitals and the kind of white space don't count.

    Args:
        dimension: Length of the vectors.
        revision: Another one has other directions: its vectors lie at random to those of this one.
    """

    def __init__(self, *, dimension: int = 64, revision: str = "") -> None:
        self._space = EmbeddingSpace(model="hashing", dimension=dimension, revision=revision)

    @property
    def space(self) -> EmbeddingSpace:
        """The space ``hashing`` of this dimension and revision."""
        return self._space

    @property
    def max_tokens(self) -> int:
        """512, the window of most models; a longer text isn't cut."""
        return 512

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Unit vectors, shape (len(texts), dimension)."""
        rows = [self._sum_of_directions(text) for text in texts]
        return unit_vectors(rows, count=len(texts), dimension=self._space.dimension)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """The same as passages: a question made of a memory's words finds it."""
        return self.embed_passages(texts)

    def token_spans(self, text: str) -> Sequence[Span]:
        """A guess at tokens; the vectors don't depend on it."""
        return approximate_spans(text)

    def _sum_of_directions(self, text: str) -> NDArray[np.float64]:
        dimension = self._space.dimension
        counts = _runs(text)
        octets = -(-dimension // 8)
        revision = self._space.revision
        hashes = b"".join(
            hashlib.shake_128((revision + run).encode()).digest(octets) for run in counts
        )
        bits = np.frombuffer(hashes, np.uint8).reshape(len(counts), octets)
        signs = 1.0 - 2.0 * np.unpackbits(bits, axis=1, count=dimension)
        return np.fromiter(counts.values(), np.float64, len(counts)) @ signs


def _runs(text: str) -> Counter[str]:
    plain = _EDGE + " ".join(text.casefold().split()) + _EDGE
    return Counter(
        plain[start : start + size] for size in _SIZES for start in range(len(plain) - size + 1)
    )
