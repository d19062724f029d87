"""The published generations of a vector index as files of a backup, and back."""

import contextlib
import re
import secrets
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
    remove,
)
from memory_tool.backup_ports import IndexFiles, SavedBackup
from memory_tool.port_values import Pointer

_PLACE: Final = re.compile(r"indexes/vectors-(\d+)/(gen-\d+)/[\w.-]+")


class FaissFiles(IndexFiles):
    """See :class:`memory_tool.backup_ports.IndexFiles`; one index for each embedding space."""

    def __init__(
        self,
        root_of: Callable[[int], Path],
        *,
        pointers: Callable[[], Mapping[int, Pointer]],
    ) -> None:
        """Tell where indexes lie.

        Args:
            root_of: The folder of the index of a space.
            pointers: What is read now of each space.
        """
        self._root_of = root_of
        self._pointers = pointers

    @contextlib.contextmanager
    def published(self) -> Iterator[Mapping[str, Path]]:
        """See :meth:`memory_tool.backup_ports.IndexFiles.published`.

        The generation before the last stays, so one that is replaced meanwhile is still there.
        """
        yield {
            name: path
            for number, pointer in self._pointers().items()
            for name, path in self._files(number, pointer)
        }

    def _files(self, number: int, pointer: Pointer) -> Iterator[tuple[str, Path]]:
        root = self._root_of(number)
        manifest = read_manifest(root, pointer)
        folder = generation_folder(root, pointer.generation)
        for name in manifest.files:
            check_file(folder, manifest, name=name)
        for name in (MANIFEST, *manifest.files):
            yield f"indexes/vectors-{number}/{folder.name}/{name}", folder / name

    def put_back(self, backup: SavedBackup) -> bool:
        """See :meth:`memory_tool.backup_ports.IndexFiles.put_back`."""
        matches = (_PLACE.fullmatch(file.name) for file in backup.manifest.files)
        found = sorted((match[1], match[2], match[0]) for match in matches if match)
        done = False
        for (number, generation), files in groupby(found, key=lambda one: one[:2]):
            final = self._root_of(int(number)) / generation
            # What is there is the same, or of another history under its number: the pointer tells.
            if not final.exists():
                _put(final, [backup.path_of(name) for _, _, name in files])
                done = True
        return done


def _put(final: Path, files: list[Path]) -> None:
    folder = final.with_name(f"put-{secrets.token_hex(8)}")
    folder.mkdir(mode=0o700, parents=True)
    try:
        for file in files:
            link_file(file, folder / file.name)
        install(folder, final)
    finally:
        remove(folder)
