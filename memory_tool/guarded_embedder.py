"""An embedder behind a circuit breaker: while it is down, nobody waits for it."""

from collections.abc import Callable, Sequence

from memory_tool.breaker import Breaker
from memory_tool.errors import Unavailable
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.ports import Embedder
from memory_tool.token_spans import Span


class GuardedEmbedder(Embedder):
    """Asks another embedder, except while that one is down.

    A search then goes on by words and a write without its vector, at once instead of after the
    longest wait of a connection.
    """

    def __init__(self, embedder: Embedder, breaker: Breaker) -> None:
        """Ask ``embedder``, whose condition ``breaker`` knows."""
        self._embedder = embedder
        self._breaker = breaker

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the embedder that is asked."""
        return self._embedder.space

    @property
    def max_tokens(self) -> int:
        """The limit of the embedder that is asked."""
        return self._embedder.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """What the embedder makes of passages.

        Raises:
            Unavailable: It failed, or it is down and was not asked.
        """
        return self._ask(self._embedder.embed_passages, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, for questions."""
        return self._ask(self._embedder.embed_queries, texts)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The tokens of the embedder that is asked."""
        return self._embedder.token_spans(text)

    def _ask(self, embed: Callable[[Sequence[str]], Vector], texts: Sequence[str]) -> Vector:
        if not self._breaker.allows():
            message = "the embedder is down"
            raise Unavailable(message, store="embedder")
        try:
            vectors = embed(texts)
        except Unavailable:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        # It missed nothing: memories without a vector are completed by whoever applies.
        self._breaker.caught_up()
        return vectors
