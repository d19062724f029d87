"""Damage to files of indexes, which a check has to name, and no search may load."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from scripts.drifting.scene import Scene

Way = Callable[[Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One damaged file.

    Attributes:
        name: What was done to which, for people.
        kind: Of the index whose file it is.
        pattern: Which file of the newest generation, or of the index that is current.
        way: Does it.
    """

    name: str
    kind: Literal["vector", "keyword"]
    pattern: str
    way: Way

    def sow(self, scene: Scene) -> str:
        """Damage the file, and say its name."""
        root = scene.folder / ("vectors" if self.kind == "vector" else "keywords")
        pattern = self.pattern
        if "{current}" in pattern:
            pattern = pattern.replace("{current}", (root / "current").read_text("ascii"))
        path = max(root.glob(pattern))
        self.way(path)
        return path.name


def _put(path: Path, content: bytes) -> None:
    # Beside it and renamed: who has mapped the old file keeps it, as after a failing disk.
    draft = path.with_suffix(".spoilt")
    draft.write_bytes(content)
    draft.replace(path)


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    _put(path, bytes(content))


def _truncated(path: Path) -> None:
    content = path.read_bytes()
    _put(path, content[: len(content) // 2])


def _missing(path: Path) -> None:
    path.unlink()


def _swapped(path: Path) -> None:
    """The content of another file of the folder."""
    other = next(one for one in sorted(path.parent.iterdir()) if one.name != path.name)
    _put(path, other.read_bytes())


def _foreign(path: Path) -> None:
    """A file of as many bytes from somewhere else."""
    length = path.stat().st_size
    _put(path, (bytes(range(256)) * (length // 256 + 1))[:length])


DAMAGES: Final = (
    Damage(name="manifest flipped", kind="vector", pattern="*/gen-*/manifest.json", way=_flipped),
    Damage(name="vectors flipped", kind="vector", pattern="*/gen-*/vectors.f16", way=_flipped),
    Damage(name="vectors truncated", kind="vector", pattern="*/gen-*/vectors.f16", way=_truncated),
    Damage(name="ids swapped", kind="vector", pattern="*/gen-*/ids.u64", way=_swapped),
    Damage(name="versions foreign", kind="vector", pattern="*/gen-*/versions.i64", way=_foreign),
    Damage(name="dead rows missing", kind="vector", pattern="*/gen-*/dead.bits", way=_missing),
    Damage(name="graph flipped", kind="vector", pattern="*/gen-*/graph-*.faiss", way=_flipped),
    Damage(name="terms flipped", kind="keyword", pattern="{current}/*.term", way=_flipped),
    Damage(name="columns truncated", kind="keyword", pattern="{current}/*.fast", way=_truncated),
    Damage(name="postings missing", kind="keyword", pattern="{current}/*.idx", way=_missing),
    Damage(
        name="meta.json truncated", kind="keyword", pattern="{current}/meta.json", way=_truncated
    ),
    Damage(name="current foreign", kind="keyword", pattern="current", way=_foreign),
)
"""Files of the indexes in a data folder."""
