"""The archive in a folder keeps the contract, is readable without us, and refuses damage."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from memory_tool.adapters.archive_folder import ArchiveFolder
from memory_tool.archive_ports import Archive
from memory_tool.errors import Corrupt, Unavailable
from tests.contract.archive import ArchiveContract, record_of


class TestArchiveFolder(ArchiveContract):
    """Files of zstd-compressed JSON Lines."""

    @pytest.fixture
    def archive(self, tmp_path: Path) -> Archive:
        """In a folder that is not there yet."""
        return ArchiveFolder(tmp_path / "archive")


def test_a_file_is_one_stream_of_json_lines(tmp_path: Path) -> None:
    """As ``zstdcat`` and ``jq`` read it: one line a memory, Chinese as Chinese."""
    records = [record_of("港口的账本" * 4_000), *(record_of(f"note {n}") for n in range(50))]
    file = ArchiveFolder(tmp_path).write(1, records)
    packed = (tmp_path / file.name).read_bytes()
    assert hashlib.sha256(packed).hexdigest() == file.sha256
    stream = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    lines = stream.read().decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [record.id for record in records]
    assert "港口的账本" in lines[0]
    assert json.loads(lines[1])["memory"]["content"] == "note 0"


def _truncated(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def _flipped(packed: bytes) -> bytes:
    place = random.Random(7).randrange(20, len(packed))
    return packed[:place] + bytes([packed[place] ^ 4]) + packed[place + 1 :]


def _foreign(_packed: bytes) -> bytes:
    return b"%PDF-1.7 something else"


@pytest.mark.parametrize("spoil", [_truncated, _flipped, _foreign, lambda _packed: b""])
def test_a_damaged_file_is_refused_by_its_name(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    """And never loaded, whatever of it could still be read."""
    archive, record = ArchiveFolder(tmp_path), record_of("one")
    file = archive.write(1, [record])
    path = tmp_path / file.name
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(Corrupt, match=file.name):
        archive.read(file.places[record.id])


def test_swapped_files_are_refused(tmp_path: Path) -> None:
    """Both are whole, and neither is the one that was asked for."""
    archive = ArchiveFolder(tmp_path)
    first, second = record_of("one"), record_of("two")
    files = [archive.write(1, [record]) for record in (first, second)]
    paths = [tmp_path / file.name for file in files]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    for file, record in zip(files, (first, second), strict=True):
        with pytest.raises(Corrupt, match=file.name):
            archive.read(file.places[record.id])


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither half a file nor a place that points into one."""
    blocked = tmp_path / "archive"
    blocked.write_text("a file where the folder should be")
    with pytest.raises(Unavailable, match="archive"):
        ArchiveFolder(blocked).write(1, [record_of("one")])
    assert blocked.read_text() == "a file where the folder should be"
    class_of = type(record_of("one"))
    spoiled = class_of(
        id="x", namespace="", image={"content": float("nan")}, versions=(), chunks=()
    )
    folder = tmp_path / "other"
    with pytest.raises(ValueError, match="JSON"):
        ArchiveFolder(folder).write(1, [record_of("one"), spoiled])
    assert list(folder.iterdir()) == []
