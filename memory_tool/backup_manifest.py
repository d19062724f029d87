"""What a backup says of itself: the file that is read first and written last. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from memory_tool.errors import Corrupt

FORMAT: Final = 1
"""Number of the layout of a backup's folder; another one is refused."""

ANOTHER: Final = "threefold restore, of another backup"
"""What is left to whoever meets a damaged one."""

_NAME: Final = re.compile(r"[\w.-]+(?:/[\w.-]+){0,4}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFile:
    """A file of a backup: its name within the folder, its length in bytes, its SHA-256 in hex."""

    name: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTable:
    """A table: its columns in the order of the file, and how many rows there are."""

    name: str
    columns: tuple[str, ...]
    rows: int
    file: SavedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStep:
    """A migration that the database had run."""

    number: int
    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """One moment of a store, and what the files have to be that hold it.

    Attributes:
        store: Identity of the store.
        folder: Identity of the data folder whose indexes are saved; empty without indexes.
        made_at: The moment, by the database's clock.
        memories: Live memories.
        schema: The migrations that its tables come from, in order.
        sequences: The last number that each sequence gave out.
        tables: The tables.
        files: Files beside the tables: archives, the erase ledger, indexes.
    """

    store: str
    folder: str
    made_at: datetime
    memories: int
    schema: tuple[SchemaStep, ...]
    sequences: Mapping[str, int]
    tables: tuple[SavedTable, ...]
    files: tuple[SavedFile, ...]

    @property
    def all_files(self) -> tuple[SavedFile, ...]:
        """Every file but the manifest itself."""
        return (*(table.file for table in self.tables), *self.files)

    @property
    def length(self) -> int:
        """Bytes of all files."""
        return sum(file.length for file in self.all_files)

    def encoded(self) -> bytes:
        """JSON for people, closed by a check of its own."""
        content = {"format": FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}
        return _text({**content, "check": _check(content)})

    @classmethod
    def decoded(cls, raw: bytes) -> "BackupManifest":
        """What :meth:`encoded` wrote.

        Raises:
            Corrupt: It is no manifest of a backup, of another format, or damaged.
        """
        try:
            content = json.loads(raw)
            said = content.pop("check")
            _check_content(content, said)
            manifest = cls(
                store=content["store"],
                folder=content["folder"],
                made_at=datetime.fromisoformat(content["made_at"]),
                memories=content["memories"],
                schema=tuple(SchemaStep(**step) for step in content["schema"]),
                sequences=content["sequences"],
                tables=tuple(_table(table) for table in content["tables"]),
                files=tuple(SavedFile(**file) for file in content["files"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"the manifest of the backup can't be understood: {error}"
            raise Corrupt(message, command=ANOTHER) from error
        _check_names(manifest.all_files)
        return manifest


def _text(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def _check(content: Mapping[str, object]) -> str:
    return hashlib.sha256(_text(content)).hexdigest()


def _check_content(content: Mapping[str, object], said: object) -> None:
    if content["format"] != FORMAT:
        message = f"the backup has format {content['format']}, this version reads {FORMAT}"
        raise Corrupt(message, command="pip install --upgrade threefold")
    if said != _check(content):
        message = "the manifest of the backup is damaged"
        raise Corrupt(message, command=ANOTHER)


def _table(content: Mapping[str, Any]) -> SavedTable:
    return SavedTable(
        name=content["name"],
        columns=tuple(content["columns"]),
        rows=content["rows"],
        file=SavedFile(**content["file"]),
    )


def _check_names(files: Sequence[SavedFile]) -> None:
    """No name may lead out of the folder."""
    for file in files:
        parts = file.name.split("/")
        if not _NAME.fullmatch(file.name) or {".", ".."}.intersection(parts):
            message = f"the backup names a file {file.name!r}, which can't be one of it"
            raise Corrupt(message, command=ANOTHER)
    if len({file.name for file in files}) < len(files):
        message = "the backup names a file twice"
        raise Corrupt(message, command=ANOTHER)
