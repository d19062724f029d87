"""Any server that speaks the embeddings protocol of OpenAI."""

import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypedDict

from memory_tool.embedding_models import model_card
from memory_tool.errors import InputError, InvalidEmbedding, MissingExtra, Unavailable
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.token_spans import Span, approximate_spans
from memory_tool.unit_vectors import unit_vectors

if TYPE_CHECKING:
    import httpx

_TRY_LATER: Final = frozenset({408, 425, 429})
"""Request timeout, too early, too many requests: the client errors that pass by themselves."""

_SPECIAL_TOKENS: Final = 2
"""Start and end of a text, as BERT and its kin have them; servers refuse one token too many."""

QUERY_SECONDS: Final = 2.0
"""Longest wait for the embedding of a question: a search goes on by words after it. And for the
dimension, without which a store is opened as well."""

_CODE: Final = re.compile(r"[\w.-]{1,64}")


class _Item(TypedDict):
    index: int
    embedding: list[float]


class _Answer(TypedDict):
    data: list[_Item]


class OpenAIEmbedder:
    """Embeddings over HTTP: one request for each batch, no retries.

    The key travels in a header and is shown nowhere. Texts are never part of an error.

    Args:
        base_url: What comes before ``/embeddings``, version included: ``https://…/v1``.
        model: Name of the model, as the server knows it.
        api_key: Empty for a server that wants none.
        dimension: Length of the vectors; by default that of the model's card. If that is unknown
            too, one word is embedded when the space is first needed.
        batch: Most texts of one request.
        seconds: Longest wait for a connection, and between two parts of an answer.

    Raises:
        MissingExtra: httpx isn't installed.
        InputError: ``base_url`` is no HTTP address.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str = "",
        dimension: int | None = None,
        batch: int = 32,
        seconds: float = 30.0,
    ) -> None:
        self._client = _client(base_url, api_key, seconds=seconds)
        self._seconds = seconds
        self._model = model
        self._card = model_card(model)
        self._batch = batch
        self._lock = threading.Lock()
        self._dimension = dimension or self._card.dimension

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the model.

        Raises:
            Unavailable: The dimension has to be asked for and the server doesn't answer.
        """
        with self._lock:
            if self._dimension is None:
                (row,) = self._request(["dimension"], seconds=min(self._seconds, QUERY_SECONDS))
                self._dimension = unit_vectors([row], count=1, dimension=len(row)).size
        return EmbeddingSpace(
            model=self._card.name,
            dimension=self._dimension,
            query_prefix=self._card.query_prefix,
            passage_prefix=self._card.passage_prefix,
        )

    @property
    def max_tokens(self) -> int:
        """What prefix and special tokens leave of 8,191 for OpenAI's models, of 512 for others."""
        prefix = len(approximate_spans(self._card.passage_prefix))
        return self._card.max_tokens - _SPECIAL_TOKENS - prefix

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Unit vectors of texts to be found, shape (len(texts), dimension).

        Raises:
            Unavailable: The server is out of reach, busy, broken, or answers something else.
            InputError: The server refuses the request.
            InvalidEmbedding: Not one vector of the right dimension came for each text.
        """
        return self._embed(texts, self._card.passage_prefix, seconds=self._seconds)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, for questions, with no more patience than a search has."""
        return self._embed(
            texts, self._card.query_prefix, seconds=min(self._seconds, QUERY_SECONDS)
        )

    def token_spans(self, text: str) -> Sequence[Span]:
        """A guess: the tokenizer is the server's."""
        return approximate_spans(text)

    def close(self) -> None:
        """Let go of the connections. May be called twice."""
        self._client.close()

    def _embed(self, texts: Sequence[str], prefix: str, *, seconds: float) -> Vector:
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            part = [prefix + text for text in texts[start : start + self._batch]]
            rows += self._request(part, seconds=seconds)
        return unit_vectors(rows, count=len(texts), dimension=self.space.dimension)

    def _request(self, texts: list[str], *, seconds: float) -> list[list[float]]:
        import httpx  # noqa: PLC0415 - optional; the constructor has loaded it

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            response = self._client.post("embeddings", json=body, timeout=seconds)
        except httpx.HTTPError as error:
            message = f"the embedding server can't be reached: {type(error).__name__}"
            raise Unavailable(message, store="embedder") from error
        _check_status(response)
        return _rows(response, len(texts))


def _client(base_url: str, api_key: str, *, seconds: float) -> "httpx.Client":
    try:
        import httpx  # noqa: PLC0415 - an optional driver, loaded only where it is used
    except ImportError as error:
        message = "embeddings over HTTP are not installed: pip install 'threefold[llm]'"
        raise MissingExtra(message) from error
    try:
        address = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        message = "the address of the embedding server can't be understood"
        raise InputError(message) from error
    if address.scheme not in {"http", "https"} or not address.host:
        message = "the address of the embedding server has to start with http(s)://"
        raise InputError(message)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.Client(base_url=address, headers=headers, timeout=seconds)


def _check_status(response: "httpx.Response") -> None:
    if response.is_success:
        return
    message = f"the embedding server answers {response.status_code}{_code(response)}"
    if response.is_server_error or response.status_code in _TRY_LATER:
        raise Unavailable(message, store="embedder")
    raise InputError(message)


def _code(response: "httpx.Response") -> str:
    """The server's word for what is wrong. Its sentences may quote the texts or the key."""
    try:
        error = response.json()["error"]
        words = (error.get("code"), error.get("type"))
    except (AttributeError, LookupError, TypeError, ValueError):
        return ""
    return next(
        (f" ({word})" for word in words if isinstance(word, str) and _CODE.fullmatch(word)), ""
    )


def _rows(response: "httpx.Response", count: int) -> list[list[float]]:
    """The embeddings in the order of the texts, whatever the order of the answer."""
    try:
        answer: _Answer = response.json()
        items = answer["data"]
        rows = {item["index"]: item["embedding"] for item in items}
    except (LookupError, TypeError, ValueError) as error:
        message = "the embedding server answers with something else than embeddings"
        raise Unavailable(message, store="embedder") from error
    if len(items) != count or rows.keys() != set(range(count)):
        message = f"asked for {count} embeddings, got {len(items)} or unknown indexes"
        raise InvalidEmbedding(message)
    return [rows[index] for index in range(count)]
