"""The search of files for pieces of what was erased."""

import json
from pathlib import Path

import pytest
import zstandard

from memory_tool.adapters import file_scan
from memory_tool.adapters.file_scan import FolderScan

PIECE = "张先生偏好蓝色系产品 forever"


def scanned(folder: Path, *, elsewhere: bool = False) -> list[tuple[str, bool]]:
    """The names of the files with the piece, and whether others say it too."""
    scan = FolderScan([folder], said_elsewhere=lambda _piece: elsewhere).scan([PIECE])
    assert scan.clean == (elsewhere or not scan.traces)
    return [(Path(trace.file).name, trace.elsewhere) for trace in scan.traces]


def test_a_piece_is_found_wherever_it_lies(tmp_path: Path) -> None:
    """In a sub-folder, in the middle of bytes, in a compressed file."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "page").write_bytes(b"\0" * 999 + PIECE.encode() + b"\xff")
    (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(f"x{PIECE}y".encode()))
    (tmp_path / "other").write_text("nothing of the kind")
    assert sorted(scanned(tmp_path)) == [("a.jsonl.zst", False), ("page", False)]


def test_a_piece_that_lies_across_two_blocks_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read in blocks."""
    monkeypatch.setattr(file_scan, "_BLOCK", 10)
    (tmp_path / "page").write_bytes(b"1234567" + PIECE.encode())
    assert scanned(tmp_path) == [("page", False)]


def test_what_others_say_too_is_no_trace_of_the_erased(tmp_path: Path) -> None:
    """The same text may stay as somebody else's memory."""
    (tmp_path / "page").write_text(PIECE)
    assert scanned(tmp_path, elsewhere=True) == [("page", True)]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    """A scan can say no."""
    (tmp_path / "page").write_text(PIECE[:-1])
    assert scanned(tmp_path) == []


def test_a_piece_is_found_as_json_writes_it(tmp_path: Path) -> None:
    """Archives quote line breaks and quotation marks."""
    said = 'the "blue" curtains\nof the flat'
    (tmp_path / "a.jsonl.zst.part").write_bytes(zstandard.compress(json.dumps(said).encode()))
    scan = FolderScan([tmp_path], said_elsewhere=lambda _piece: False).scan([said])
    assert [Path(trace.file).name for trace in scan.traces] == ["a.jsonl.zst.part"]


def test_a_damaged_archive_is_told_and_is_no_proof(tmp_path: Path) -> None:
    """What can't be read may say anything."""
    damaged = tmp_path / "a.jsonl.zst"
    damaged.write_bytes(b"no zstd at all")
    scan = FolderScan([tmp_path], said_elsewhere=lambda _piece: False).scan([PIECE])
    assert (scan.unread, scan.clean) == ((str(damaged),), False)
