"""One host: the folder of its indexes, the lease of their applier, the names of its processes."""

import fcntl
import os
import re
import secrets
import socket
import threading
from pathlib import Path
from typing import Final

from memory_tool.errors import Corrupt, SettingsError
from memory_tool.job_ports import Lease

_IDENTITY: Final = "folder-id"
_IDENTITY_BYTES: Final = 8
_LOCK: Final = "applier.lock"


def open_folder(path: Path) -> str:
    """Make the folder if need be, private to its user, and return its random identity.

    Raises:
        SettingsError: The folder can't be made or written.
        Corrupt: The identity file is damaged.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = path / _IDENTITY
        if not file.exists():
            _write_once(file, secrets.token_hex(_IDENTITY_BYTES))
        identity = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        message = f"the data folder {path} can't be used: {error.strerror}"
        raise SettingsError(message) from error
    if not re.fullmatch(f"[0-9a-f]{{{2 * _IDENTITY_BYTES}}}", identity):
        message = f"{file} is damaged: remove the folder's indexes and open again"
        raise Corrupt(message)
    return identity


def _write_once(file: Path, text: str) -> None:
    """Write a file that appears whole or not at all; the first of several writers wins."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def process_name() -> str:
    """Host and process for people, and a random part that tells it from every other."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


class FolderLease(Lease):
    """A non-blocking flock on a file of the folder; the kernel frees it when its holder dies."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOCK
        # Two threads would open the file twice, and each find it locked by the other.
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._pid = 0

    def try_acquire(self) -> bool:
        """See :meth:`memory_tool.job_ports.Lease.try_acquire`."""
        with self._lock:
            if self._descriptor is not None:
                # A child of fork shares the descriptor, but not the right.
                return self._pid == os.getpid()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return False
            self._descriptor, self._pid = descriptor, os.getpid()
            return True

    def release(self) -> None:
        """See :meth:`memory_tool.job_ports.Lease.release`."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
