"""The port of the archive: where the texts of cold memories are kept.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_tool.model import ArchivePlace, Json, MemoryId
from memory_tool.port_values import ArchiveFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPlace:
    """Where a chunk lies in the text: ``content[start:stop]``."""

    ordinal: int
    start: int
    stop: int
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRecord:
    """All that is known of a memory when its text leaves the store.

    Attributes:
        namespace: Its address, for whoever reads the file without a database.
        image: Every field of the memory under its name, ``content`` among them.
        versions: The old versions that are kept, oldest first: ``version``, ``replaced_at`` and
            the ``image`` of each.
        chunks: Where its chunks lie.
    """

    id: MemoryId
    namespace: str
    image: Mapping[str, Json]
    versions: tuple[Mapping[str, Json], ...]
    chunks: tuple[ChunkPlace, ...]

    @property
    def nseq(self) -> int:
        """The number of the memory's last change."""
        return int(str(self.image["nseq"]))

    @property
    def content(self) -> str:
        """The whole text."""
        return str(self.image["content"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file that lies in the archive, whether the store knows of it or not; age in seconds."""

    size: int
    age: float


class Archive(Protocol):
    """Files of memories. A file is never changed: what is to go from it goes by a new one."""

    def write(self, ns_id: int, records: Sequence[ArchiveRecord]) -> ArchiveFile:
        """A new file of these records, which no crash can take away any more.

        Every record has been read back when this returns.

        Raises:
            Unavailable: It can't be written; nothing is left of it.
            Corrupt: It reads otherwise than it was written.
        """
        ...

    def read(self, place: ArchivePlace) -> ArchiveRecord:
        """The record of this place.

        Raises:
            Corrupt: What lies there is missing, damaged, or not what was written.
            Unavailable: The archive can't be reached.
        """
        ...

    def remove(self, name: str) -> None:
        """The file is gone for good; harmless if it is already.

        Raises:
            Unavailable: The archive can't be reached.
        """
        ...

    def files(self) -> Mapping[str, FoundFile]:
        """Every file that lies there, also what a crash left half written.

        Raises:
            Unavailable: The archive can't be reached.
        """
        ...
