"""Any model that sentence-transformers can load, by its name or from a folder."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memory_tool.embedding_models import KNOWN_MODELS, ModelCard, model_card
from memory_tool.errors import InputError, Unavailable
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.token_spans import Span, approximate_spans, covering_spans
from memory_tool.unit_vectors import unit_vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_UNLIMITED_TOKENS: Final = 8192
"""What a model without a limit is taken to read: what most long models do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    model: "SentenceTransformer"
    space: EmbeddingSpace
    max_tokens: int


class SentenceTransformerEmbedder:
    """A sentence-transformers model, imported and loaded when it is first needed.

    The import takes seconds and hundreds of megabytes, so making one costs nothing. The prefixes
    are those of the model's card, the dimension is the model's own. Calls from several threads
    take turns: its tokenizer refuses to be used by two at once, and torch uses every core anyway.

    Args:
        model: Name of a model (``BAAI/bge-small-zh-v1.5``), an alias (``bge-small-zh``), or a
            folder that holds one.
        allow_download: Fetch a model that is not on this machine from the model hub. Without it
            nothing ever leaves the machine.
        revision: The commit or tag of the model to use; it becomes part of the space. Left out,
            it is the one on this machine, or the newest.
        batch: Texts that go through the model together.
    """

    def __init__(
        self,
        *,
        model: str,
        allow_download: bool = False,
        revision: str | None = None,
        batch: int = 32,
    ) -> None:
        self._card = model_card(model)
        self._is_folder = Path(model).is_dir()
        self._source = model if self._is_folder else self._card.name
        nameless = self._is_folder and self._card not in KNOWN_MODELS
        self._space_name = Path(model).resolve().name if nameless else self._card.name
        self._allow_download = allow_download
        self._revision = revision
        self._batch = batch
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def space(self) -> EmbeddingSpace:
        """The model's space. A known model has the same one from the hub and from a folder.

        Raises:
            InputError: The model isn't on this machine, or the folder holds none.
            Unavailable: The model can't be fetched.
        """
        with self._lock:
            return self._ready().space

    @property
    def max_tokens(self) -> int:
        """The model's longest input without its special tokens and the prefix of passages."""
        with self._lock:
            return self._ready().max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of texts to be found, shape (len(texts), dimension).

        Raises:
            InputError: The model isn't on this machine, or the folder holds none.
            Unavailable: The model can't be fetched, or failed.
        """
        return self._embed(texts, self._card.passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, for questions."""
        return self._embed(texts, self._card.query_prefix)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The tokens of the model's tokenizer; a guess if it can't tell their places."""
        with self._lock:
            tokenizer = self._ready().model.tokenizer
            if not getattr(tokenizer, "is_fast", False):
                return approximate_spans(text)
            encoded = tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
            )
        return covering_spans(text, encoded["offset_mapping"])

    def _embed(self, texts: Sequence[str], prefix: str) -> Vector:
        with self._lock:
            loaded = self._ready()
            try:
                rows = loaded.model.encode(
                    _inputs(loaded.model, texts),
                    # Also when empty: the model's own default prompt must not come in.
                    prompt=prefix,
                    batch_size=self._batch,
                    show_progress_bar=False,
                )
            except Exception as error:
                message = f"the model {self._space_name} failed: {_first_line(error)}"
                raise Unavailable(message, store="embedder") from error
        return unit_vectors(rows, count=len(texts), dimension=loaded.space.dimension)

    def _ready(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> _Loaded:
        model = self._model()
        dimension = model.get_embedding_dimension()
        if dimension is None:
            message = f"the model {self._source} doesn't tell its dimension"
            raise InputError(message)
        space = EmbeddingSpace(
            model=self._space_name,
            dimension=dimension,
            revision=self._revision or "",
            query_prefix=self._card.query_prefix,
            passage_prefix=self._card.passage_prefix,
        )
        return _Loaded(model=model, space=space, max_tokens=_content_tokens(model, self._card))

    def _model(self) -> "SentenceTransformer":
        """The model on this machine, else from the hub.

        In this order also where a download is allowed: asking the hub first would take minutes
        while it is out of reach, and a newer revision would silently change the space.
        """
        from huggingface_hub.errors import (  # noqa: PLC0415 - comes with sentence_transformers
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds of import

        try:
            with _offline():
                return SentenceTransformer(
                    self._source, revision=self._revision, local_files_only=True
                )
        except Exception as error:
            if self._is_folder:
                message = f"the folder {self._source} holds no model: {_first_line(error)}"
                raise InputError(message) from error
            if not self._allow_download:
                message = (
                    f"the model {self._source} is not on this machine: allow its download, "
                    "or name the folder that holds it"
                )
                raise InputError(message) from error
        try:
            return SentenceTransformer(self._source, revision=self._revision)
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            message = f"the model hub shows no {self._source} {self._revision or ''}".rstrip()
            raise InputError(message) from error
        except Exception as error:
            message = f"the model {self._source} can't be fetched: {_first_line(error)}"
            raise Unavailable(message, store="embedder") from error


def _inputs(model: "SentenceTransformer", texts: Sequence[str]) -> list[str | dict[str, str]]:
    """The texts, marked as such for a model that would open the address or path of a picture."""
    if len(model.modalities) > 1:
        return [{"text": text} for text in texts]
    return list(texts)


def _content_tokens(model: "SentenceTransformer", card: ModelCard) -> int:
    """What the model's special tokens and prefix leave of its longest input."""
    limit = int(min(model.max_seq_length or card.max_tokens, _UNLIMITED_TOKENS))
    if not getattr(model.tokenizer, "is_fast", False):
        return limit
    return limit - len(model.tokenizer(card.passage_prefix)["input_ids"])


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep the libraries from drawing progress bars and from asking their hub for other reasons.

    Even with ``local_files_only`` huggingface_hub fetches a list for the statistics that it would
    send with a request.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - comes with sentence_transformers
    from transformers.utils import logging  # noqa: PLC0415 - the same

    had_bars = logging.is_progress_bar_enabled()
    no_statistics = constants.HF_HUB_DISABLE_TELEMETRY
    constants.HF_HUB_DISABLE_TELEMETRY = True
    logging.disable_progress_bar()  # type: ignore[no-untyped-call] # without annotations
    try:
        yield
    finally:
        constants.HF_HUB_DISABLE_TELEMETRY = no_statistics
        if had_bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call] # without annotations


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
