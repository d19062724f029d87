"""The truth replaced by a backup, in one transaction of the tables' owner.

Nobody reads or writes meanwhile: every table is locked from the first look to the commit. The walls
of row-level security keep the owner out too, so they are lifted, for the owner, within the
transaction.
"""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, cast

import psycopg
from psycopg import sql

from memory_tool.adapters.postgres_backup import NOT_SAVED, column_list, stored_tables
from memory_tool.adapters.postgres_connection import PATIENCE, Connection, translated
from memory_tool.adapters.postgres_erase import carried_out, carry_out
from memory_tool.adapters.postgres_migrations import (
    Migration,
    check_history,
    keep_others_out,
    migrate,
    run_migrations,
    shipped_migrations,
)
from memory_tool.adapters.postgres_queries import statement
from memory_tool.backup_manifest import BackupManifest, SavedTable
from memory_tool.backup_ports import Restored, RestoreTarget, RestoreWish, SavedBackup
from memory_tool.errors import Corrupt, Unavailable, WouldLose

LOCK_SECONDS: Final = 30.0
"""How long whoever reads or writes may take to let go of a table; others queue behind meanwhile."""

_KEPT: Final = frozenset(NOT_SAVED) - {"job"}
"""Tables that a restore leaves as they are."""

_FIRST: Final = ("namespace", "ns_clock", "memory", "chunk")
"""Locked first, in the order in which a write takes them: who waits for us holds nothing more."""

_COPY: Final = sql.SQL(
    "COPY threefold.{table} ({columns}) FROM STDIN WITH (FORMAT text, HEADER match)"
)
_KEPT_COLUMNS: Final = ("ns_id", "id", "state", "version", "updated_at")
_COPY_KEPT: Final = "COPY kept (ns_id, id, state, version, updated_at) FROM STDIN"


class PostgresRestoreTarget(RestoreTarget):
    """See :class:`memory_tool.backup_ports.RestoreTarget`. Connects as ``threefold_owner``."""

    def __init__(self, conninfo: str, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._conninfo = conninfo
        self._lock_seconds = lock_seconds

    def restore(self, backup: SavedBackup, wish: RestoreWish) -> Restored:
        """See :meth:`memory_tool.backup_ports.RestoreTarget.restore`."""
        _check_version(backup.manifest)
        # An empty database has no tables to be compared yet, and an older one lacks some.
        migrate(self._conninfo)
        with (
            translated(),
            psycopg.connect(self._conninfo, **PATIENCE) as connection,
            connection.transaction(),
        ):
            self._lock(connection)
            return _restored(connection, backup, wish=wish)

    def _lock(self, connection: Connection) -> None:
        """Be alone with the tables.

        Raises:
            Unavailable: Somebody did not let go of them; says who.
        """
        keep_others_out(connection)
        connection.execute(
            "SELECT set_config('lock_timeout', %s, true)", [f"{self._lock_seconds * 1000:.0f}ms"]
        )
        ordered = sorted(_names(connection), key=lambda name: (name not in _FIRST, name))
        locking = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(_qualified(ordered))
        deadline = time.monotonic() + self._lock_seconds
        while True:
            try:
                # A savepoint: what is locked before a failure is let go of.
                with connection.transaction():
                    connection.execute(locking)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                crossed = isinstance(error, psycopg.errors.DeadlockDetected)
                if crossed and time.monotonic() < deadline:
                    # Somebody took the same tables in another order, and goes on now.
                    continue
                message = f"others use the tables: {self._in_the_way(connection.info.backend_pid)}"
                raise Unavailable(message) from error
            else:
                return

    def _in_the_way(self, own: int) -> str:
        with psycopg.connect(self._conninfo, **PATIENCE) as other:
            found = other.execute(statement("in_the_way"), {"own": own}).fetchall()
        return ", ".join(f"{role} in PostgreSQL process {pid}" for pid, role in found) or "unknown"


def _restored(connection: Connection, backup: SavedBackup, *, wish: RestoreWish) -> Restored:
    manifest = backup.manifest
    walls = _lift_walls(connection)
    lost = _lost(connection, backup, replace=wish.replace)
    later = _emptied(connection, manifest)
    # Tables that were made anew have walls again.
    walls = _lift_walls(connection) or walls
    _check_columns(connection, manifest)
    for table in manifest.tables:
        _fill(connection, table, pieces=backup.rows(table, wish.written))
    for name, last in manifest.sequences.items():
        connection.execute(statement("advance_sequence"), {"name": name, "last": last})
    _raise_walls(connection, walls)
    run_migrations(connection, later)
    connection.execute(statement("forget_switch"))
    connection.execute(statement("unsee_targets"))
    walls = _lift_walls(connection)
    done = carried_out(connection)
    erased = carry_out(connection, [line for line in wish.erased if line.name not in done])
    record = connection.execute(statement("dump_moment")).fetchone()
    _raise_walls(connection, walls)
    connection.execute(sql.SQL("ANALYZE {}").format(_qualified(_names(connection))))
    wish.before_commit()
    return Restored(
        memories=cast("tuple[str, object, int]", record)[2], lost=lost, erased=erased["memories"]
    )


def _check_version(manifest: BackupManifest) -> None:
    done = {step.number: (step.name, step.sha256) for step in manifest.schema}
    check_history(done, shipped_migrations(), what="backup")


def _names(connection: Connection) -> list[str]:
    return [table.name for table in stored_tables(connection)]


def _qualified(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier("threefold", name) for name in names)


def _lift_walls(connection: Connection) -> tuple[str, ...]:
    """Let the owner see rows, and say of which tables."""
    found = cast("list[tuple[str]]", connection.execute(statement("walls")).fetchall())
    return _turned(connection, [name for (name,) in found], how="NO FORCE")


def _raise_walls(connection: Connection, names: Sequence[str]) -> None:
    _turned(connection, names, how="FORCE")


def _turned(connection: Connection, names: Sequence[str], *, how: str) -> tuple[str, ...]:
    for name in names:
        connection.execute(
            sql.SQL("ALTER TABLE {} {} ROW LEVEL SECURITY").format(
                sql.Identifier("threefold", name), sql.SQL(how)
            )
        )
    return tuple(names)


# ── What would be lost ──


def _lost(connection: Connection, backup: SavedBackup, *, replace: bool) -> int:
    """How many live memories are newer than the backup.

    Raises:
        WouldLose: There are some, and nobody said that they may go.
    """
    (any_row,) = cast(
        "tuple[bool]",
        connection.execute("SELECT EXISTS (SELECT FROM threefold.memory)").fetchone(),
    )
    if not any_row:
        return 0
    connection.execute(statement("kept_by_backup"))
    (table,) = (table for table in backup.manifest.tables if table.name == "memory")
    places = [table.columns.index(name) for name in _KEPT_COLUMNS]
    with connection.cursor() as cursor, cursor.copy(_COPY_KEPT) as copy:
        for lines in _whole_lines(backup.rows(table, lambda _read: None)):
            copy.write(b"".join(map(_picker(places), lines)))
    record = connection.execute(statement("lost_by_restore")).fetchone()
    lost, undone = cast("tuple[int, int]", record)
    if (lost or undone) and not replace:
        parts = [f"{lost:,} memories that are newer than the backup would be lost"]
        parts += [f"{undone:,} deletions undone"] if undone else []
        message = f"{' and '.join(parts)}: say --replace to do it"
        raise WouldLose(message)
    return lost


def _picker(places: Sequence[int]) -> Callable[[bytes], bytes]:
    def picked(line: bytes) -> bytes:
        cells = line.split(b"\t")
        return b"\t".join([cells[place] for place in places]) + b"\n"

    return picked


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lines without their ends; the first, with the names of the columns, is left out."""
    rest, heading = b"", True
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if heading and lines:
            lines, heading = lines[1:], False
        yield lines


# ── Out with the old, in with the new ──


def _emptied(connection: Connection, manifest: BackupManifest) -> tuple[Migration, ...]:
    """Make place for the backup's rows, and say what to run behind them.

    The tables of the same version are emptied and stay as an operator may have arranged them. Those
    of an older one are made as they were then, and brought up to date with the rows in them.
    """
    known = {step.number for step in manifest.schema}
    earlier, later = _parted(shipped_migrations(), known)
    if later:
        connection.execute("DROP SCHEMA threefold CASCADE")
        connection.execute("DELETE FROM public.threefold_migration")
        run_migrations(connection, earlier)
    names = [name for name in _names(connection) if name not in _KEPT]
    connection.execute(sql.SQL("TRUNCATE {}").format(_qualified(names)))
    return later


def _parted(
    migrations: Sequence[Migration], known: Container[int]
) -> tuple[tuple[Migration, ...], tuple[Migration, ...]]:
    """Those of these numbers, and the others."""
    earlier = tuple(one for one in migrations if one.number in known)
    return earlier, tuple(one for one in migrations if one.number not in known)


def _check_columns(connection: Connection, manifest: BackupManifest) -> None:
    there = {table.name: set(table.columns) for table in stored_tables(connection)}
    for table in manifest.tables:
        missing = set(table.columns) - there.get(table.name, set())
        if missing:
            message = f"the backup's table {table.name} has columns {sorted(missing)} of no version"
            raise Corrupt(message)


def _fill(connection: Connection, table: SavedTable, *, pieces: Iterator[bytes]) -> None:
    copy = _COPY.format(table=sql.Identifier(table.name), columns=column_list(table.columns))
    with connection.cursor() as cursor:
        with cursor.copy(copy) as rows:
            for piece in pieces:
                rows.write(piece)
        if cursor.rowcount != table.rows:
            message = f"{table.file.name} has {cursor.rowcount} rows, not {table.rows}"
            raise Corrupt(message)
