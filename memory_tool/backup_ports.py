"""The ports of backups: the truth as tables that go out and come in, and the folder between.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memory_tool.backup_manifest import BackupManifest, SavedFile, SavedTable, SchemaStep
from memory_tool.erase_values import LedgerLine
from memory_tool.port_values import Pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """A table to be saved: its columns, and how many bytes of the disk it takes."""

    name: str
    columns: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a dump is of; the words of :class:`~memory_tool.backup_manifest.BackupManifest`.

    Attributes:
        pointers: The published generation of each target.
        archives: The files of the archive that rows name, with their SHA-256 in hex.
    """

    store: str
    made_at: datetime
    memories: int
    schema: tuple[SchemaStep, ...]
    sequences: Mapping[str, int]
    tables: tuple[TableShape, ...]
    pointers: Mapping[str, Pointer]
    archives: Mapping[str, str]


class Dump(Protocol):
    """One moment of the truth; nothing that is committed meanwhile is in it."""

    @property
    def moment(self) -> Moment:
        """What it is of."""
        ...

    def rows(self, table: TableShape) -> Iterator[bytes]:
        """The table as COPY writes text, a line of column names first, in pieces of whole lines.

        One at a time, to its end, while the dump is open.
        """
        ...


class BackupSource(Protocol):
    """The truth, to be saved."""

    def dump(self) -> AbstractContextManager[Dump]:
        """Open one moment, over all namespaces, until the block ends. Nobody waits for it."""
        ...


class BackupDraft(Protocol):
    """The folder of a backup in the making. It isn't there under its name before it is finished."""

    def write(self, name: str, pieces: Iterable[bytes]) -> SavedFile:
        """Write a compressed file, ``name`` without the ending for that.

        Raises:
            Unavailable: The disk is full or refuses.
        """
        ...

    def note(self, name: str, content: bytes) -> SavedFile:
        """Write a small file as it is.

        Raises:
            Unavailable: The disk is full or refuses.
        """
        ...

    def link(self, name: str, source: Path) -> SavedFile:
        """Take an unchanging file in: under another name, or copied from another file system.

        Raises:
            Corrupt: It can't be read.
            Unavailable: The disk is full or refuses.
        """
        ...

    def finish(self, manifest: BackupManifest) -> None:
        """Force everything to disk and give the folder its name.

        Raises:
            InputError: Somebody else gave that name to another one meanwhile.
            Unavailable: The disk is full or refuses.
        """
        ...


class SavedBackup(Protocol):
    """A finished backup. Every way to read it compares what is read with the manifest."""

    @property
    def manifest(self) -> BackupManifest:
        """What it says of itself."""
        ...

    def verify(self, read: Callable[[int], None]) -> None:
        """Read everything; ``read`` hears how many bytes each step took.

        Raises:
            Corrupt: A file is missing, damaged, or no part of the backup; names it.
        """
        ...

    def rows(self, table: SavedTable, read: Callable[[int], None]) -> Iterator[bytes]:
        """What was written as this table, in pieces; ``read`` hears how many bytes each took.

        Raises:
            Corrupt: The file is damaged, told at its end at the latest.
        """
        ...

    def path(self, file: SavedFile) -> Path:
        """Where a file lies."""
        ...

    def put(self, file: SavedFile, place: Path) -> None:
        """Put a file where it belongs, durably, unless it is there already.

        Raises:
            Corrupt: Another one is in its place.
            Unavailable: The disk is full or refuses.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreWish:
    """How to restore.

    Attributes:
        replace: Go on though memories are lost that the backup doesn't have.
        erased: What has to stay erased, whatever the backup holds: the orders of this store.
        before_commit: Puts files in place that belong to the rows; called last.
        written: Hears how many bytes of the backup each step took.
    """

    replace: bool
    erased: Sequence[LedgerLine]
    before_commit: Callable[[], None]
    written: Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did: memories in the store now, those it lost for that, those erased again."""

    memories: int
    lost: int
    erased: int


class RestoreTarget(Protocol):
    """The truth, to be replaced by a backup."""

    def restore(self, backup: SavedBackup, wish: RestoreWish) -> Restored:
        """Replace everything in one transaction, the store's identity too: it names the numbers.

        Raises:
            WouldLose: The store has memories that the backup lacks, and ``replace`` was not said.
            Corrupt: The backup is damaged, or of a newer version, which is named.
            Unavailable: Others use the tables and didn't let go in time; says who.
        """
        ...


class IndexFiles(Protocol):
    """The files of an index in the data folder, which may be saved to spare a rebuild."""

    def published(self) -> AbstractContextManager[Mapping[str, Path]]:
        """Unchanging files that make up what searches read now, by their names in a backup.

        They are there until the block ends, whatever the index does meanwhile.

        Raises:
            Corrupt: One of them is damaged.
        """
        ...

    def put_back(self, backup: SavedBackup) -> bool:
        """Put saved files where searches of the restored store look for them, if they belong here.

        Never over others. Whether they are there now; if not, the index is rebuilt by itself.
        """
        ...
