"""Files of JSON: compressed or not, a line for each item or one whole document."""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, starmap
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

from memory_manage.exchange_formats import items_of
from memory_tool.errors import Corrupt, InputError, NotFound, Unavailable

STANDARD: Final = "-"
"""Standard input or output, in place of a file's name."""

COMPRESSED: Final = ".zst"
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_BUFFER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Numbered:
    """An item with the number of its line, or its place in a document; or what is wrong there."""

    number: int
    item: object = None
    error: str | None = None


@contextlib.contextmanager
def written_file(name: str) -> Iterator[BinaryIO]:
    """A new file that appears under its name when it is whole; compressed if it is named so.

    Raises:
        InputError: There is such a file already.
        Unavailable: It can't be written.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    final = Path(name).absolute()
    if final.exists():
        message = f"{final} is there already"
        raise InputError(message)
    draft = final.with_name(f"{final.name}.unfinished-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if final.name.endswith(COMPRESSED):
                compressor = zstandard.ZstdCompressor(write_checksum=True)
                with compressor.stream_writer(file, closefd=False) as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        draft.rename(final)
    except OSError as error:
        message = f"{final} can't be written: {error.strerror or error}"
        raise Unavailable(message, store="file") from error
    finally:
        draft.unlink(missing_ok=True)


def size_of(name: str) -> int:
    """Bytes of a file; 0 where that is not known."""
    try:
        return 0 if name == STANDARD else Path(name).stat().st_size
    except OSError:
        return 0


@contextlib.contextmanager
def read_items(
    name: str, read: Callable[[int], None] = lambda _bytes: None
) -> Iterator[Iterator[Numbered]]:
    """The items of a file, one after the other; a line that is no JSON is told as such.

    Lines are read as they come, a document as a whole. Compressed files are expanded. ``read``
    hears how many bytes of the file each step took.

    Raises:
        NotFound: There is no such file.
        Corrupt: It can't be read.
    """
    try:
        with contextlib.ExitStack() as opened:
            path = Path(name)
            file = sys.stdin.buffer if name == STANDARD else opened.enter_context(path.open("rb"))
            yield _items(_lines(_pieces(_blocks(file, read))))
    except FileNotFoundError as error:
        message = f"there is no file {name}"
        raise NotFound(message) from error
    except OSError as error:
        message = f"{name} can't be read: {error.strerror}"
        raise Corrupt(message) from error
    except zstandard.ZstdError as error:
        message = f"{name} is damaged: {error}"
        raise Corrupt(message) from error


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


def _blocks(file: BinaryIO, read: Callable[[int], None]) -> Iterator[bytes]:
    while block := file.read(_BUFFER):
        yield block
        read(len(block))


def _pieces(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """What is in a file, expanded if it is compressed.

    Raises:
        Corrupt: It was cut off in the middle of what is compressed.
    """
    block = next(blocks, b"")
    if not block.startswith(_MAGIC):
        yield from chain((block,), blocks)
        return
    expander = zstandard.ZstdDecompressor().decompressobj()
    while block:
        yield expander.decompress(block)
        block = expander.unused_data or next(blocks, b"")
        if expander.eof and block:
            # Another frame follows.
            expander = zstandard.ZstdDecompressor().decompressobj()
    if not expander.eof:
        message = "the file was cut off"
        raise Corrupt(message)


def _items(lines: Iterator[bytes]) -> Iterator[Numbered]:
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first, second = next(numbered, None), next(numbered, None)
    if first is None:
        return
    if second is not None and _item(*first).error is None:
        # A document has no line that is one by itself.
        yield from (_item(number, line) for number, line in chain((first, second), numbered))
        return
    held = [first, *([second] if second else []), *numbered]
    whole = _item(1, b"\n".join(line for _, line in held))
    if whole.error is None:
        yield from starmap(Numbered, enumerate(items_of(whole.item), start=1))
    else:
        yield from starmap(_item, held)


def _item(number: int, line: bytes) -> Numbered:
    try:
        return Numbered(number, json.loads(line))
    except (ValueError, RecursionError) as error:
        return Numbered(number, error=f"no JSON: {error}")
