"""Erasing in PostgreSQL: rows under fresh numbers as the worker, tables anew as the owner."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, cast

import psycopg
from psycopg import sql

from memory_tool.adapters.postgres_connection import (
    PATIENCE,
    Connection,
    PostgresPool,
    translated,
)
from memory_tool.adapters.postgres_queries import statement
from memory_tool.erase_ports import EraseTruth, Rewriting
from memory_tool.erase_values import LedgerLine, Place
from memory_tool.errors import Unavailable

BATCH: Final = 1000
"""Rows of one transaction: the namespace is locked for some tens of milliseconds."""

LETTERS: Final = 48
"""Length of a piece. Shorter ones are met by chance or in everybody's text."""

_SHORTEST: Final = 12
_TRIES: Final = 5
_LOCK_SECONDS: Final = 10


class PostgresErase(EraseTruth):
    """See :class:`memory_tool.erase_ports.EraseTruth`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def carried_out(self) -> frozenset[str]:
        """See :meth:`memory_tool.erase_ports.EraseTruth.carried_out`."""
        with self._pool.connection() as connection:
            return carried_out(connection)

    def pieces(self, lines: Sequence[LedgerLine], limit: int) -> tuple[str, ...]:
        """See :meth:`memory_tool.erase_ports.EraseTruth.pieces`."""
        found: dict[str, None] = {}
        with self._pool.connection() as connection:
            for ns_id, ids in _by_namespace(lines).items():
                records = connection.execute(
                    statement("canaries"),
                    {"ns_id": ns_id, "ids": ids, "letters": LETTERS, "bound": limit},
                ).fetchall()
                for record in cast("list[tuple[str | None, ...]]", records):
                    found.update((text, None) for text in record if text and _is_telling(text))
        return tuple(found)[:limit]

    def carry_out(self, lines: Sequence[LedgerLine]) -> Mapping[str, int]:
        """See :meth:`memory_tool.erase_ports.EraseTruth.carry_out`."""
        with self._pool.connection() as connection:
            return carry_out(connection, lines)

    def unfinished(self) -> tuple[int, ...]:
        """See :meth:`memory_tool.erase_ports.EraseTruth.unfinished`."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("unfinished_erasures")).fetchall()
        return tuple(ns_id for (ns_id,) in cast("list[tuple[int]]", records))

    def finish(self, until: datetime) -> None:
        """See :meth:`memory_tool.erase_ports.EraseTruth.finish`."""
        with self._pool.connection() as connection:
            connection.execute(statement("finish_erasures"), {"until": until})

    def said_elsewhere(self, piece: str) -> bool:
        """See :meth:`memory_tool.erase_ports.EraseTruth.said_elsewhere`."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("said_elsewhere"), {"piece": piece}).fetchone()
        return cast("tuple[bool]", record)[0]


def carried_out(connection: Connection) -> frozenset[str]:
    """See :meth:`memory_tool.erase_ports.EraseTruth.carried_out`."""
    records = connection.execute(statement("ledger_names")).fetchall()
    return frozenset(name for (name,) in cast("list[tuple[str]]", records))


def carry_out(connection: Connection, lines: Sequence[LedgerLine]) -> Mapping[str, int]:
    """See :meth:`memory_tool.erase_ports.EraseTruth.carry_out`.

    Within a transaction it is all or nothing.
    """
    counts: Counter[str] = Counter(memories=0, versions=0, chunks=0, namespaces=0)
    for ns_id, ids in _by_namespace(lines).items():
        if ids is None:
            # First: whoever adds from now on adds to another namespace.
            connection.execute(statement("forget_namespace"), {"ns_id": ns_id})
            counts.update(namespaces=1)
        while True:
            record = connection.execute(
                statement("erase_memories"), {"ns_id": ns_id, "ids": ids, "bound": BATCH}
            ).fetchone()
            erased, versions, chunks = cast("tuple[int, int, int]", record)
            counts.update(memories=erased, versions=versions, chunks=chunks)
            if not erased:
                break
    for line in lines:
        connection.execute(
            statement("note_line"),
            {
                "ns_id": line.ns_id,
                "memory_id": line.memory_id,
                "at": line.at,
                "name": line.name,
            },
        )
    return dict(counts)


class PostgresRewrite(Rewriting):
    """Tables anew, so that no page keeps a dead row. Connects as ``threefold_owner``.

    Each part is locked while it is copied: seconds for 100,000 memories.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def rewrite(self, ns_ids: Sequence[int]) -> Place:
        """See :meth:`memory_tool.erase_ports.Rewriting.rewrite`."""
        begin = time.monotonic()
        try:
            with (
                translated(),
                psycopg.connect(self._conninfo, autocommit=True, **PATIENCE) as connection,
            ):
                connection.execute(
                    "SELECT set_config('lock_timeout', %s, false)", [f"{_LOCK_SECONDS}s"]
                )
                records = connection.execute(
                    statement("partitions_of"), {"ns_ids": list(ns_ids)}
                ).fetchall()
                tables = [str(name) for (name,) in records]
                for table in tables:
                    _written_anew(connection, table)
                # Statistics quote the commonest and the bounding values.
                connection.execute("ANALYZE")
                _written_anew(connection, "pg_catalog.pg_statistic")
        except Unavailable as error:
            return Place(name="tables", state="waiting", said=f"not written anew: {error}")
        seconds = time.monotonic() - begin
        said = f"{len(tables)} tables and the statistics written anew in {seconds:.1f} s"
        return Place(name="tables", state="done", said=said)


def _written_anew(connection: psycopg.Connection, table: str) -> None:
    schema, _, name = table.partition(".")
    command = sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(schema, name))
    for attempt in range(1, _TRIES + 1):
        try:
            connection.execute(command)
        except psycopg.errors.LockNotAvailable as error:
            if attempt == _TRIES:
                message = f"{table} is in use without a pause"
                raise Unavailable(message) from error
        else:
            return


def _by_namespace(lines: Sequence[LedgerLine]) -> Mapping[int, list[str] | None]:
    """For each namespace the memories that are named, ``None`` for all of it."""
    wanted: dict[int, list[str] | None] = {}
    for line in lines:
        named = wanted.setdefault(line.ns_id, [])
        if line.memory_id is None:
            wanted[line.ns_id] = None
        elif named is not None:
            named.append(line.memory_id)
    return wanted


def _is_telling(text: str) -> bool:
    return len(text) >= _SHORTEST
