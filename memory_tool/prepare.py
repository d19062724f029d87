"""Everything about a new memory that is computed before its transaction.

Validate, hash, chunk, tokenise ∥ embed.
"""

import dataclasses
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from memory_tool.chunking.prose import Span, fits_one_chunk, split_prose
from memory_tool.errors import InputError, InvalidEmbedding, Unavailable
from memory_tool.log import logger
from memory_tool.model import (
    Chunk,
    EmbeddingSpace,
    MemoryType,
    NewMemory,
    OnDuplicate,
    Vector,
)
from memory_tool.ports import Embedder
from memory_tool.text.extra import extra_tokens
from memory_tool.text.language import detect_language
from memory_tool.text.normalise import content_hash
from memory_tool.text.tokenise import Tokens, tokenise
from memory_tool.token_spans import approximate_spans
from memory_tool.validation import check_embedding, check_new
from memory_tool.write_changes import Adopt, Arrival, Kept, Part, Put

Vectors: TypeAlias = list[Vector | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareLimits:
    """Sizes: chunk window and overlap in tokens of the embedder, longest text and metadata."""

    chunk_tokens: int = 512
    chunk_overlap: int = 128
    content_bytes: int = 10_000_000
    metadata_bytes: int = 1_000_000


class Preparer:
    """Prepares memories for one embedder. Pure but for calling it."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        space: Callable[[], EmbeddingSpace],
        limits: PrepareLimits,
        executor: Executor,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep the parts.

        Args:
            embedder: Makes the vectors.
            space: The recorded space of the store; records the embedder's in a new store.
            limits: Sizes.
            executor: Where the model runs while the tokens are made.
            confirm: Raises ``SpaceChanged`` if another space is the store's by now; asked before a
                vector is refused for being of another space.
        """
        self._embedder = embedder
        self._space = space
        self._limits = limits
        self._executor = executor
        self._confirm = confirm
        self._made_in: str | None = None

    @property
    def made_in(self) -> str | None:
        """The name of the space of all vectors made so far; ``None`` while there are none."""
        return self._made_in

    def prepare(self, news: Sequence[NewMemory]) -> list[Put | InputError]:
        """One prepared memory for each, in order, or what is wrong with it.

        Raises:
            SpaceMismatch: The embedder is of another space than the store.
            Unavailable: A memory brings its vector, no space is recorded, and the embedder that
                has to tell it is down.
        """
        checked = [self._checked(new) for new in news]
        good = [new for new in checked if isinstance(new, NewMemory)]
        spans = [self._spans(new) for new in good]
        chunks = iter(self._chunked(good, spans))
        return [
            new if isinstance(new, InputError) else put_of(new, next(chunks)) for new in checked
        ]

    def adopt(self, arrivals: Sequence[Arrival]) -> list[Put | InputError]:
        """Like :meth:`prepare`, for memories that were kept elsewhere."""
        carried = [bool(one.parts) and one.space == self._space().name for one in arrivals]
        cut = iter(
            self.prepare(
                [one.new for one, known in zip(arrivals, carried, strict=True) if not known]
            )
        )
        puts = [
            self._with_parts(one) if known else next(cut)
            for one, known in zip(arrivals, carried, strict=True)
        ]
        return [
            put if isinstance(put, InputError) else adopted(put, one.kept)
            for put, one in zip(puts, arrivals, strict=True)
        ]

    def _with_parts(self, arrival: Arrival) -> Put | InputError:
        try:
            new, space = self.check(arrival.new), self._space()
            _check_parts(new, arrival.parts)
            chunks = tuple(
                _chunk(
                    new,
                    tokenise(new.content[part.start : part.stop]),
                    ordinal=ordinal,
                    span=Span(start=part.start, stop=part.stop),
                    vector=check_embedding(part.vector, space, named=space.name),
                )
                for ordinal, part in enumerate(arrival.parts)
            )
        except InputError as error:
            return error
        return put_of(new, chunks)

    def chunks(self, content: str) -> tuple[Chunk, ...]:
        """The chunks of a text that replaces another."""
        new = NewMemory(content=content)
        return self._chunked([new], [self._spans(new)])[0]

    def check(self, new: NewMemory) -> NewMemory:
        """The memory in plain values, its embedding of unit length.

        Raises:
            InputError: It can't be stored.
        """
        good = check_new(
            new,
            content_bytes=self._limits.content_bytes,
            metadata_bytes=self._limits.metadata_bytes,
        )
        if good.embedding is None:
            return good
        space = self._recorded()
        if good.space != space.name:
            self._confirm()
        unit = check_embedding(good.embedding, space, named=good.space)
        return dataclasses.replace(good, embedding=unit)

    def _recorded(self) -> EmbeddingSpace:
        space = self._space()
        self._made_in = space.name
        return space

    def _checked(self, new: NewMemory) -> NewMemory | InputError:
        try:
            return self.check(new)
        except InputError as error:
            return error

    def _spans(self, new: NewMemory) -> tuple[Span, ...]:
        whole = (Span(start=0, stop=len(new.content)),)
        # A vector made by the caller stands for the whole text.
        if new.embedding is not None:
            return whole
        try:
            size = min(self._limits.chunk_tokens, self._embedder.max_tokens)
            if fits_one_chunk(new.content, size=size):
                return whole
            token_spans = self._embedder.token_spans(new.content)
        except Unavailable:
            # A guess will do: whoever completes the vectors cuts the text again.
            size = self._limits.chunk_tokens
            token_spans = approximate_spans(new.content)
        overlap = min(self._limits.chunk_overlap, size // 4)
        return split_prose(new.content, token_spans, size=size, overlap=overlap)

    def _chunked(
        self, news: Sequence[NewMemory], spans: Sequence[tuple[Span, ...]]
    ) -> list[tuple[Chunk, ...]]:
        texts = [
            new.content[span.start : span.stop]
            for new, parts in zip(news, spans, strict=True)
            for span in parts
        ]
        wanted = [
            text
            for new, parts in zip(news, spans, strict=True)
            if new.embedding is None
            for text in (new.content[span.start : span.stop] for span in parts)
        ]
        making = self._executor.submit(self._embed, wanted) if wanted else None
        tokens = iter([tokenise(text) for text in texts])
        made = iter(making.result() if making else [])
        return [
            tuple(
                _chunk(
                    new,
                    next(tokens),
                    ordinal=ordinal,
                    span=span,
                    vector=next(made) if new.embedding is None else new.embedding,
                )
                for ordinal, span in enumerate(parts)
            )
            for new, parts in zip(news, spans, strict=True)
        ]

    def _embed(self, texts: Sequence[str]) -> Vectors:
        try:
            # First the record: no vector is stored whose space nobody knows.
            self._recorded()
            return list(self._embedder.embed_passages(texts))
        except (Unavailable, InvalidEmbedding) as error:
            logger().warning("embedding_failed", texts=len(texts), reason=str(error))
            if len(texts) == 1 or isinstance(error, Unavailable):
                return [None] * len(texts)
            # One bad text must not cost its neighbours their vectors.
            return [vector for text in texts for vector in self._embed([text])]


def _chunk(
    new: NewMemory, tokens: Tokens, *, ordinal: int, span: Span, vector: Vector | None
) -> Chunk:
    return Chunk(
        ordinal=ordinal,
        start=span.start,
        stop=span.stop,
        language=detect_language(new.content[span.start : span.stop]),
        words=" ".join(tokens.words),
        bigrams=" ".join(tokens.bigrams),
        embedding=vector,
    )


def put_of(new: NewMemory, chunks: tuple[Chunk, ...]) -> Put:
    """The new memory as a plan takes it."""
    digest = content_hash(new.content)
    free = new.key is None and new.turn is None and new.on_duplicate is not OnDuplicate.KEEP
    return Put(
        memory_id=uuid.uuid4().hex,
        new=new,
        type=new.type or MemoryType.SEMANTIC,
        content_hash=digest,
        dedup_hash=digest if free else None,
        extra=extra_tokens(new.tags, new.source, metadata=new.metadata),
        chunks=chunks,
    )


def _check_parts(new: NewMemory, parts: Sequence[Part]) -> None:
    """Refuse parts that leave something of the text out, or reach beyond it."""
    reached = 0
    for part in parts:
        if not 0 <= part.start <= reached < part.stop <= len(new.content):
            break
        reached = part.stop
    if reached != len(new.content):
        message = f"the chunks cover {reached} of {len(new.content)} characters"
        raise InputError(message)


def adopted(put: Put, kept: Kept) -> Adopt:
    """The prepared memory with what it was where it was kept before."""
    values = {field.name: getattr(put, field.name) for field in dataclasses.fields(put)}
    return Adopt(**{**values, "memory_id": kept.memory_id or put.memory_id}, kept=kept)


def request_hash(*parts: object) -> bytes:
    """What tells a repeated request from another one: SHA-256 of its values.

    Raises:
        InputError: A whole number has more digits than Python writes.
    """
    try:
        text = repr([_canonical(part) for part in parts])
    except ValueError as error:
        message = "a number is too large"
        raise InputError(message) from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _canonical(value: object) -> object:
    """The value in a form whose ``repr`` is whole, and equal for what callers hold to be equal."""
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, Mapping):
        return sorted((str(name), repr(_canonical(item))) for name, item in value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (spec.name for spec in dataclasses.fields(value))
        return (type(value).__name__, [(name, _canonical(getattr(value, name))) for name in names])
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value
