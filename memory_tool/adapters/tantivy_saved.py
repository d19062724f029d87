"""The newest commit of a keyword index as files of a backup, and back."""

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from memory_tool.adapters.tantivy_folder import TantivyFolder, writing
from memory_tool.backup_ports import IndexFiles, SavedBackup
from memory_tool.job_ports import Lease

_PLACE: Final = "indexes/keywords"


class TantivyFiles(IndexFiles):
    """See :class:`memory_tool.backup_ports.IndexFiles`."""

    def __init__(self, root: Path, *, lease: Lease) -> None:
        self._root = root
        self._folder = TantivyFolder(root)
        self._lease = lease

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        A writer removes what it merged, so the files are held by further names.
        """
        held = self._root / f"held-{secrets.token_hex(8)}"
        try:
            self._folder.hold_newest(held)
            names = sorted(path.name for path in held.iterdir()) if held.exists() else []
            yield {f"{_PLACE}/{name}": held / name for name in names}
        finally:
            shutil.rmtree(held, ignore_errors=True)

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`.

        Whoever applies to the folder goes on with what it has, and rebuilds it.
        """
        saved = [file for file in backup.manifest.files if file.name.startswith(f"{_PLACE}/")]
        if not saved or not self._lease.try_acquire():
            return False
        try:
            with writing():
                self._folder.start_from([backup.path(file) for file in saved])
        finally:
            self._lease.release()
        return True
