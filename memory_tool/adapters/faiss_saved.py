"""The published generation of a vector index as files of a backup, and back."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from memory_tool.adapters.faiss_files import (
    MANIFEST,
    check_file,
    generation_folder,
    install,
    link_file,
    read_manifest,
    workshop,
)
from memory_tool.backup_ports import IndexFiles, SavedBackup
from memory_tool.port_values import Pointer

_PLACE: Final = "indexes/vectors"


class FaissFiles(IndexFiles):
    """See :class:`memory_tool.backup_ports.IndexFiles`."""

    def __init__(self, root: Path, *, pointer: Callable[[], Pointer | None]) -> None:
        self._root = root
        self._pointer = pointer

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        The generation before the last stays, so one that is replaced meanwhile is still there.
        """
        pointer = self._pointer()
        yield self._files(pointer) if pointer else {}

    def _files(self, pointer: Pointer) -> Mapping[str, Path]:
        manifest = read_manifest(self._root, pointer)
        folder = generation_folder(self._root, pointer.generation)
        for name in manifest.files:
            check_file(folder, manifest, name=name)
        names = (MANIFEST, *manifest.files)
        return {f"{_PLACE}/{folder.name}/{name}": folder / name for name in names}

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`."""
        saved = [file for file in backup.manifest.files if file.name.startswith(f"{_PLACE}/")]
        if not saved:
            return False
        final = self._root / saved[0].name.split("/")[-2]
        if final.exists():
            # The same one, or one of another history under its number: the pointer tells.
            return False
        with workshop(self._root) as folder:
            for file in saved:
                link_file(backup.path(file), folder / Path(file.name).name)
            install(folder, final)
        return True
