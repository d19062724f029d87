"""Rows, batches and questions for the tests of keyword indexes."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

from memory_tool.log_ports import IndexTarget
from memory_tool.model import Chunk, MemoryId
from memory_tool.port_values import ChangeBatch, ChangeRow, DeadLetter, KeywordQuery, Pointer
from memory_tool.ports import KeywordView
from memory_tool.query import Candidate

STORE = "store-1"
MOST_CHUNKS = 3
"""No row of these tests ever had more."""


@dataclass(slots=True)
class NotedProgress:
    """The part of a change log that applying needs: it remembers what was noted."""

    noted: list[tuple[str, dict[int, int]]] = field(default_factory=list)
    buried: list[tuple[str, DeadLetter]] = field(default_factory=list)

    def pending(self, clocks: Mapping[int, int]) -> int:
        """Not needed to apply."""
        raise NotImplementedError

    def knows(self, target: str, mark: str) -> bool:
        """Not needed to apply."""
        raise NotImplementedError

    def changes(self, *_: object, **__: object) -> AbstractContextManager[ChangeBatch]:
        """Not needed to apply."""
        raise NotImplementedError

    def pointer(self, target: str) -> Pointer | None:
        """Not needed to apply."""
        raise NotImplementedError

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """Not needed to apply."""
        raise NotImplementedError

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """Remember."""
        self.noted.append((target, dict(clocks)))

    def bury(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.bury`."""
        self.buried += [(target, letter) for letter in letters]


def memory_id(number: int) -> MemoryId:
    """An id that uses all its bits, and sorts by ``number``."""
    return f"{number:08x}{'f0e1d2c3b4a59687' * 2}"[:32]


def chunk(words: str = "", bigrams: str = "", *, ordinal: int = 0) -> Chunk:
    """A chunk of these tokens."""
    return Chunk(ordinal=ordinal, start=0, stop=1, language="en", words=words, bigrams=bigrams)


def row(
    number: int, *chunks: Chunk, ns_id: int = 1, version: int = 1, extra: str = ""
) -> ChangeRow:
    """A live row."""
    return ChangeRow(
        ns_id=ns_id,
        memory_id=memory_id(number),
        nseq=version,
        version=version,
        live=True,
        extra=extra,
        chunk_high=MOST_CHUNKS,
        chunks=chunks,
    )


def gone(number: int, *, ns_id: int = 1, version: int = 1) -> ChangeRow:
    """A row that has to go."""
    return ChangeRow(
        ns_id=ns_id,
        memory_id=memory_id(number),
        nseq=version,
        version=version,
        live=False,
        extra="",
        chunk_high=MOST_CHUNKS,
        chunks=(),
    )


def batch(
    rows: Iterable[ChangeRow],
    clocks: Mapping[int, int],
    *,
    mark: str,
    base_mark: str | None,
) -> ChangeBatch:
    """A batch of the store of these tests."""
    return ChangeBatch(
        rows=iter(rows), clocks=clocks, mark=mark, base_mark=base_mark, space=None, store=STORE
    )


def apply(target: IndexTarget, *rows: ChangeRow, mark: str = "", clock: int = 1) -> NotedProgress:
    """Apply rows on top of what the target holds; ``clock`` holds for their namespaces."""
    log = NotedProgress()
    base = target.base()
    clocks = {row.ns_id: clock for row in rows}
    changes = batch(rows, clocks, mark=mark or f"{base.mark}+", base_mark=base.mark)
    target.apply(changes, log)
    return log


def ask(words: str = "", bigrams: str = "") -> KeywordQuery:
    """A query of these tokens."""
    return KeywordQuery(words=tuple(words.split()), bigrams=tuple(bigrams.split()))


def numbers(candidates: Sequence[Candidate]) -> list[int]:
    """Which memories were found, in their order."""
    return [int(candidate.memory_id[:8], 16) for candidate in candidates]


def find(
    view: KeywordView, words: str = "", *, bigrams: str = "", ns_ids: Sequence[int] = (1,)
) -> list[int]:
    """Which memories of these namespaces hold one of the tokens, best first."""
    return numbers(view.search(ask(words, bigrams), ns_ids, depth=100))
