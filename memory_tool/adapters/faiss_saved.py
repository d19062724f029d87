"""The published generations of the spaces' vector indexes as files of a backup, and back."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
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
    """See :class:`memory_tool.backup_ports.IndexFiles`.

    ``published`` says which generation is searched, by the folder of its space below ``root``.
    """

    def __init__(self, root: Path, *, published: Callable[[], Mapping[Path, Pointer]]) -> None:
        self._root = root
        self._published = published

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        The generation before the last stays, so one that is replaced meanwhile is still there.
        """
        files: dict[str, Path] = {}
        for space, pointer in self._published().items():
            files |= _files(space, pointer)
        yield files

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`."""
        saved = sorted(
            backup.path(file)
            for file in backup.manifest.files
            if file.name.startswith(f"{_PLACE}/")
        )
        done = [self._installed(folder, files) for folder, files in groupby(saved, _folder_of)]
        return any(done)

    def _installed(self, saved: Path, files: Iterator[Path]) -> bool:
        final = self._root / saved.parent.name / saved.name
        if final.exists():
            # The same one, or one of another history under its number: the pointer tells.
            return False
        with workshop(final.parent) as folder:
            for file in files:
                link_file(file, folder / file.name)
            install(folder, final)
        return True


def _files(space: Path, pointer: Pointer) -> Mapping[str, Path]:
    manifest = read_manifest(space, pointer)
    folder = generation_folder(space, pointer.generation)
    for name in manifest.files:
        check_file(folder, manifest, name=name)
    names = (MANIFEST, *manifest.files)
    return {f"{_PLACE}/{space.name}/{folder.name}/{name}": folder / name for name in names}


def _folder_of(file: Path) -> Path:
    return file.parent
