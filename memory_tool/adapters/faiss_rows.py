"""What is known of each stored vector: whose it is, which chunk, which version, and if it lives."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_manifest import Block
from memory_tool.adapters.faiss_vectors import Rows
from memory_tool.model import MemoryId

_DIGITS: Final = 32
_MEMORY_ID: Final = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Memory ids as two arrays: their first and their last 64 bits, each of shape (count,)."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]

    @classmethod
    def of(cls, ids: Collection[MemoryId]) -> "Ids":
        """The ids in this order; a text that is none is left out, as nothing can have it."""
        digits = "".join(ids)
        try:
            raw = bytes.fromhex(digits)
        except ValueError:
            raw = b""
        if raw.hex() != digits or set(map(len, ids)) - {_DIGITS}:
            return cls.of([id for id in ids if _MEMORY_ID.fullmatch(id)])
        return cls.from_bytes(raw)

    @classmethod
    def from_bytes(cls, raw: bytes | bytearray) -> "Ids":
        """16 bytes for each id, the first ones foremost."""
        pairs = np.frombuffer(raw, ">u8").reshape(-1, 2)
        return cls(high=pairs[:, 0].astype(np.uint64), low=pairs[:, 1].astype(np.uint64))

    def to_bytes(self) -> bytes:
        """What :meth:`from_bytes` reads."""
        return np.stack((self.high, self.low), axis=1).astype(">u8").tobytes()

    def texts(self) -> list[MemoryId]:
        """The ids as texts."""
        digits = self.to_bytes().hex()
        return [digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS)]

    def take(self, rows: Rows) -> "Ids":
        """Those at these places."""
        return Ids(high=self.high[rows], low=self.low[rows])

    def __len__(self) -> int:
        return len(self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """The columns beside the vectors, each of shape (rows,)."""

    ids: Ids
    ordinals: NDArray[np.uint16]
    versions: NDArray[np.int64]
    dead: NDArray[np.bool_]

    @classmethod
    def empty(cls) -> "RowTable":
        """A table without rows."""
        return cls(
            ids=Ids.from_bytes(b""),
            ordinals=np.empty(0, np.uint16),
            versions=np.empty(0, np.int64),
            dead=np.empty(0, np.bool_),
        )

    @classmethod
    def joined(cls, tables: Sequence["RowTable"]) -> "RowTable":
        """The rows of all these tables, one behind the other."""
        return cls(
            ids=Ids(
                high=np.concatenate([table.ids.high for table in tables]),
                low=np.concatenate([table.ids.low for table in tables]),
            ),
            ordinals=np.concatenate([table.ordinals for table in tables]),
            versions=np.concatenate([table.versions for table in tables]),
            dead=np.concatenate([table.dead for table in tables]),
        )

    def take(self, rows: Rows) -> "RowTable":
        """A copy of these rows."""
        return RowTable(
            ids=self.ids.take(rows),
            ordinals=self.ordinals[rows],
            versions=self.versions[rows],
            dead=self.dead[rows],
        )

    def order(self) -> Rows:
        """The order by id, then ordinal."""
        return np.lexsort((self.ordinals, self.ids.low, self.ids.high))

    def members(self, block: Block, texts: frozenset[MemoryId], *, ids: Ids) -> Rows:
        """The living rows of ``block`` of these memories, given as texts and as ``ids``."""
        if block.rows > len(texts):
            return self.find(block, ids)[0]
        rows = np.arange(block.start, block.stop)
        named = [text in texts for text in self.ids.take(rows).texts()]
        return rows[named & ~self.dead[rows]]

    def find(self, block: Block, wanted: Ids) -> tuple[Rows, Rows]:
        """The living rows of ``block`` with one of these ids.

        Returns:
            Their numbers, and for each the place of its id in ``wanted``.
        """
        # In order, searching stays in the cache: 20,000 ids among 100,000 rows 1 ms instead of 6.
        order = np.argsort(wanted.high)
        ordered = wanted.take(order)
        rows: list[Rows] = []
        places: list[Rows] = []
        start = block.start
        for length in block.runs:
            found, place = self._find_in_run(start, start + length, wanted=ordered)
            rows.append(found)
            places.append(place)
            start += length
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate(rows), order[np.concatenate(places)]

    def _find_in_run(self, start: int, stop: int, *, wanted: Ids) -> tuple[Rows, Rows]:
        run = self.ids.high[start:stop]
        first = np.searchsorted(run, wanted.high)
        first[first == len(run)] = 0
        hits = np.flatnonzero(run[first] == wanted.high)
        first = first[hits]
        counts = np.searchsorted(run, wanted.high[hits], side="right") - first
        # Every row of every hit: its first row, then the next ones, as many as it has.
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = start + np.repeat(first, counts) + within
        places = np.repeat(hits, counts)
        same = (self.ids.low[rows] == wanted.low[places]) & ~self.dead[rows]
        return rows[same], places[same]
