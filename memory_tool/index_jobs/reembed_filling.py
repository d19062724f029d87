"""Makes the vectors that chunks lack in a space, from the text that is stored."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from memory_tool.errors import InputError, Unavailable
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.model import MemoryId, Vector
from memory_tool.ports import Embedder
from memory_tool.space_ports import VectorFiller
from memory_tool.space_values import FilledChunk, Unembedded


class _Wanted(NamedTuple):
    """One chunk without a vector."""

    of: Unembedded
    ordinal: int
    start: int
    stop: int

    @property
    def text(self) -> str | None:
        whole = self.of.content
        return None if whole is None else whole[self.start : self.stop]


class Filling:
    """Fills one space, pass after pass; a pass looks at what was written since the one before."""

    def __init__(self, filler: VectorFiller, embedder: Embedder, *, space: int, batch: int) -> None:
        """``batch`` texts are embedded in one call, and put down at once."""
        self._filler = filler
        self._embedder = embedder
        self._space = space
        self._batch = batch
        self._seen: dict[int, int] = {}
        self._refused: set[tuple[MemoryId, int]] = set()

    @property
    def refused(self) -> int:
        """Chunks whose text the model refuses, or the archive has lost: found by words alone."""
        return len(self._refused)

    def run(self, may_go_on: MayGoOn, done: Callable[[int], None]) -> bool:
        """Fill what is missing, from the beginning if need be; whether all was looked at.

        ``done`` hears how many chunks each batch filled.

        Raises:
            Unavailable: The model failed; what was filled stays.
        """
        clocks = self._filler.clocks()
        changed = [ns_id for ns_id, nseq in clocks.items() if self._seen.get(ns_id) != nseq]
        wanted = _chunks(self._filler.missing(self._space, changed))
        while batch := list(islice(wanted, self._batch)):
            if not may_go_on():
                return False
            done(self._fill(batch))
        # Not the clocks of now: what was written since is looked at by the next pass.
        self._seen.update(clocks)
        return may_go_on()

    def _fill(self, batch: Sequence[_Wanted]) -> int:
        texts = [one.text for one in batch]
        vectors = iter(self._embed([text for text in texts if text is not None]))
        made = [
            (one, None if text is None else next(vectors))
            for one, text in zip(batch, texts, strict=True)
        ]
        self._refused.update((one.of.memory_id, one.ordinal) for one, got in made if got is None)
        filled = 0
        for ns_id, group in groupby(made, key=lambda pair: pair[0].of.ns_id):
            chunks = [_filled(one, vector) for one, vector in group if vector is not None]
            if chunks:
                filled += self._filler.fill(self._space, ns_id, chunks=chunks)
        return filled

    def _embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if not texts:
            return []
        try:
            return list(self._embedder.embed_passages(texts))
        except Unavailable:
            raise
        except InputError as error:
            if len(texts) == 1:
                logger().warning("embedding_failed", texts=1, reason=str(error))
                return [None]
            # One bad text must not cost its neighbours their vectors.
            return [vector for text in texts for vector in self._embed([text])]


def _chunks(memories: Iterable[Unembedded]) -> Iterator[_Wanted]:
    for memory in memories:
        for ordinal, start, stop in memory.chunks:
            yield _Wanted(memory, ordinal, start, stop)


def _filled(wanted: _Wanted, vector: Vector) -> FilledChunk:
    return FilledChunk(
        memory_id=wanted.of.memory_id,
        content_hash=wanted.of.content_hash,
        ordinal=wanted.ordinal,
        start=wanted.start,
        stop=wanted.stop,
        vector=vector,
    )
