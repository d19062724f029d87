"""Folders of generations: what is in them, how one is made durable, how one is read back.

A folder appears under its final name in one step, after everything in it was forced to disk, and
is never changed again. Names hold numbers only.
"""

import contextlib
import dataclasses
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from memory_tool.adapters.faiss_manifest import NOTHING, FilePrint, Manifest
from memory_tool.adapters.faiss_rows import Ids, RowTable
from memory_tool.adapters.faiss_vectors import VectorFile
from memory_tool.durable import force
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.port_values import Pointer

MANIFEST: Final = "manifest.json"
VECTORS: Final = "vectors.f16"
IDS: Final = "ids.u64"
ORDINALS: Final = "ordinals.u16"
VERSIONS: Final = "versions.i64"
DEAD: Final = "dead.bits"
CHECKS: Final = "checks.u32"

_GENERATION: Final = re.compile(r"gen-(\d{6,})")
_WORKSHOP: Final = "tmp-"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGeneration:
    """A generation without its graphs: everything but the vectors is checked and in memory."""

    folder: Path
    manifest: Manifest
    table: RowTable
    vectors: VectorFile

    @classmethod
    def empty(cls, root: Path) -> "OpenedGeneration":
        """The one before the first."""
        vectors = VectorFile(root, rows=0, dimension=0, checks=np.empty(0, np.uint32))
        return cls(folder=root, manifest=NOTHING, table=RowTable.empty(), vectors=vectors)


def generation_folder(root: Path, generation: int) -> Path:
    """Where a generation lies."""
    return root / f"gen-{generation:06}"


def next_generation(root: Path, above: int) -> int:
    """A number above this one and that of every folder."""
    return max([above, *_generations(root)]) + 1


def _generations(root: Path) -> dict[int, Path]:
    matches = {path: _GENERATION.fullmatch(path.name) for path in root.iterdir()}
    return {int(match[1]): path for path, match in matches.items() if match}


# ── Writing ──


@contextlib.contextmanager
def writing(target: str) -> Iterator[None]:
    """Turn what the system refuses, such as more room on a full disk, into ``Unavailable``."""
    try:
        yield
    except OSError as error:
        message = f"the vector index can't be written: {error.strerror or error}"
        raise Unavailable(message, store=target) from error


def create(path: Path) -> BinaryIO:
    """A new file that only its owner may read. Never an existing one, never through a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def write_file(path: Path, content: bytes) -> FilePrint:
    """Write a new file and say what it has to be."""
    with create(path) as file:
        file.write(content)
    return FilePrint(length=len(content), sha256=hashlib.sha256(content).hexdigest())


def file_print(path: Path) -> FilePrint:
    """What is in a file now.

    Raises:
        Corrupt: It can't be read.
    """
    with _readable(path) as file:
        digest = hashlib.file_digest(file, "sha256")
        return FilePrint(length=file.tell(), sha256=digest.hexdigest())


def link_file(old: Path, new: Path) -> None:
    """Give an unchanging file another name, or copy it where the file system has no links."""
    try:
        os.link(old, new)
    except OSError:
        with create(new) as copy, _readable(old) as file:
            shutil.copyfileobj(file, copy)


@contextlib.contextmanager
def workshop(root: Path) -> Iterator[Path]:
    """A folder to build in, gone afterwards unless it was installed.

    What an earlier holder of the folder left behind when it was killed is cleared away first.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for stale in root.glob(f"{_WORKSHOP}*"):
        stale.unlink() if stale.is_file() else remove(stale)
    folder = root / f"{_WORKSHOP}{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        remove(folder)


def install(folder: Path, final: Path) -> None:
    """Force everything in ``folder`` to disk, then give it its final name."""
    for path in folder.iterdir():
        force(path)
    force(folder)
    folder.rename(final)
    force(final.parent)


def renumbered(root: Path, pointer: Pointer, *, target: str, above: int) -> Pointer:
    """The same generation under the next number above ``above``: its files get further names.

    Readers take the higher number for the newer one. So whatever is made the current one, a
    successor that was begun long ago or a kept generation, is the last one by its number too.

    Raises:
        Corrupt: It is damaged.
    """
    manifest = read_manifest(root, pointer)
    number = next_generation(root, above)
    old = generation_folder(root, pointer.generation)
    with workshop(root) as folder:
        for name in manifest.files:
            link_file(old / name, folder / name)
        written = write_file(
            folder / MANIFEST, dataclasses.replace(manifest, generation=number).encoded()
        )
        install(folder, generation_folder(root, number))
    return dataclasses.replace(pointer, target=target, generation=number, locator=written.sha256)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that holds the old content or the new, whatever happens."""
    draft = path.with_name(f"{_WORKSHOP}{secrets.token_hex(8)}")
    write_file(draft, content)
    force(draft)
    draft.rename(path)
    force(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file for good if it is there."""
    path.unlink(missing_ok=True)
    force(path.parent)


def remove(folder: Path) -> None:
    """Remove a folder if it is there. Who has mapped a file of it keeps the file."""
    shutil.rmtree(folder, ignore_errors=True)


def keep_only(root: Path, generations: Collection[int]) -> None:
    """Remove every other generation."""
    for generation, path in _generations(root).items():
        if generation not in generations:
            remove(path)


# ── Reading ──


def read_manifest(root: Path, pointer: Pointer) -> Manifest:
    """The manifest of the generation that ``pointer`` names.

    Raises:
        Corrupt: It is missing or not the one that the pointer means, or a file of the generation
            is missing or has another length.
    """
    folder = generation_folder(root, pointer.generation)
    raw = _content(folder / MANIFEST)
    if hashlib.sha256(raw).hexdigest() != pointer.locator:
        message = f"{folder.name}/{MANIFEST} is not the one that was published"
        raise Corrupt(message)
    manifest = Manifest.decoded(raw)
    if (manifest.generation, manifest.mark) != (pointer.generation, pointer.mark):
        message = f"{folder.name}/{MANIFEST} is of another generation"
        raise Corrupt(message)
    for name, expected in manifest.files.items():
        _check_length(folder / name, expected)
    return manifest


def open_generation(root: Path, pointer: Pointer) -> OpenedGeneration:
    """The generation that ``pointer`` names.

    Raises:
        Corrupt: A file is missing, damaged or belongs elsewhere; the vectors are checked later.
    """
    manifest = read_manifest(root, pointer)
    folder = generation_folder(root, pointer.generation)
    checks = np.frombuffer(_checked_content(folder, manifest, name=CHECKS), "<u4")
    return OpenedGeneration(
        folder=folder,
        manifest=manifest,
        table=_table(folder, manifest),
        vectors=VectorFile(
            folder / VECTORS,
            rows=manifest.rows,
            dimension=manifest.dimension,
            checks=checks.astype(np.uint32),
        ),
    )


def _table(folder: Path, manifest: Manifest) -> RowTable:
    bits = np.frombuffer(_checked_content(folder, manifest, name=DEAD), np.uint8)
    ordinals = np.frombuffer(_checked_content(folder, manifest, name=ORDINALS), "<u2")
    versions = np.frombuffer(_checked_content(folder, manifest, name=VERSIONS), "<i8")
    dead = np.unpackbits(bits, count=manifest.rows, bitorder="little")
    table = RowTable(
        ids=Ids.from_bytes(_checked_content(folder, manifest, name=IDS)),
        ordinals=ordinals.astype(np.uint16),
        versions=versions.astype(np.int64),
        dead=dead.astype(np.bool_),
    )
    if {len(table.ids), len(ordinals), len(versions)} != {manifest.rows}:
        message = f"the files of {folder.name} disagree about their rows"
        raise Corrupt(message)
    return table


def _checked_content(folder: Path, manifest: Manifest, *, name: str) -> bytes:
    content = _content(folder / name)
    expected = manifest.files.get(name)
    if expected is None or hashlib.sha256(content).hexdigest() != expected.sha256:
        message = f"{folder.name}/{name} is damaged"
        raise Corrupt(message)
    return content


def check_file(folder: Path, manifest: Manifest, *, name: str) -> None:
    """Hash a file.

    Raises:
        Corrupt: It is not as it was written.
    """
    if file_print(folder / name) != manifest.files.get(name):
        message = f"{folder.name}/{name} is damaged"
        raise Corrupt(message)


def _check_length(path: Path, expected: FilePrint) -> None:
    with _readable(path) as file:
        length = os.fstat(file.fileno()).st_size
    if length != expected.length:
        message = f"{path.parent.name}/{path.name} has {length} bytes, not {expected.length}"
        raise Corrupt(message)


def _content(path: Path) -> bytes:
    with _readable(path) as file:
        return file.read()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[BufferedReader]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            yield file
    except OSError as error:
        message = f"{path.parent.name}/{path.name} can't be read: {error.strerror}"
        raise Corrupt(message) from error
