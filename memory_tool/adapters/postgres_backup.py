"""The truth as tables that go out: every table of the catalogue, in one snapshot, through COPY."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final, cast

from psycopg import sql

from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_migrations import history
from memory_tool.adapters.postgres_queries import statement
from memory_tool.backup_manifest import SchemaStep
from memory_tool.backup_ports import BackupSource, Dump, Moment, TableShape
from memory_tool.port_values import Pointer

NOT_SAVED: Final = {
    "lease": "held by processes that run now",
    "job": "work that was begun on a history which a restore replaces",
}
"""Tables that are in no backup, and why."""

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_COPY: Final = sql.SQL(
    "COPY (SELECT {columns} FROM threefold.{table}) TO STDOUT WITH (FORMAT text, HEADER true)"
)
# Dates and numbers as they are read back the same by every server.
_FORMS: Final = (
    "SELECT set_config('DateStyle', 'ISO', true), set_config('TimeZone', 'UTC', true),"
    " set_config('extra_float_digits', '3', true), set_config('bytea_output', 'hex', true)"
)


class PostgresBackupSource(BackupSource):
    """See :class:`memory_tool.backup_ports.BackupSource`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    @contextlib.contextmanager
    def dump(self) -> Iterator["PostgresDump"]:
        """See :meth:`memory_tool.backup_ports.BackupSource.dump`."""
        with self._pool.connection() as connection:
            connection.execute(_BEGIN)
            connection.execute(statement("be_patient"))
            connection.execute(_FORMS)
            yield PostgresDump(connection)
            connection.execute("COMMIT")


class PostgresDump(Dump):
    """See :class:`memory_tool.backup_ports.Dump`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        record = connection.execute(statement("dump_moment")).fetchone()
        store, made_at, memories = cast("tuple[str, Any, int]", record)
        numbers = connection.execute(statement("sequence_numbers")).fetchall()
        pointers = connection.execute(statement("dump_pointers")).fetchall()
        archives = connection.execute(statement("dump_archives")).fetchall()
        self._moment = Moment(
            store=store,
            made_at=made_at,
            memories=memories,
            schema=tuple(
                SchemaStep(number=number, name=name, sha256=sha256)
                for number, (name, sha256) in history(connection).items()
            ),
            sequences=dict(cast("list[tuple[str, int]]", numbers)),
            tables=tuple(one for one in stored_tables(connection) if one.name not in NOT_SAVED),
            pointers={
                target: Pointer(target=target, generation=generation, locator=locator, mark=mark)
                for target, generation, locator, mark in cast(
                    "list[tuple[str, int, str, str]]", pointers
                )
            },
            archives=dict(cast("list[tuple[str, str]]", archives)),
        )

    @property
    def moment(self) -> Moment:
        """See :attr:`memory_tool.backup_ports.Dump.moment`."""
        return self._moment

    def rows(self, table: TableShape) -> Iterator[bytes]:
        """See :meth:`memory_tool.backup_ports.Dump.rows`."""
        copy = _COPY.format(columns=column_list(table.columns), table=sql.Identifier(table.name))
        with self._connection.cursor() as cursor, cursor.copy(copy) as rows:
            for piece in rows:
                yield bytes(piece)


def stored_tables(connection: Connection) -> tuple[TableShape, ...]:
    """Every table of the schema, also those that are not saved."""
    records = connection.execute(statement("stored_tables")).fetchall()
    return tuple(
        TableShape(name=name, columns=tuple(columns), size=size)
        for name, columns, size in cast("list[tuple[str, list[str], int]]", records)
    )


def column_list(columns: tuple[str, ...]) -> sql.Composed:
    """Names of columns as a statement has them."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))
