"""The files of a Tantivy index: which folder is the current one, and whether it can be trusted.

    <folder>/current     the number of the sub-folder that holds the index
    <folder>/building    the number of the one that is being built, if there is one
    <folder>/7/          one Tantivy index
    <folder>/8.kept/     a copy that nobody writes

Starting afresh makes a new sub-folder and then replaces ``current``, so a killed process leaves
the old index or the new one, and who has the old one open goes on reading its unlinked files.
"""

import errno
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tantivy import Index, Searcher

from memory_tool.adapters.tantivy_schema import prepare, schema
from memory_tool.durable import force
from memory_tool.errors import Corrupt, Unavailable

STORE: Final = "tantivy"
"""How errors name this store."""

CURRENT: Final = "current"
BUILDING: Final = "building"
META: Final = "meta.json"
_PARTS: Final = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_FOOTER_MAGIC: Final = 1337
_FOOTER_TAIL: Final = 8
_BLOCK: Final = 1 << 20
_ERROR_NUMBER: Final = re.compile(r"(?:os error|code:) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCommit:
    """One state of the files: a sub-folder and the content of its ``meta.json``.

    Tantivy replaces that file as the last step of a commit, and it names segments and numbers
    that never come twice: equal content is the same commit.
    """

    folder: Path
    meta: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A commit that can be searched."""

    commit: IndexCommit
    index: Index
    searcher: Searcher


class TantivyFolder:
    """The folder of one index, as any number of processes may read it and one may write it."""

    def __init__(self, path: Path, *, names: str = CURRENT) -> None:
        """Name the folder; nothing is touched yet. ``names`` is the file that names the index."""
        self._path = path
        self._file = path / names

    def follow(self, opened: Opened | None) -> Opened | None:
        """The newest commit, ``opened`` itself while it is that; ``None`` without any index.

        Raises:
            Corrupt: Files are damaged, missing or not ours.
            Unavailable: Files can't be read.
        """
        commit = self._newest()
        while commit and not (opened and opened.commit == commit):
            try:
                return _open(commit, opened)
            except Corrupt:
                # Files vanish under a reader when a writer merges them or starts afresh: damage is
                # what is there while nothing moves.
                if (newer := self._newest()) == commit:
                    raise
                commit = newer
        return opened if commit else None

    def follow_or_start(self, opened: Opened | None) -> Opened:
        """Like :meth:`follow`, but make an empty index where there is none."""
        while (found := self.follow(opened)) is None:
            self.start_afresh()
        return found

    def start_afresh(self) -> None:
        """Make an empty index the one that is named, and remove those that no file names.

        Raises:
            Unavailable: The files can't be written.
        """
        with writing():
            self._path.mkdir(parents=True, exist_ok=True)
            fresh = self._path / str(next_number(self._path))
            fresh.mkdir()
            Index(schema(), str(fresh))
            force(fresh)
            write_durably(self._file, fresh.name)
            remove_unnamed(self._path)

    def _newest(self) -> IndexCommit | None:
        with reading(f"the folder {self._path.name} can't be read"):
            name = self._current()
            while name is not None:
                folder = self._path / name
                try:
                    return IndexCommit(folder=folder, meta=(folder / META).read_bytes())
                except (FileNotFoundError, NotADirectoryError) as error:
                    if (newer := self._current()) == name:
                        message = f"the index {name} has no {META}"
                        raise Corrupt(message) from error
                    name = newer
            return None

    def _current(self) -> str | None:
        return named(self._file)


def named(file: Path) -> str | None:
    """The sub-folder that this file names.

    Raises:
        Corrupt: It names none.
    """
    try:
        name = file.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    if not name.isdecimal():
        message = f"the file {file.name!r} does not hold a number"
        raise Corrupt(message)
    return name


def next_number(path: Path) -> int:
    """A number that no index in this folder ever had, kept or not."""
    stems = [entry.name.partition(".")[0] for entry in path.iterdir()]
    return max((int(stem) for stem in stems if stem.isdecimal()), default=0) + 1


def remove_unnamed(path: Path) -> None:
    """Remove the indexes that are neither read nor built; who has one open keeps its files."""
    wanted: set[str | None] = set()
    for name in (CURRENT, BUILDING):
        # A damaged one names nothing that could be gone on with.
        with suppress(Corrupt):
            wanted.add(named(path / name))
    for entry in path.iterdir():
        if entry.name.isdecimal() and entry.name not in wanted:
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what Tantivy raises while it reads into :class:`Corrupt`.

    It knows one exception for all that can be wrong, and panics where files are not what they
    seem. Only where its message tells that the system refused something is it ``Unavailable``: a
    rebuild does not cure a shortage.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        message = f"{what}: {error}"
        if _refused_by_system(error):
            raise Unavailable(message, store=STORE) from error
        raise Corrupt(message) from error
    except BaseException as error:
        # The class of a panic can't be imported.
        if type(error).__name__ != "PanicException":
            raise
        message = f"{what}: {error}"
        raise Corrupt(message) from error


@contextmanager
def writing() -> Iterator[None]:
    """Turn what Tantivy raises while it writes into :class:`Unavailable`.

    The last commit stays what it was, so to try again is right; if its files are damaged, opening
    them says so.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        raise Unavailable(str(error), store=STORE) from error


def _refused_by_system(error: ValueError | OSError) -> bool:
    """Too many open files, no permission and the like; a missing file is damage."""
    if isinstance(error, OSError):
        return error.errno != errno.ENOENT
    told = _ERROR_NUMBER.search(str(error))
    return told is not None and int(told[1]) != errno.ENOENT


def opened_at(folder: Path) -> Opened:
    """The index in a sub-folder that nobody writes, with the checksums of its files compared.

    Raises:
        Corrupt: It is damaged or missing.
    """
    with reading(f"the index {folder.name} can't be read"):
        commit = IndexCommit(folder=folder, meta=(folder / META).read_bytes())
    return _open(commit, None)


def _open(commit: IndexCommit, opened: Opened | None) -> Opened:
    """Open ``commit``, or one that is newer by now."""
    with reading(f"the index {commit.folder.name} can't be opened"):
        if opened and opened.commit.folder == commit.folder:
            index = opened.index
        else:
            _verify(commit)
            index = Index.open(str(commit.folder))
            if index.schema != schema():
                message = f"the index {commit.folder.name} has other fields"
                raise Corrupt(message)
            prepare(index)
        index.reload()
        return Opened(commit=commit, index=index, searcher=index.searcher())


def _verify(commit: IndexCommit) -> None:
    """Compare the segments' files with the checksums in their footers.

    Tantivy writes these but does not check them when it opens a file: a flipped bit would be found
    by a wrong answer or a panic. 100,000 chunks take 20 ms, once when a process opens the index.
    """
    for name in file_names(commit):
        if not _intact(commit.folder / name):
            message = f"the file {name} is damaged"
            raise Corrupt(message)


def file_names(commit: IndexCommit) -> Iterator[str]:
    """The files of a commit; beside them may lie half-written ones of the next."""
    try:
        for segment in json.loads(commit.meta)["segments"]:
            stem = segment["segment_id"].replace("-", "")
            yield from (f"{stem}.{part}" for part in _PARTS)
            if deletes := segment["deletes"]:
                yield f"{stem}.{deletes['opstamp']}.del"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"the {META} of index {commit.folder.name} can't be read"
        raise Corrupt(message) from error


def _intact(path: Path) -> bool:
    """Whether body, footer (JSON), length of the footer and magic number fit together."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - _FOOTER_TAIL, 0))
        tail = file.read(_FOOTER_TAIL)
        length = int.from_bytes(tail[:4], "little")
        body = size - _FOOTER_TAIL - length
        if int.from_bytes(tail[4:], "little") != _FOOTER_MAGIC or body < 0:
            return False
        file.seek(body)
        try:
            expected = json.loads(file.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return False
        file.seek(0)
        checksum = 0
        while body and (block := file.read(min(_BLOCK, body))):
            checksum = zlib.crc32(block, checksum)
            body -= len(block)
    return bool(checksum == expected)


def write_durably(path: Path, text: str) -> None:
    """Write a file that holds the old text or the new, whatever happens."""
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    force(path.parent)
