"""The sign of life of a data folder's worker: a file whose time is never older than its lease.

Standard library only: a probe that runs each few seconds must not load anything heavy.
"""

import os
import time
from pathlib import Path
from typing import Final

_FILE: Final = "worker.alive"


def beat(folder: Path) -> None:
    """Say that the worker of this folder is alive."""
    path = folder / _FILE
    path.touch(mode=0o600)
    # Of this machine's clock, also where a file server has one of its own.
    now = time.time()
    os.utime(path, (now, now))


def fall_silent(folder: Path) -> None:
    """The worker ends."""
    (folder / _FILE).unlink(missing_ok=True)


def silent_since(folder: Path) -> float | None:
    """Seconds since the last beat; ``None`` when no worker runs, or it ended by itself."""
    try:
        return max(0.0, time.time() - (folder / _FILE).stat().st_mtime)
    except OSError:
        return None
