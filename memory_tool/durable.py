"""What makes files outlive a crash of the machine."""

import os
from pathlib import Path


def force(path: Path) -> None:
    """Force the content of a file, or the names in a folder, to disk.

    Raises:
        OSError: It can't be.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
