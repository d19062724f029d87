"""Folders of vector indexes: one for each store and embedding space that a data folder serves."""

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

_STORE_DIGITS: Final = 8
_EARLIER: Final = re.compile(r"gen-\d{6,}|tmp-[0-9a-f]+")
"""What lay in the folder itself before there was one for each space."""


def space_folder(root: Path, store: str, *, space: int) -> Path:
    """The folder of one space of a store, by the store's identity."""
    return root / f"{store[:_STORE_DIGITS] or 'given'}-{space}"


def tidy(root: Path, store: str, *, keep: Collection[int]) -> None:
    """Remove folders of spaces that the store has forgotten, and what earlier versions left.

    Other stores that use the data folder in turn keep theirs.
    """
    if not root.is_dir():
        return
    kept = {space_folder(root, store, space=space) for space in keep}
    mine = re.compile(re.escape(space_folder(root, store, space=0).name[:-1]) + r"\d+")
    for path in root.iterdir():
        forgotten = mine.fullmatch(path.name) is not None and path not in kept
        if forgotten or _EARLIER.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
