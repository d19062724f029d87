"""Looks for pieces of text in every file of some folders, compressed archives opened."""

from collections.abc import Callable, Iterator, Sequence
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
        known: dict[str, bool] = {}
        for path in self._files():
            read, found = _found_in(path, pieces)
            files, size = files + 1, size + read
            for piece in found:
                if piece not in known:
                    known[piece] = self._said_elsewhere(piece)
                traces.append(Trace(file=str(path), elsewhere=known[piece]))
        return CanaryScan(pieces=len(pieces), files=files, bytes=size, traces=tuple(traces))

    def _files(self) -> Iterator[Path]:
        seen: set[tuple[int, int]] = set()
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                if path.is_symlink() or not path.is_file():
                    continue
                state = path.stat()
                # A folder may lie in another, and a file have two names.
                if (state.st_dev, state.st_ino) not in seen:
                    seen.add((state.st_dev, state.st_ino))
                    yield path


def _found_in(path: Path, pieces: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    wanted = {piece: piece.encode() for piece in pieces}
    keep = max((len(raw) for raw in wanted.values()), default=1) - 1
    found: set[str] = set()
    size = 0
    try:
        with path.open("rb") as file:
            tail = b""
            for block in _blocks(file, compressed=path.suffix == ".zst"):
                size += len(block)
                window = tail + block
                found.update(piece for piece, raw in wanted.items() if raw in window)
                tail = window[-keep:] if keep else b""
    except FileNotFoundError:
        # A server's files come and go.
        pass
    return size, tuple(piece for piece in pieces if piece in found)


def _blocks(file: BinaryIO, *, compressed: bool) -> Iterator[bytes]:
    read = file.read
    if compressed:
        read = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read
    while block := read(_BLOCK):
        yield block
