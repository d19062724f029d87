"""The erase ledger as a file of JSON Lines, on storage that no restore takes back."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from memory_tool.durable import force
from memory_tool.erase_ledger import encoded_line, parsed_lines
from memory_tool.erase_ports import EraseLedger
from memory_tool.erase_values import LedgerLine
from memory_tool.errors import Unavailable

STORE = "erase ledger"
"""How errors name it."""


class EraseLedgerFile(EraseLedger):
    """See :class:`memory_tool.erase_ports.EraseLedger`. Lines are only ever appended."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> tuple[LedgerLine, ...]:
        """See :meth:`memory_tool.erase_ports.EraseLedger.lines`."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ()
        except OSError as error:
            message = f"the erase ledger {self.path} can't be read: {error.strerror}"
            raise Unavailable(message, store=STORE) from error
        return parsed_lines(text, name=str(self.path))

    def append(self, lines: Sequence[LedgerLine]) -> None:
        """See :meth:`memory_tool.erase_ports.EraseLedger.append`."""
        content = "".join(encoded_line(line) for line in lines).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # Two at once would take each other's half lines for those of a crash.
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                length = _whole_lines(self.path)
                os.ftruncate(descriptor, length)
                try:
                    _write_whole(descriptor, content)
                    os.fsync(descriptor)
                except OSError:
                    # Half a line would make the file unreadable for good.
                    os.ftruncate(descriptor, length)
                    raise
            finally:
                os.close(descriptor)
            force(self.path.parent)
        except OSError as error:
            message = f"the erase ledger {self.path} can't be written: {error.strerror}"
            raise Unavailable(message, store=STORE) from error


def _whole_lines(path: Path) -> int:
    """How many bytes its lines take, without the half one that a crash may have left."""
    return path.read_bytes().rfind(b"\n") + 1


def _write_whole(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
