"""New vectors of one namespace, set aside in a file until their order is known."""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from memory_tool.adapters.faiss_files import create
from memory_tool.adapters.faiss_merge import Changes
from memory_tool.adapters.faiss_rows import Ids
from memory_tool.adapters.faiss_vectors import Halves, Rows
from memory_tool.errors import InvalidEmbedding
from memory_tool.model import Vector
from memory_tool.port_values import ChangeRow
from memory_tool.unit_vectors import check_units

_BATCH: Final = 1024
"""Vectors checked and converted at once."""


class Spool:
    """Reads the changes of a namespace: vectors go to a file, 26 bytes for each stay in memory."""

    def __init__(self, path: Path, dimension: int) -> None:
        """Use a new file, of vectors of ``dimension`` numbers; 0 takes none."""
        self._file = create(path)
        self._path = path
        self._dimension = dimension
        self._batch: Vector = np.empty((_BATCH, dimension), np.float32)
        self._filled = 0
        self._halves: Halves = np.empty((0, dimension), np.float16)

    def read(self, rows: Iterable[ChangeRow]) -> Changes:
        """Take in all rows; the vectors of the namespace before are forgotten.

        Raises:
            InvalidEmbedding: A vector is not a unit vector of the right dimension.
        """
        self._file.seek(0)
        ids = bytearray()
        versions, counts = array("q"), array("q")
        memories, ordinals = array("q"), array("H")
        for place, row in enumerate(rows):
            before = len(memories)
            for chunk in row.chunks if row.live else ():
                if chunk.embedding is not None:
                    self._append(chunk.embedding)
                    memories.append(place)
                    ordinals.append(chunk.ordinal)
            ids += bytes.fromhex(row.memory_id)
            versions.append(row.version)
            counts.append(len(memories) - before)
        self._settle(len(memories))
        return Changes(
            ids=Ids.from_bytes(ids),
            versions=np.array(versions, np.int64),
            counts=np.array(counts, np.int64),
            memories=np.array(memories, np.int64),
            ordinals=np.array(ordinals, np.uint16),
        )

    def take(self, places: Rows) -> Halves:
        """The vectors at these places, in the order in which they came."""
        taken: Halves = self._halves[places]
        return taken

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
        self._path.unlink()

    def _append(self, vector: Vector) -> None:
        # Assigning would stretch a vector of one number, and round one of another type.
        if vector.shape != (self._dimension,) or vector.dtype != np.float32:
            message = f"an embedding is {vector.dtype}{vector.shape}, not {self._dimension} float32"
            raise InvalidEmbedding(message)
        if self._filled == _BATCH:
            self._file.write(self._converted().data)
        self._batch[self._filled] = vector
        self._filled += 1

    def _settle(self, count: int) -> None:
        rest = self._converted()
        if len(rest) == count:
            # Most namespaces change little: no file needs to be mapped for them.
            self._halves = rest
            return
        self._file.write(rest.data)
        self._file.flush()
        shape = (count, self._dimension)
        self._halves = np.memmap(self._path, np.dtype("<f2"), mode="r", shape=shape)

    def _converted(self) -> Halves:
        vectors = self._batch[: self._filled]
        check_units(vectors, self._dimension)
        self._filled = 0
        return vectors.astype(np.dtype("<f2"))
