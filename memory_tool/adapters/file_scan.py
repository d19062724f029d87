"""Looks for pieces of text in every file of some folders, compressed archives opened."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from memory_tool.erase_ports import FileScan
from memory_tool.erase_values import CanaryScan, Trace

_BLOCK: Final = 8 << 20


class FolderScan(FileScan):
    """See :class:`memory_tool.erase_ports.FileScan`."""

    def __init__(self, folders: Sequence[Path], *, said_elsewhere: Callable[[str], bool]) -> None:
        """Look below ``folders``; a piece that is found is asked for by ``said_elsewhere``."""
        self._folders = folders
        self._said_elsewhere = said_elsewhere

    def scan(self, pieces: Sequence[str]) -> CanaryScan:
        """See :meth:`memory_tool.erase_ports.FileScan.scan`."""
        files = size = 0
        traces: list[Trace] = []
        unread: list[str] = []
        known: dict[str, bool] = {}
        for path in self._files():
            look = _looked_into(path, pieces)
            files, size = files + 1, size + look.size
            unread += [] if look.whole else [str(path)]
            for piece in look.found:
                if piece not in known:
                    known[piece] = self._said_elsewhere(piece)
                traces.append(Trace(file=str(path), elsewhere=known[piece]))
        return CanaryScan(
            pieces=len(pieces),
            files=files,
            bytes=size,
            traces=tuple(dict.fromkeys(traces)),
            unread=tuple(unread),
        )

    def _files(self) -> Iterator[Path]:
        seen: set[tuple[int, int]] = set()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                # A server's files come and go.
                with suppress(FileNotFoundError):
                    if path.is_symlink() or not path.is_file():
                        continue
                    state = path.stat()
                    # A folder may lie in another, and a file have two names.
                    if (state.st_dev, state.st_ino) not in seen:
                        seen.add((state.st_dev, state.st_ino))
                        yield path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    size: int
    found: frozenset[str]
    whole: bool


def _looked_into(path: Path, pieces: Sequence[str]) -> _Look:
    """What a file says of the pieces, also as JSON would write them."""
    wanted = [
        (piece, form.encode())
        for piece in pieces
        for form in {piece, json.dumps(piece, ensure_ascii=False)[1:-1]}
    ]
    keep = max((len(raw) for _, raw in wanted), default=1) - 1
    found: set[str] = set()
    size, whole = 0, True
    try:
        with path.open("rb") as file:
            tail = b""
            # Also one that is being written, `.zst.part`.
            for block in _blocks(file, compressed=".zst" in path.suffixes):
                size += len(block)
                window = tail + block
                found.update(piece for piece, raw in wanted if raw in window)
                tail = window[-keep:] if keep else b""
    except FileNotFoundError:
        pass
    except (OSError, zstandard.ZstdError):
        whole = False
    return _Look(size=size, found=frozenset(found), whole=whole)


def _blocks(file: BinaryIO, *, compressed: bool) -> Iterator[bytes]:
    read = file.read
    if compressed:
        read = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read
    while block := read(_BLOCK):
        yield block
