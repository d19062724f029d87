"""Ways in which the files of a Tantivy folder get damaged, and how the damage is named."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

from tantivy import Index, SchemaBuilder

PARTS = ("idx", "term", "fast", "fieldnorm", "store", "del")


def current(folder: Path) -> Path:
    """The sub-folder that holds the index."""
    return folder / (folder / "current").read_text()


def truncate(part: str) -> Callable[[Path], None]:
    """Cut the largest file of one kind in half."""

    def damage(folder: Path) -> None:
        path = max(current(folder).glob(f"*.{part}"), key=lambda file: file.stat().st_size)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def flip_a_bit(part: str) -> Callable[[Path], None]:
    """Change the first byte of a file of one kind."""

    def damage(folder: Path) -> None:
        path = next(current(folder).glob(f"*.{part}"))
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])

    return damage


def forge(part: str) -> Callable[[Path], None]:
    """Cut the body of one file in half and make the checksum fit."""

    def damage(folder: Path) -> None:
        path = next(current(folder).glob(f"*.{part}"))
        content = path.read_bytes()
        footer_at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        body = content[: footer_at // 2]
        footer = json.loads(content[footer_at:-8])
        text = json.dumps({**footer, "crc": zlib.crc32(body)}).encode()
        path.write_bytes(body + text + len(text).to_bytes(4, "little") + content[-4:])

    return damage


def remove(part: str) -> Callable[[Path], None]:
    """Remove the files of one kind."""

    def damage(folder: Path) -> None:
        for path in current(folder).glob(f"*{part}"):
            path.unlink()

    return damage


def fill(name: str, content: bytes) -> Callable[[Path], None]:
    """Replace one file."""

    def damage(folder: Path) -> None:
        (current(folder) / name).write_bytes(content)

    return damage


def name_nothing(folder: Path) -> None:
    """Let ``current`` name what is no number."""
    (folder / "current").write_text("../elsewhere")


def name_a_file(folder: Path) -> None:
    """Let ``current`` name a file instead of a folder."""
    (folder / "99").touch()
    (folder / "current").write_text("99")


def put_another_index(folder: Path) -> None:
    """Put the index of another program in the place of ours."""
    (folder / "99").mkdir()
    Index(SchemaBuilder().add_text_field("body").build(), str(folder / "99"))
    (folder / "current").write_text("99")


DAMAGES = {
    **{f"{part} truncated": (truncate(part), "is damaged") for part in PARTS},
    **{f"{part} flipped": (flip_a_bit(part), "is damaged") for part in PARTS},
    **{f"{part} forged": (forge(part), "can't be opened") for part in PARTS},
    **{f"{part} removed": (remove(f".{part}"), "can't be opened") for part in PARTS},
    "meta removed": (remove("meta.json"), "has no meta.json"),
    "meta truncated": (fill("meta.json", b'{"index_settings": {'), "can't be read"),
    "meta replaced": (fill("meta.json", b"[]"), "can't be read"),
    "meta emptied": (fill("meta.json", b'{"segments": []}'), "can't be opened"),
    "current without a number": (name_nothing, "does not hold a number"),
    "current names a file": (name_a_file, "has no meta.json"),
    "another program's index": (put_another_index, "has other fields"),
}
