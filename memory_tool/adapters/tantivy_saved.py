"""What a keyword index holds as files of a backup, and back."""

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from memory_tool.adapters.tantivy_copies import copy_index
from memory_tool.adapters.tantivy_folder import (
    CURRENT,
    named,
    next_number,
    opened_at,
    remove_unnamed,
    write_durably,
    writing,
)
from memory_tool.backup_ports import IndexFiles, SavedBackup
from memory_tool.job_ports import Lease

_PLACE: Final = "indexes/keywords/"


class TantivyFiles(IndexFiles):
    """See :class:`memory_tool.backup_ports.IndexFiles`."""

    def __init__(self, root: Path, *, lease: Lease) -> None:
        """Tell where the index lies, and whose right it is to write there."""
        self._root = root
        self._lease = lease

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        A writer removes what it merged, so the files are held by further names.
        """
        number = named(self._root / CURRENT)
        if number is None:
            yield {}
            return
        held = self._root / f"held-{secrets.token_hex(8)}"
        try:
            copy_index(self._root / number, held)
            opened_at(held)
            yield {f"{_PLACE}{path.name}": path for path in sorted(held.iterdir())}
        finally:
            shutil.rmtree(held, ignore_errors=True)

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`.

        Whoever applies to the folder goes on with what it has, and rebuilds it.
        """
        saved = [file for file in backup.manifest.files if file.name.startswith(_PLACE)]
        if not saved or not self._lease.try_acquire():
            return False
        try:
            with writing():
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                number = str(next_number(self._root))
            copy_index(backup.path_of(saved[0].name).parent, self._root / number)
            with writing():
                write_durably(self._root / CURRENT, number)
                remove_unnamed(self._root)
        finally:
            self._lease.release()
        return True
