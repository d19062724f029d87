"""The embedder of a store: while it is down nobody waits for it, and its space is the store's."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from memory_tool.breaker import Breaker
from memory_tool.errors import Unavailable
from memory_tool.model import EmbeddingSpace, Vector
from memory_tool.ports import Embedder
from memory_tool.token_spans import Span
from memory_tool.validation import check_space

_Made = TypeVar("_Made")


class GuardedEmbedder(Embedder):
    """Asks another embedder, except while that one is down.

    A search then goes on by words and a write without its vector, at once instead of after the
    longest wait of a connection. A store is opened without its embedder too: the space is then
    known from the record, and the embedder is held against it before its first vector.
    """

    def __init__(
        self,
        embedder: Embedder,
        breaker: Breaker,
        *,
        recorded: Callable[[], EmbeddingSpace | None] = lambda: None,
    ) -> None:
        """Ask ``embedder``, whose condition ``breaker`` knows.

        ``recorded`` is the space of the store; ``None`` until there is one.
        """
        self._embedder = embedder
        self._breaker = breaker
        self._recorded = recorded
        self._space: EmbeddingSpace | None = None
        self._fits = False
        self._reason = ""

    @property
    def space(self) -> EmbeddingSpace:
        """The recorded space, or that of the embedder where none is recorded yet.

        Raises:
            Unavailable: None is recorded, and the embedder has to be asked and is down.
        """
        if self._space is None:
            self._space = self._recorded() or self._asked(lambda: self._embedder.space)
        return self._space

    @property
    def max_tokens(self) -> int:
        """The limit of the embedder that is asked."""
        return self._embedder.max_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """What the embedder makes of passages.

        Raises:
            Unavailable: It failed, or it is down and was not asked.
            SpaceMismatch: It is of another space than the store.
        """
        return self._ask(self._embedder.embed_passages, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Like :meth:`embed_passages`, for questions."""
        return self._ask(self._embedder.embed_queries, texts)

    def token_spans(self, text: str) -> Sequence[Span]:
        """The tokens of the embedder that is asked."""
        return self._embedder.token_spans(text)

    def _ask(self, embed: Callable[[Sequence[str]], Vector], texts: Sequence[str]) -> Vector:
        if not self._fits:
            self._compare()
        return self._asked(lambda: embed(texts))

    def _compare(self) -> None:
        """Hold the embedder against the record, as soon as there is one."""
        recorded = self._recorded()
        if recorded is not None:
            check_space(recorded, self._asked(lambda: self._embedder.space))
            self._fits = True

    def _asked(self, question: Callable[[], _Made]) -> _Made:
        if not self._breaker.allows():
            message = f"the embedder is down: {self._reason}"
            raise Unavailable(message, store="embedder")
        try:
            answer = question()
        except Unavailable as error:
            self._reason = str(error)
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        # It missed nothing: memories without a vector are completed by whoever applies.
        self._breaker.caught_up()
        return answer


class AbsentEmbedder(Embedder):
    """Stands for the embedder of a space whose model this process does not have.

    Searches go on by words, and writes without vectors, which others make.
    """

    def __init__(self, space: EmbeddingSpace, *, reason: str) -> None:
        """``reason`` says what to do about it; it is told with every search."""
        self._space = space
        self._reason = reason

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the vectors that it doesn't make."""
        return self._space

    @property
    def max_tokens(self) -> int:
        """Unknown: whoever makes the vectors cuts the text again."""
        raise self._absent()

    def embed_passages(self, texts: Sequence[str]) -> Vector:  # noqa: ARG002 - never looked at
        """Never.

        Raises:
            Unavailable: Always.
        """
        raise self._absent()

    def embed_queries(self, texts: Sequence[str]) -> Vector:  # noqa: ARG002 - never looked at
        """Like :meth:`embed_passages`."""
        raise self._absent()

    def token_spans(self, text: str) -> Sequence[Span]:  # noqa: ARG002 - never looked at
        """Like :meth:`embed_passages`."""
        raise self._absent()

    def _absent(self) -> Unavailable:
        return Unavailable(self._reason, store="embedder")
