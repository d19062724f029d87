"""A disk that is soon full."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder on a file system in memory of this size, which every user may pass through.

    It takes root and the right to mount; where that is missing, the test is skipped and says so.
    """
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as parent:
        Path(parent).chmod(0o711)
        folder = Path(parent) / "d"
        folder.mkdir()
        size = f"size={megabytes}m,mode=0711"
        mount = ["mount", "-t", "tmpfs", "-o", size, "threefold-test", str(folder)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small disk can't be mounted here: {done.stderr.strip()}")
        try:
            yield folder
        finally:
            # Lazily: a process that a failed test left behind would keep the place busy.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
