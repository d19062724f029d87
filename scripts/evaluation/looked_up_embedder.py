"""An embedder that knows most vectors beforehand, so that measuring takes minutes, not hours."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.ports import Embedder
from memory_tool.token_spans import Span
from memory_tool.unit_vectors import unit_vectors
from scripts.evaluation.bulk_model import BulkModel

KEY_CHARACTERS: Final = 1600
"""Vectors that come with the sets are of a text cut here, and so are their keys."""

UNSAVED_MAX: Final = 256
"""Vectors that an interrupted run may lose: a minute of work."""


class LookedUpEmbedder:
    """The offline model with two memories: the vectors of the sets, and those made by earlier runs.

    It has the space of the embedder that it stands for. What neither memory knows is made in bulk.
    """

    def __init__(self, model: Embedder, *, given: Path, kept: Path) -> None:
        """Read what is known.

        Args:
            model: The embedder that it stands for; asked for its space and tokens.
            given: The ``.npz`` file that came with the sets; it need not be there.
            kept: The ``.npz`` file of vectors made by earlier runs; made when it isn't there.
        """
        self._model = model
        self._given = _read(given)
        self._kept_file = kept
        self._kept = _read(kept)
        self._unsaved = 0
        self._bulk: BulkModel | None = None
        self.made = 0
        """How many vectors this run had to make."""

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the offline model."""
        return self._model.space

    @property
    def max_tokens(self) -> int:
        """The limit of the offline model."""
        return self._model.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of texts to be found, shape (len(texts), dimension)."""
        return self._embed(texts, is_query=False)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of questions, shape (len(texts), dimension)."""
        return self._embed(texts, is_query=True)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The tokens of the offline model."""
        return self._model.token_spans(text)

    def save(self) -> None:
        """Keep what was made for later runs."""
        if not self._unsaved:
            return
        folder = self._kept_file.parent
        folder.mkdir(parents=True, exist_ok=True)
        keys = np.array([key.encode() for key in self._kept])
        vectors = np.array(list(self._kept.values()), np.float16)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".npz", delete=False) as file:
            np.savez(file, keys=keys, vectors=vectors)
        Path(file.name).replace(self._kept_file)
        self._unsaved = 0

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vector:
        missing = [text for text in texts if self._known(text, is_query=is_query) is None]
        if missing:
            self._make(missing, is_query=is_query)
        known = (self._known(text, is_query=is_query) for text in texts)
        rows = [row for row in known if row is not None]
        return unit_vectors(rows, count=len(texts), dimension=self.space.dimension)

    def _known(self, text: str, *, is_query: bool) -> Vector | None:
        found = self._given.get(key_of(text[:KEY_CHARACTERS], is_query=is_query))
        if found is None:
            found = self._kept.get(key_of(text, is_query=is_query))
        return found

    def _make(self, texts: Sequence[str], *, is_query: bool) -> None:
        if self._bulk is None:
            self._bulk = BulkModel()
        vectors = self._bulk.embed(texts, is_query=is_query)
        keys = [key_of(text, is_query=is_query) for text in texts]
        self._kept |= dict(zip(keys, vectors, strict=True))
        self.made += len(texts)
        self._unsaved += len(texts)
        if self._unsaved >= UNSAVED_MAX:
            self.save()


def key_of(text: str, *, is_query: bool) -> str:
    """The key of a vector: 32 hexadecimal digits of the SHA-256 of ``<0|1>|<text>``."""
    return hashlib.sha256(f"{int(is_query)}|{text}".encode()).hexdigest()[:32]


def _read(file: Path) -> dict[str, Vector]:
    if not file.exists():
        return {}
    with np.load(file, allow_pickle=False) as stored:
        keys = [key.decode() for key in stored["keys"].tolist()]
        return dict(zip(keys, stored["vectors"], strict=True))
