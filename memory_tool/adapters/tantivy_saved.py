"""The newest commit of a keyword index as files of a backup, and back."""

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from memory_tool.adapters.tantivy_copies import copy_current, return_to
from memory_tool.adapters.tantivy_folder import writing
from memory_tool.backup_ports import IndexFiles, SavedBackup

_PLACE: Final = "indexes/keywords"


class TantivyFiles(IndexFiles):
    """See :class:`memory_tool.backup_ports.IndexFiles`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        A writer removes what it merged, so the files are held by further names.
        """
        if not self._root.is_dir():
            yield {}
            return
        place = self._root / f"held-{secrets.token_hex(8)}"
        copy = place / "copy"
        try:
            with writing():
                place.mkdir(mode=0o700)
            found = copy_current(self._root, copy)
            names = sorted(path.name for path in copy.iterdir()) if found else []
            yield {f"{_PLACE}/{name}": copy / name for name in names}
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`."""
        saved = [file for file in backup.manifest.files if file.name.startswith(f"{_PLACE}/")]
        if not saved:
            return False
        return_to(self._root, backup.path(saved[0]).parent)
        return True
