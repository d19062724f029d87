"""The archive as a folder of zstd-compressed JSON Lines: ``zstdcat FILE | jq`` reads it without us.

A file is a row of frames, each compressed by itself and of a few dozen lines, so that a record is
read without its whole file; to zstd and its tools many frames are one stream. A file appears under
its name only when it is whole and on the disk.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from memory_tool.archive_ports import Archive, ArchiveRecord, ChunkPlace, FoundFile
from memory_tool.durable import force
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.model import ArchivePlace
from memory_tool.port_values import ArchiveFile

SUFFIX: Final = ".jsonl.zst"
FORMAT: Final = "threefold-archive/1"
_UNFINISHED: Final = ".part"
_FRAME_BYTES: Final = 64 * 1024
"""Of text before it is compressed: reading one record takes 0.1 ms, and a frame of 64 KiB
compresses nearly as well as a whole file."""
_FRAME_BYTES_MAX: Final = 1 << 30
"""No frame of ours is as long: a record of 10 MB with ten versions is a tenth of it."""
_LEVEL: Final = 9
_STORE: Final = "archive"


class ArchiveFolder(Archive):
    """See :class:`memory_tool.archive_ports.Archive`. The folder is made with the first file."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, ns_id: int, records: Sequence[ArchiveRecord]) -> ArchiveFile:
        """See :meth:`memory_tool.archive_ports.Archive.write`."""
        name = f"{ns_id}-{secrets.token_hex(16)}{SUFFIX}"
        unfinished = self._root / (name + _UNFINISHED)
        try:
            with _writing():
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                written = _write_frames(unfinished, name, ns_id=ns_id, records=records)
                unfinished.rename(self._root / name)
                force(self._root)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        for record in records:
            if self.read(written.places[record.id]) != record:
                message = f"the archive file {name} reads otherwise than it was written"
                raise Corrupt(message)
        return written

    def read(self, place: ArchivePlace) -> ArchiveRecord:
        """See :meth:`memory_tool.archive_ports.Archive.read`."""
        try:
            line = _line_at(self._root / _checked_name(place.file), place)
        except FileNotFoundError as error:
            message = f"the archive file {place.file} is missing"
            raise Corrupt(message, command="threefold tiers") from error
        except OSError as error:
            message = f"the archive file {place.file} can't be read: {error.strerror or error}"
            raise Unavailable(message, store=_STORE) from error
        except zstandard.ZstdError as error:
            message = f"the archive file {place.file} is damaged ({error})"
            raise Corrupt(message, command="threefold tiers") from error
        if hashlib.sha256(line).hexdigest() != place.sha256:
            message = f"the archive file {place.file} does not hold what was written there"
            raise Corrupt(message, command="threefold tiers")
        return _record_of(line)

    def remove(self, name: str) -> None:
        """See :meth:`memory_tool.archive_ports.Archive.remove`."""
        with _writing():
            (self._root / _checked_name(name)).unlink(missing_ok=True)

    def files(self) -> Mapping[str, FoundFile]:
        """See :meth:`memory_tool.archive_ports.Archive.files`."""
        now = time.time()
        found: dict[str, FoundFile] = {}
        with _writing():
            for path in self._root.glob(f"*{SUFFIX}*") if self._root.exists() else ():
                state = path.stat()
                found[path.name] = FoundFile(size=state.st_size, age=now - state.st_mtime)
        return found


def _write_frames(
    path: Path, name: str, *, ns_id: int, records: Sequence[ArchiveRecord]
) -> ArchiveFile:
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    places: dict[str, ArchivePlace] = {}
    whole = hashlib.sha256()
    at = 0
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor, for the mode
        for lines in _frames(records):
            frame = compressor.compress(b"".join(line + b"\n" for _, line in lines))
            for number, (memory_id, line) in enumerate(lines):
                places[memory_id] = ArchivePlace(
                    file=name, at=at, line=number, sha256=hashlib.sha256(line).hexdigest()
                )
            file.write(frame)
            whole.update(frame)
            at += len(frame)
        file.flush()
        os.fsync(file.fileno())
    return ArchiveFile(name=name, ns_id=ns_id, sha256=whole.hexdigest(), size=at, places=places)


def _frames(records: Sequence[ArchiveRecord]) -> Iterator[list[tuple[str, bytes]]]:
    """(id, line) of each record, as many together as make a frame."""
    lines: list[tuple[str, bytes]] = []
    size = 0
    for record in records:
        line = _line_of(record)
        lines.append((record.id, line))
        size += len(line)
        if size >= _FRAME_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _line_of(record: ArchiveRecord) -> bytes:
    document = {
        "format": FORMAT,
        "id": record.id,
        "namespace": record.namespace,
        "memory": record.image,
        "versions": record.versions,
        "chunks": [asdict(chunk) for chunk in record.chunks],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def _record_of(line: bytes) -> ArchiveRecord:
    document: dict[str, Any] = json.loads(line)
    return ArchiveRecord(
        id=document["id"],
        namespace=document["namespace"],
        image=document["memory"],
        versions=tuple(document["versions"]),
        chunks=tuple(ChunkPlace(**chunk) for chunk in document["chunks"]),
    )


def _line_at(path: Path, place: ArchivePlace) -> bytes:
    with path.open("rb") as file:
        file.seek(place.at)
        return _nth_line(file, place.line)


def _nth_line(file: BinaryIO, number: int) -> bytes:
    """The line of the frame that begins here; empty where there is none."""
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
    with reader:
        held = b""
        while held.count(b"\n") <= number and len(held) < _FRAME_BYTES_MAX:
            read = reader.read(_FRAME_BYTES)
            if not read:
                break
            held += read
    lines = held.split(b"\n")
    return lines[number] if number < len(lines) else b""


def _checked_name(name: str) -> str:
    # A row of the store may be damaged as well: no name leads out of the folder.
    if "/" in name or not name.endswith((SUFFIX, SUFFIX + _UNFINISHED)):
        message = f"{name!r} is no file of the archive"
        raise Corrupt(message)
    return name


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the archive can't be written: {error.strerror or error}"
        raise Unavailable(message, store=_STORE) from error
