"""What a backup says of itself: read back as written, or refused."""

import dataclasses
import json
from datetime import UTC, datetime
from typing import Final

import pytest

from memory_tool.backup_manifest import BackupManifest, SavedFile, SavedTable, SchemaStep
from memory_tool.errors import Corrupt

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
FILE: Final = SavedFile(name="tables/memory.tsv.zst", length=7, sha256="ab" * 32)
MANIFEST: Final = BackupManifest(
    store="0" * 32,
    folder="f" * 16,
    made_at=NOON,
    memories=2,
    schema=(SchemaStep(number=1, name="0001_truth", sha256="cd" * 32),),
    sequences={"namespace_ns_id_seq": 7},
    tables=(SavedTable(name="memory", columns=("ns_id", "id"), rows=2, file=FILE),),
    files=(SavedFile(name="README.txt", length=3, sha256="ef" * 32),),
)


def changed(**values: object) -> bytes:
    """The manifest with other values, as somebody would edit it who knows no check."""
    content = json.loads(MANIFEST.encoded())
    return json.dumps({**content, **values}).encode()


def test_a_manifest_is_read_back_as_it_was_written() -> None:
    """Whatever is lost here is lost in every restore."""
    assert BackupManifest.decoded(MANIFEST.encoded()) == MANIFEST
    assert MANIFEST.length == 10


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        MANIFEST.encoded()[:-20],
        MANIFEST.encoded().replace(b"abab", b"abac", 1),
        changed(memories=3),
        changed(check="0" * 64),
    ],
)
def test_a_damaged_manifest_is_refused(raw: bytes) -> None:
    """A number that nobody hashed could turn a restore into a loss."""
    with pytest.raises(Corrupt, match="manifest"):
        BackupManifest.decoded(raw)


def test_another_format_is_named() -> None:
    """Whoever meets a newer backup has to know that an update helps."""
    with pytest.raises(Corrupt, match="format 9") as refused:
        BackupManifest.decoded(changed(format=9))
    assert "upgrade" in refused.value.command


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "", "a//b", "a/."])
def test_no_file_lies_outside_of_the_backup(name: str) -> None:
    """A backup may come from anywhere."""
    file = dataclasses.replace(FILE, name=name)
    with pytest.raises(Corrupt, match="can't be one of it"):
        BackupManifest.decoded(dataclasses.replace(MANIFEST, files=(file,)).encoded())


def test_no_file_is_named_twice() -> None:
    """The second would be checked by the first one's hash."""
    with pytest.raises(Corrupt, match="twice"):
        BackupManifest.decoded(dataclasses.replace(MANIFEST, files=(FILE,)).encoded())
