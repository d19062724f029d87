"""Rows newer than the indexes, remembered so that a search fetches each of them once.

An overlay belongs to one process. It is filled in the snapshots of searches, without their
filters, and holds every row of a namespace above a base number up to a clock. States are immutable:
a search works on the state that it started from, extended by what its own snapshot saw, so a later
search of another thread can't take away the older image that this one needs.
"""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_tool.model import MemoryId, Vector
from memory_tool.port_values import ChunkTokens, OverlayRow
from memory_tool.query import Arm, Candidate

ROWS_MAX: Final = 50_000
"""Rows that one namespace's overlay may hold before it starts anew: a fold is long due by then."""

_FIRST_CAPACITY: Final = 64


class _VectorLog:
    """Vectors and their keys, only ever appended. States share it; each looks at its own length."""

    def __init__(self, dimension: int) -> None:
        self.lock = threading.Lock()
        self.buffer: Vector = np.empty((_FIRST_CAPACITY, dimension), np.float32)
        self.keys: list[tuple[MemoryId, int]] = []

    def append(self, key: tuple[MemoryId, int], vector: Vector) -> None:
        used = len(self.keys)
        if used == len(self.buffer):
            grown = np.empty((2 * used, self.buffer.shape[1]), np.float32)
            grown[:used] = self.buffer
            self.buffer = grown
        self.buffer[used] = vector
        self.keys.append(key)

    def copy(self, used: int) -> "_VectorLog":
        copy = _VectorLog(self.buffer.shape[1])
        copy.buffer = self.buffer.copy()
        copy.keys = self.keys[:used]
        return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayState:
    """Every row of one namespace with a number in (base, upto], as of ``upto``.

    Attributes:
        rows: By id, in the order of their numbers.
        numbers: For each place of the vector log the ``vector_nseq`` of its row; -1 where the row
            was replaced or is gone.
        places: For each memory the places of its current vectors, from and to.
    """

    ns_id: int
    base: int
    upto: int
    rows: dict[MemoryId, OverlayRow] = field(default_factory=dict)
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    places: Mapping[MemoryId, tuple[int, int]] = field(default_factory=dict)
    log: _VectorLog | None = None

    def changed_above(self, number: int, arm: Arm) -> Mapping[MemoryId, OverlayRow]:
        """Rows whose number of this arm lies above ``number``."""
        name = f"{arm}_nseq"
        found: dict[MemoryId, OverlayRow] = {}
        for memory_id in reversed(self.rows):
            row = self.rows[memory_id]
            if row.nseq <= number:
                break
            if getattr(row, name) > number:
                found[memory_id] = row
        return found

    def nearest(
        self, vector: Vector, *, above: int, depth: int, within: frozenset[MemoryId] | None
    ) -> list[Candidate]:
        """The ``depth`` best live chunks above a ``vector_nseq``, by inner product."""
        if self.log is None:
            return []
        current = np.flatnonzero(self.numbers > above)
        if within is not None:
            keys = self.log.keys
            current = np.array([p for p in current if keys[p][0] in within], np.int64)
        # einsum, not BLAS: on a busy machine waiting for its threads costs more than the sum.
        scores = np.einsum("nd,d->n", self.log.buffer[current], vector)
        if len(current) > depth:
            best = np.argpartition(-scores, depth)[:depth]
            current, scores = current[best], scores[best]
        return [
            Candidate(self.ns_id, *self.log.keys[place], int(self.numbers[place]), float(score))
            for place, score in zip(current, scores, strict=True)
        ]

    def tokens_above(self, above: int, within: frozenset[MemoryId] | None) -> list[ChunkTokens]:
        """The tokens of every live chunk whose ``keyword_nseq`` lies above ``above``."""
        return [
            ChunkTokens(
                ns_id=self.ns_id,
                memory_id=row.memory_id,
                ordinal=chunk.ordinal,
                keyword_nseq=row.keyword_nseq,
                words=chunk.words,
                bigrams=chunk.bigrams,
                extra=row.extra,
            )
            for row in self.changed_above(above, Arm.KEYWORD).values()
            if row.live and (within is None or row.memory_id in within)
            for chunk in row.chunks
        ]

    def extended(self, rows: Sequence[OverlayRow], upto: int) -> "OverlayState":
        """The state at ``upto``; ``rows`` are those above :attr:`upto`, in order."""
        if not rows:
            return self if upto == self.upto else dataclasses.replace(self, upto=upto)
        held = dict(self.rows)
        for row in rows:
            # A row that changed again moves to the end: rows stay in the order of their numbers.
            held.pop(row.memory_id, None)
            held[row.memory_id] = row
        log = self.log or _first_log(rows)
        if log is None:
            return dataclasses.replace(self, upto=upto, rows=held)
        with log.lock:
            if len(log.keys) != len(self.numbers):
                # Another state went on with the shared log: this one goes its own way.
                log = log.copy(len(self.numbers))
            numbers, places = self._placed(log, rows)
        return dataclasses.replace(
            self, upto=upto, rows=held, numbers=numbers, places=places, log=log
        )

    def _placed(
        self, log: _VectorLog, rows: Sequence[OverlayRow]
    ) -> tuple[NDArray[np.int64], Mapping[MemoryId, tuple[int, int]]]:
        numbers = self.numbers.tolist()
        places = dict(self.places)
        for row in rows:
            start, stop = places.pop(row.memory_id, (0, 0))
            numbers[start:stop] = [-1] * (stop - start)
            first = len(numbers)
            for chunk in row.chunks:
                if chunk.embedding is not None:
                    log.append((row.memory_id, chunk.ordinal), chunk.embedding)
                    numbers.append(row.vector_nseq)
            places[row.memory_id] = (first, len(numbers))
        return np.array(numbers, np.int64), places


def _first_log(rows: Sequence[OverlayRow]) -> _VectorLog | None:
    for row in rows:
        for chunk in row.chunks:
            if chunk.embedding is not None:
                return _VectorLog(len(chunk.embedding))
    return None


class OverlayMemo:
    """The overlays of one process, each as the latest search left it. Thread safe.

    Everything is forgotten when the store's incarnation changes: what was remembered may then be of
    another history.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._incarnation = ""
        self._states: dict[int, OverlayState] = {}

    def start(
        self, incarnation: str, floors: Mapping[int, int], *, whole: bool = True
    ) -> Mapping[int, OverlayState]:
        """For each namespace the state to go on from: one that misses nothing above its floor.

        Without ``whole`` not every index was asked: what lies below the floors of those that were
        may still be wanted by the next search.
        """
        with self._lock:
            if incarnation != self._incarnation:
                self._incarnation = incarnation
                self._states = {}
            return {ns_id: self._from(ns_id, floor, whole=whole) for ns_id, floor in floors.items()}

    def _from(self, ns_id: int, floor: int, *, whole: bool) -> OverlayState:
        state = self._states.get(ns_id)
        fresh = OverlayState(ns_id=ns_id, base=floor, upto=floor)
        if state is None or state.base > floor or state.upto < floor:
            return fresh
        if (whole and state.base < floor) or len(state.rows) > ROWS_MAX:
            # The indexes have caught up with a part of it: let go of that part.
            kept = [row for row in state.rows.values() if row.nseq > floor]
            return fresh if len(kept) > ROWS_MAX else fresh.extended(kept, state.upto)
        return state

    def keep(self, incarnation: str, states: Mapping[int, OverlayState]) -> None:
        """Remember states, unless a newer one of the same base is there already."""
        with self._lock:
            if incarnation != self._incarnation:
                return
            for ns_id, state in states.items():
                known = self._states.get(ns_id)
                if known is None or (state.base, state.upto) > (known.base, known.upto):
                    self._states[ns_id] = state
