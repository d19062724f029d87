"""A store saved and restored by the functions that the commands call."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.adapters.postgres_backup import NOT_SAVED
from memory_tool.backup_manifest import BackupManifest
from memory_tool.backup_ports import Restored
from memory_tool.bootstrap_backup import make_backup, restore_backup
from memory_tool.erase_values import LedgerLine
from memory_tool.settings import Settings, load_settings
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database

_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'threefold'::regnamespace
  AND relkind IN ('r', 'p') AND NOT relispartition
"""


def settings_of(store: OwnStore, name: str = "one") -> Settings:
    """The settings with which the store's memories are opened."""
    values: dict[str, Any] = {
        "data_dir": str(store.data_dir(name)),
        "database_url": store.database_url,
        "embedder": "hashing",
        **store.settings,
    }
    return load_settings(values, environment={})


def saved(store: OwnStore, name: str = "backup", *, with_indexes: bool = False) -> Path:
    """A backup of the store, in a folder beside its own."""
    folder = store.folder / name
    make_backup(settings_of(store), folder, with_indexes=with_indexes)
    return folder


def manifest_in(folder: Path) -> BackupManifest:
    """What a backup says of itself."""
    return BackupManifest.decoded((folder / "manifest.json").read_bytes())


def restored(store: OwnStore, folder: Path, *, replace: bool = False) -> Restored:
    """Make the backup the content of the store."""
    return restore_backup(settings_of(store), folder, replace=replace)


def order_to_erase(store: OwnStore, *, ns_id: int, memory_id: str | None) -> LedgerLine:
    """A line of the ledger that the database has not carried out, as after a restore."""
    line = LedgerLine(
        name=uuid.uuid4().hex,
        store=manifest_in(saved(store, f"of-{ns_id}-{memory_id}")).store,
        ns_id=ns_id,
        memory_id=memory_id,
        at=datetime.now(UTC),
    )
    EraseLedgerFile(settings_of(store).erase_ledger).append([line])
    return line


def all_tables(database: Database) -> set[str]:
    """The tables of the schema."""
    with database.admin() as connection:
        return {name for (name,) in connection.execute(_TABLES).fetchall()}


def content(database: Database) -> dict[str, list[str]]:
    """Every row of every table that is saved, in an order of its own."""
    with database.admin() as connection:
        return {
            name: _rows(connection, name) for name in sorted(all_tables(database) - {*NOT_SAVED})
        }


_COLUMNS = """
SELECT attname, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
  AND attidentity = ''
"""

_MADE_UP: Final[Mapping[str, object]] = {
    "bigint": 1,
    "integer": 1,
    "smallint": 1,
    "double precision": 0.1,
    "boolean": True,
    "text": "a\tb\\N\r\n 客户 \\. ''\"",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "bytea": b"\x00\xff\n\t",
    "jsonb": '{"a": [null, "\\n\\t\\\\"]}',
    "timestamp with time zone": "2020-02-29 23:59:59.123456+05:30",
    "xid8": "7",
}


def fill_empty_tables(database: Database) -> None:
    """A row for each table that has none, of the values that are hardest to write down."""
    with database.admin() as connection:
        for name, rows in content(database).items():
            if rows:
                continue
            columns = connection.execute(_COLUMNS, [f"threefold.{name}"]).fetchall()
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                sql.Identifier("threefold", name),
                sql.SQL(", ").join(sql.Identifier(column) for column, _ in columns),
                sql.SQL(", ").join(sql.Placeholder() for _ in columns),
            )
            connection.execute(insert, [_MADE_UP[kind] for _, kind in columns])


def _rows(connection: psycopg.Connection, table: str) -> list[str]:
    query = sql.SQL("SELECT to_jsonb(t)::text FROM {} t ORDER BY 1")
    found = connection.execute(query.format(sql.Identifier("threefold", table))).fetchall()
    return [row for (row,) in found]
