"""Made memories: clustered unit vectors and Zipf texts, the same for the same seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_tool.model import EmbeddingSpace, Vector

DIMENSION: Final = 384
CLUSTERS: Final = 2000
RANK: Final = 16
SPREAD: Final = 0.6
WORDS: Final = 20_000
WORDS_A_TEXT: Final = 28
ZIPF: Final = 1.3
_SHORTEST: Final = 5
"""Letters of a made word, before its last one: longer than any stop word."""

SPACE: Final = EmbeddingSpace(model="made", dimension=DIMENSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Texts with their vectors, shape (count, 384), and questions with theirs."""

    texts: Sequence[str]
    vectors: Vector
    questions: Sequence[str]
    question_vectors: Vector


def make(size: int, questions: int, *, seed: int = 20_251_130) -> Made:
    """``size`` memories of about 200 characters; each question is near one of them.

    Vectors lie in 2,000 clusters, each with a spread of rank 16 of its own, as the embeddings of
    texts about the same things do.
    """
    rng = np.random.default_rng(seed)
    centres, bases = _clusters(rng, CLUSTERS, dimension=DIMENSION)
    member = rng.integers(0, CLUSTERS, size)
    vectors = _placed(rng, member, centres=centres, bases=bases)
    vocabulary = np.array([word(number) for number in range(WORDS)])
    numbers = np.minimum(rng.zipf(ZIPF, (size, WORDS_A_TEXT)) - 1, WORDS - 1)
    texts = [f"{' '.join(vocabulary[row])} item{place}" for place, row in enumerate(numbers)]
    asked = rng.integers(0, size, questions)
    near = _placed(rng, member[asked], centres=centres, bases=bases)
    words = [" ".join(rng.choice(vocabulary[numbers[place]], 4)) for place in asked]
    return Made(texts=texts, vectors=vectors, questions=words, question_vectors=near)


def make_vectors(
    size: int, questions: int, *, dimension: int, clusters: int, seed: int = 20_251_130
) -> tuple[Vector, Vector]:
    """Vectors alone, of any dimension: those of memories, and those of questions among them."""
    rng = np.random.default_rng(seed)
    centres, bases = _clusters(rng, clusters, dimension=dimension)
    member = rng.integers(0, clusters, size + questions)
    vectors = _placed(rng, member, centres=centres, bases=bases)
    return vectors[:size], vectors[size:]


def _clusters(rng: np.random.Generator, count: int, *, dimension: int) -> tuple[Vector, Vector]:
    """The middle of each cluster, and the directions in which its members differ."""
    centres = _unit(rng.standard_normal((count, dimension)))
    bases = rng.standard_normal((count, RANK, dimension)).astype(np.float32) / np.sqrt(dimension)
    return centres, bases.astype(np.float32)


def _placed(
    rng: np.random.Generator, member: NDArray[np.int64], *, centres: Vector, bases: Vector
) -> Vector:
    placed = np.empty((len(member), centres.shape[1]), np.float32)
    for start in range(0, len(member), 4096):
        part = member[start : start + 4096]
        weights = rng.standard_normal((len(part), RANK)).astype(np.float32) * SPREAD
        offsets = np.einsum("nr,nrd->nd", weights, bases[part])
        placed[start : start + len(part)] = centres[part] + offsets
    return _unit(placed)


def _unit(vectors: NDArray[np.float64] | Vector) -> Vector:
    unit: Vector = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def word(number: int) -> str:
    """A word of its own for each number, so that stemming and stop words leave it alone."""
    letters = "bcdfgklmnpqrtvz"
    text = ""
    while number or len(text) < _SHORTEST:
        number, rest = divmod(number, len(letters))
        text += letters[rest] + "aeiou"[rest % 5]
    return text + "x"


class MadeEmbedder:
    """An embedder for texts whose vectors are always given; embedding is not what is measured."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the made vectors."""
        return SPACE

    @property
    def max_tokens(self) -> int:
        """More than any made text has."""
        return 512

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """The same vector for every text: only reached by what is not measured."""
        return np.full((len(texts), DIMENSION), 1 / np.sqrt(DIMENSION), np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """As for passages."""
        return self.embed_passages(texts)

    def token_spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Words between blanks."""
        spans, start = [], 0
        for word in text.split(" "):
            spans.append((start, start + len(word)))
            start += len(word) + 1
        return spans
