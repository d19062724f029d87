"""Vectors in a file: half floats in rows, mapped into memory, each stretch with a checksum."""

import hashlib
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from memory_tool.adapters.faiss_manifest import FilePrint
from memory_tool.errors import Corrupt
from memory_tool.model import Vector

Halves: TypeAlias = NDArray[np.float16]
"""Stored vectors, shape (count, dimension)."""

Rows: TypeAlias = NDArray[np.int64]
"""Numbers of rows, shape (count,)."""

STRETCH_BYTES: Final = 1 << 20
"""Bytes under one checksum, about: checking one costs 0.25 ms (CRC-32 at 4 GB/s)."""

SCAN_BYTES: Final = 4 << 20
"""Floats decoded at once in passing. They stay in the processor's cache: scanning 100,000 rows of
384 numbers takes 14 ms, with 16 MiB at once 40 ms, with 0.5 MiB 29 ms."""

_SIGN_EXPONENT_FRACTION: Final = np.int32(-0x70000001)
_EXPONENT_SHIFT: Final = np.float32(2.0**112)


def decoded(halves: Halves) -> Vector:
    """The same values as float32, exactly; infinite ones are not foreseen.

    The bits of a half are moved to their places in a float, and its exponent, whose bias is 15
    instead of 127, is corrected by a multiplication: five times as fast as ``astype``.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_EXPONENT_FRACTION
    values = bits.view(np.float32)
    values *= _EXPONENT_SHIFT
    return values


def inner_products(vectors: Vector, query: Vector) -> Vector:
    """The inner product of each row with the query, in the calling thread alone.

    NumPy's product would wake the threads of BLAS, and on a busy machine waiting for them took a
    hundred times as long as the sum.
    """
    rows = np.ascontiguousarray(vectors, np.float32)
    one = np.ascontiguousarray(query, np.float32)
    sums = np.empty(len(rows), np.float32)
    if len(rows):
        pointers = (faiss.swig_ptr(array) for array in (sums, one, rows))
        kernel = faiss.fvec_inner_products_ny  # type: ignore[attr-defined] # missing in the stubs
        kernel(*pointers, rows.shape[1], len(rows))
    return sums


def steps(
    start: int, stop: int, *, dimension: int, at_once: int = SCAN_BYTES
) -> Iterator[tuple[int, int]]:
    """Ranges that cover the rows from ``start`` to ``stop``, of ``at_once`` bytes as floats."""
    step = max(1, at_once // (4 * max(dimension, 1)))
    for first in range(start, stop, step):
        yield first, min(first + step, stop)


def _stretch_rows(dimension: int) -> int:
    return max(1, STRETCH_BYTES // (2 * max(dimension, 1)))


class VectorFile:
    """The mapped file. Each stretch is verified when it is touched first."""

    def __init__(
        self, path: Path, *, rows: int, dimension: int, checks: NDArray[np.uint32]
    ) -> None:
        """Map ``rows`` vectors of ``path``; ``checks`` has the CRC-32 of each stretch.

        Raises:
            Corrupt: The file can't be mapped or has another length.
        """
        self._name = f"{path.parent.name}/{path.name}"
        self._halves: Halves = np.empty((0, dimension), np.float16)
        self._stretch = _stretch_rows(dimension)
        self._checks = checks
        if rows:
            self._halves = _mapped(path, rows * dimension * 2).reshape(rows, dimension)
        if len(checks) != -(-rows // self._stretch):
            message = f"{self._name} has {len(checks)} checksums for {rows} rows"
            raise Corrupt(message)
        self._verified = np.zeros(len(checks), np.bool_)
        self._whole = not len(checks)

    def between(self, start: int, stop: int) -> Halves:
        """The rows from ``start`` to ``stop``, without copying.

        Raises:
            Corrupt: They were changed since they were written.
        """
        if start < stop and not self._whole:
            first, last = start // self._stretch, (stop - 1) // self._stretch
            self._verify(np.arange(first, last + 1))
        return self._halves[start:stop]

    def take(self, rows: Rows) -> Halves:
        """A copy of these rows.

        Raises:
            Corrupt: They were changed since they were written.
        """
        if not self._whole:
            self._verify(np.unique(rows // self._stretch))
        return self._halves[rows]

    def verify(self) -> None:
        """Read the whole file.

        Raises:
            Corrupt: It was changed since it was written.
        """
        for stretch in range(len(self._checks)):
            self._verify(np.array([stretch]), again=True)

    def _verify(self, stretches: Rows, *, again: bool = False) -> None:
        for stretch in stretches if again else stretches[~self._verified[stretches]]:
            start = int(stretch) * self._stretch
            found = zlib.crc32(self._halves[start : start + self._stretch].data)
            self._verified[stretch] = found == self._checks[stretch]
            if not self._verified[stretch]:
                self._whole = False
                message = f"{self._name} is damaged in stretch {stretch}"
                raise Corrupt(message)
        self._whole = bool(self._verified.all())


def _mapped(path: Path, length: int) -> Halves:
    try:
        with path.open("rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        message = f"{path.parent.name}/{path.name} can't be mapped: {error}"
        raise Corrupt(message) from error
    if len(view) != length:
        message = f"{path.parent.name}/{path.name} has {len(view)} bytes, not {length}"
        raise Corrupt(message)
    return np.frombuffer(view, np.dtype("<f2"))


class VectorWriter:
    """Appends rows to an open file and keeps their checksums."""

    def __init__(self, file: BinaryIO, dimension: int) -> None:
        self._file = file
        self._room = _stretch_rows(dimension)
        self._stretch = self._room
        self._checks: list[int] = []
        self._hash = hashlib.sha256()
        self._length = 0

    def append(self, halves: Halves) -> None:
        """Write these rows behind the others."""
        at = 0
        while at < len(halves):
            if self._room == self._stretch:
                self._checks.append(0)
            piece = np.ascontiguousarray(halves[at : at + self._room])
            self._checks[-1] = zlib.crc32(piece.data, self._checks[-1])
            self._hash.update(piece.data)
            self._length += self._file.write(piece.data)
            at += len(piece)
            self._room = self._room - len(piece) or self._stretch

    @property
    def checks(self) -> NDArray[np.uint32]:
        """The CRC-32 of each stretch."""
        return np.array(self._checks, np.uint32)

    @property
    def print(self) -> FilePrint:
        """What the file has to be."""
        return FilePrint(length=self._length, sha256=self._hash.hexdigest())
