"""Folders of backups: how one is made durable, and how one is read back without trusting it.

README.txt              how to read the rest without Threefold
tables/memory.tsv.zst   a table as COPY writes text, compressed
archives/ indexes/      files that were taken in as they are
manifest.json           what all of these have to be; written last
"""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from memory_tool.backup_manifest import ANOTHER, BackupManifest, SavedFile, SavedTable
from memory_tool.backup_ports import BackupDraft, SavedBackup
from memory_tool.durable import force
from memory_tool.errors import Corrupt, InputError, NotFound, Unavailable

MANIFEST: Final = "manifest.json"
README: Final = "README.txt"
ENDING: Final = ".tsv.zst"
UNFINISHED: Final = ".unfinished-"

_BLOCK: Final = 1 << 20
_LEVEL: Final = 3
"""zstd's own default: vectors, the most of a backup, get no smaller for more."""

_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def backup_draft(final: Path) -> Iterator["FolderDraft"]:
    """A folder beside ``final`` to build a backup in, gone afterwards unless it was finished.

    Raises:
        InputError: ``final`` is there already, or the folder that it shall be in is not.
    """
    if final.exists() or final.is_symlink():
        message = f"{final} is there already: a backup goes into a new folder"
        raise InputError(message)
    if not final.parent.is_dir():
        message = f"there is no folder {final.parent}"
        raise InputError(message)
    folder = final.with_name(f"{final.name}{UNFINISHED}{secrets.token_hex(4)}")
    with _written():
        folder.mkdir(mode=0o700)
    try:
        yield FolderDraft(folder, final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class FolderDraft(BackupDraft):
    """See :class:`memory_tool.backup_ports.BackupDraft`."""

    def __init__(self, folder: Path, final: Path) -> None:
        self._folder = folder
        self._final = final

    def write(self, name: str, pieces: Iterable[bytes]) -> SavedFile:
        """See :meth:`memory_tool.backup_ports.BackupDraft.write`."""
        name += ENDING
        with _written(), self._create(name) as file:
            hashed = _Hashed(file)
            compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
            for piece in pieces:
                hashed.write(compressor.compress(piece))
            hashed.write(compressor.flush())
        return hashed.file(name)

    def link(self, name: str, source: Path) -> SavedFile:
        """See :meth:`memory_tool.backup_ports.BackupDraft.link`."""
        path = self._place(name)
        with _written():
            try:
                os.link(source, path, follow_symlinks=False)
            except OSError:
                with _readable(source) as old, self._create(name) as new:
                    shutil.copyfileobj(old, new, _BLOCK)
        return _print_of(path, name)

    def finish(self, manifest: BackupManifest) -> None:
        """See :meth:`memory_tool.backup_ports.BackupDraft.finish`."""
        with _written():
            with self._create(MANIFEST) as file:
                file.write(manifest.encoded())
            for path in self._folder.rglob("*"):
                force(path)
            force(self._folder)
            try:
                self._folder.rename(self._final)
            except OSError as error:
                if not self._final.exists():
                    raise
                message = f"{self._final} was made by somebody else meanwhile"
                raise InputError(message) from error
            force(self._final.parent)

    def note(self, name: str, content: bytes) -> SavedFile:
        """See :meth:`memory_tool.backup_ports.BackupDraft.note`."""
        with _written(), self._create(name) as file:
            hashed = _Hashed(file)
            hashed.write(content)
        return hashed.file(name)

    def _create(self, name: str) -> BinaryIO:
        return os.fdopen(os.open(self._place(name), _FLAGS, 0o600), "wb")

    def _place(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


class _Hashed:
    """A file that knows what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._length = 0

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._digest.update(piece)
        self._length += len(piece)

    def file(self, name: str) -> SavedFile:
        return SavedFile(name=name, length=self._length, sha256=self._digest.hexdigest())


class FolderBackup(SavedBackup):
    """See :class:`memory_tool.backup_ports.SavedBackup`."""

    def __init__(self, folder: Path, manifest: BackupManifest) -> None:
        self._folder = folder
        self._manifest = manifest

    @classmethod
    def opened(cls, folder: Path) -> "FolderBackup":
        """The backup in ``folder``; nothing but its manifest is read yet.

        Raises:
            NotFound: There is no such folder.
            Corrupt: It holds no finished backup, or the manifest is damaged.
        """
        if not folder.is_dir():
            message = f"there is no folder {folder}"
            raise NotFound(message)
        with _readable(folder / MANIFEST) as file:
            return cls(folder, BackupManifest.decoded(file.read()))

    @property
    def manifest(self) -> BackupManifest:
        """See :attr:`memory_tool.backup_ports.SavedBackup.manifest`."""
        return self._manifest

    def path(self, file: SavedFile) -> Path:
        """See :meth:`memory_tool.backup_ports.SavedBackup.path`."""
        return self._folder / file.name

    def put(self, file: SavedFile, place: Path) -> None:
        """See :meth:`memory_tool.backup_ports.SavedBackup.put`."""
        if place.exists():
            if _print_of(place, file.name) != file:
                message = f"{place} is there and is not what the backup has under this name"
                raise Corrupt(message, command=ANOTHER)
            return
        draft = place.with_name(f"{place.name}{UNFINISHED}{secrets.token_hex(4)}")
        try:
            with _written():
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with (
                    _readable(self.path(file)) as old,
                    os.fdopen(os.open(draft, _FLAGS, 0o600), "wb") as new,
                ):
                    shutil.copyfileobj(old, new, _BLOCK)
                    new.flush()
                    os.fsync(new.fileno())
                draft.rename(place)
                force(place.parent)
        finally:
            draft.unlink(missing_ok=True)

    def verify(self, read: Callable[[int], None]) -> None:
        """See :meth:`memory_tool.backup_ports.SavedBackup.verify`."""
        expected = {MANIFEST, *(file.name for file in self._manifest.all_files)}
        found = {
            path.relative_to(self._folder).as_posix()
            for path in self._folder.rglob("*")
            if not path.is_dir() or path.is_symlink()
        }
        if strange := sorted(found - expected):
            message = f"{strange[0]} is no part of the backup"
            raise Corrupt(message, command=ANOTHER)
        for table in self._manifest.tables:
            lines = sum(piece.count(b"\n") for piece in self.rows(table, read))
            if lines != table.rows + 1:
                message = f"{table.file.name} has {lines - 1} rows, not {table.rows}"
                raise Corrupt(message, command=ANOTHER)
        for file in self._manifest.files:
            if _print_of(self.path(file), file.name) != file:
                raise _damaged(file)
            read(file.length)

    def rows(self, table: SavedTable, read: Callable[[int], None]) -> Iterator[bytes]:
        """See :meth:`memory_tool.backup_ports.SavedBackup.rows`."""
        file, digest, length = table.file, hashlib.sha256(), 0
        expander = zstandard.ZstdDecompressor().decompressobj()
        with _readable(self.path(file)) as raw:
            while block := raw.read(_BLOCK):
                digest.update(block)
                length += len(block)
                if expander.eof:
                    break
                try:
                    piece = expander.decompress(block)
                except zstandard.ZstdError as error:
                    raise _damaged(file) from error
                read(len(block))
                yield piece
        whole = expander.eof and not expander.unused_data
        if not whole or (length, digest.hexdigest()) != (file.length, file.sha256):
            raise _damaged(file)


def _damaged(file: SavedFile) -> Corrupt:
    return Corrupt(f"{file.name} of the backup is damaged")


def _print_of(path: Path, name: str) -> SavedFile:
    with _readable(path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return SavedFile(name=name, length=file.tell(), sha256=digest.hexdigest())


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[BufferedReader]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            yield file
    except OSError as error:
        message = f"{path.name} can't be read: {error.strerror}"
        raise Corrupt(message, command=ANOTHER) from error


@contextlib.contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the backup can't be written: {error.strerror or error}"
        raise Unavailable(message, store="backup") from error
