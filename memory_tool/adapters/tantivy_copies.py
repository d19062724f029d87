"""Copies of a Tantivy index that nobody writes, made of further names for its files.

A segment's files never change once they are written; only ``meta.json``, which says which segments
an index has, is replaced. So a copy takes no space until the index itself lets go of a segment.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Final

from memory_tool.adapters.tantivy_folder import (
    CURRENT,
    META,
    IndexCommit,
    file_names,
    named,
    next_number,
    opened_at,
    remove_unnamed,
    write_durably,
    writing,
)
from memory_tool.durable import force
from memory_tool.errors import Unavailable

_MANAGED: Final = ".managed.json"
_KEPT: Final = ".kept"


def kept_folder(path: Path, number: int) -> Path:
    """Where a kept copy lies."""
    return path / f"{number}{_KEPT}"


def kept_numbers(path: Path) -> set[int]:
    """The numbers of all kept copies."""
    stems = (entry.name.removesuffix(_KEPT) for entry in path.glob(f"*{_KEPT}"))
    return {int(stem) for stem in stems if stem.isdecimal()}


def keep_copy(path: Path, source: Path) -> int:
    """Copy what an index holds now; the number of the copy.

    Raises:
        Corrupt: Its files can't be told.
        Unavailable: The copy can't be written.
    """
    number = next_number(path)
    copy_index(source, kept_folder(path, number))
    return number


def copy_current(path: Path, copy: Path) -> bool:
    """Copy what is read now, with its checksums compared; whether there is anything.

    Raises:
        Corrupt: It is damaged.
        Unavailable: The copy can't be written.
    """
    while (name := named(path / CURRENT)) is not None:
        try:
            copy_index(path / name, copy)
        except Unavailable:
            # It was removed meanwhile, if another one is named by now.
            if named(path / CURRENT) == name:
                raise
        else:
            opened_at(copy)
            return True
    return False


def return_to(path: Path, source: Path) -> None:
    """Make a copy of ``source`` what is read.

    Raises:
        Corrupt: The files of ``source`` can't be told.
        Unavailable: The copy can't be written.
    """
    with writing():
        path.mkdir(parents=True, exist_ok=True)
        copy = path / str(next_number(path))
    copy_index(source, copy)
    with writing():
        write_durably(path / CURRENT, copy.name)
        remove_unnamed(path)


def copy_index(source: Path, copy: Path) -> None:
    """Make ``copy`` an index of the same files, durable when it returns.

    Raises:
        Corrupt: The files of ``source`` can't be told.
        Unavailable: The copy can't be written.
    """
    draft = copy.with_suffix(".new")
    with writing():
        shutil.rmtree(draft, ignore_errors=True)
        while not _linked(IndexCommit(folder=source, meta=(source / META).read_bytes()), draft):
            # A merge took its files away; it wrote another meta.json first.
            shutil.rmtree(draft)
        force(draft)
        draft.rename(copy)
        force(copy.parent)


def remove_copies(path: Path, *, but: set[int]) -> None:
    """Remove kept copies and what a kill left of new ones, but for these numbers."""
    for number in kept_numbers(path) - but:
        shutil.rmtree(kept_folder(path, number), ignore_errors=True)
    for draft in path.glob("*.new"):
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)


def _linked(commit: IndexCommit, draft: Path) -> bool:
    draft.mkdir()
    names = list(file_names(commit))
    try:
        for name in names:
            _link(commit.folder / name, draft / name)
    except FileNotFoundError:
        if (commit.folder / META).read_bytes() == commit.meta:
            raise
        return False
    # What is not listed there would never be removed again, should somebody write here.
    _write(draft / _MANAGED, json.dumps([*names, META]).encode())
    _write(draft / META, commit.meta)
    return True


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except FileNotFoundError:
        raise
    except OSError:
        # This file system has no links.
        shutil.copyfile(old, new)
        force(new)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    force(path)
