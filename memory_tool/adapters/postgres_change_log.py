"""The truth as appliers read it, through the role ``threefold_worker``."""

import contextlib
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Final, Literal, cast

from psycopg import sql

from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_holdings import NUMBER, ROW_HELD
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import (
    Image,
    Record,
    chunk_of,
    number_array,
    row_of_image,
    space_of,
)
from memory_tool.log_ports import ChangeLog, VectorGaps
from memory_tool.model import StoredRow
from memory_tool.port_values import (
    ChangeBatch,
    ChangeRow,
    DeadLetter,
    ForeignHistory,
    Pointer,
    TargetBase,
)
from memory_tool.scope import Namespace
from memory_tool.space_values import FIRST_SPACE, space_of_target

# What the other index doesn't hold stays in the database.
_COLUMNS: Final = {
    "vector": f"'' AS words, '' AS bigrams, {statement('vector_in')} AS embedding",
    "keyword": "k.words, k.bigrams, NULL::bytea AS embedding",
}
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ"
_FETCH: Final = 500
_FULL_LOOK: Final = timedelta(minutes=10)
_OVERLAP: Final = timedelta(minutes=1)
"""A transaction may commit up to this long after the moment that its clock row names."""


class PostgresChangeLog(ChangeLog, VectorGaps):
    """See ``ChangeLog`` and ``VectorGaps`` in :mod:`memory_tool.log_ports`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._clocks: Mapping[int, int] = {}
        self._looked: datetime | None = None
        self._looked_fully: datetime | None = None
        self._history = 0

    def pending(self, clocks: Mapping[int, int]) -> int:
        """See :meth:`memory_tool.log_ports.ChangeLog.pending`."""
        with self._lock:
            self._look()
            known = self._clocks
        return sum(max(0, nseq - clocks.get(ns_id, 0)) for ns_id, nseq in known.items())

    def knows(self, target: str, mark: str) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.knows`."""
        with self._pool.connection() as connection:
            record = connection.execute(
                statement("known_mark"), {"target": target, "mark": mark}
            ).fetchone()
        return bool(record and record[0])

    def without_vectors(self, limit: int) -> tuple[StoredRow, ...]:
        """See :meth:`memory_tool.log_ports.VectorGaps.without_vectors`."""
        with self._pool.connection() as connection:
            records = cast(
                "list[tuple[Image, str]]",
                connection.execute(statement("without_vectors"), {"bound": limit}).fetchall(),
            )
        rows = (
            row_of_image(image, {image["ns_id"]: Namespace.from_address(address)})
            for image, address in records
        )
        return tuple(sorted(rows, key=lambda row: row.ns_id))

    def _look(self) -> None:
        """Bring the clocks up to date: those changed since the last look, or all now and then."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("log_clock")).fetchone()
            now, history = cast("tuple[datetime, int]", record)
            # Restored clocks may have gone back, to moments that were looked at long ago.
            since = self._since(now) if history == self._history else None
            records = connection.execute(statement("changed_clocks"), {"since": since}).fetchall()
        fresh = {ns_id: nseq for ns_id, nseq, _ in cast("list[tuple[int, int, int]]", records)}
        self._clocks = fresh if since is None else {**self._clocks, **fresh}
        self._looked, self._history = now, history
        if since is None:
            self._looked_fully = now

    def _since(self, now: datetime) -> datetime | None:
        if self._looked is None or self._looked_fully is None or now < self._looked:
            return None
        if now - self._looked_fully > _FULL_LOOK:
            return None
        return self._looked - _OVERLAP

    @contextlib.contextmanager
    def changes(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        base: TargetBase,
        limit: int,
    ) -> Iterator[ChangeBatch]:
        """See :meth:`memory_tool.log_ports.ChangeLog.changes`."""
        with self._pool.connection() as connection:
            connection.execute(_SNAPSHOT)
            connection.execute(statement("be_patient"))
            _check_known(connection, target, base=base)
            mark = self._new_mark(target, of=connection)
            space = number_of_space(connection, target)
            yield _batch(connection, kind, mark=mark, base=base, limit=limit, space=space)

    def _new_mark(self, target: str, *, of: Connection) -> str:
        """A mark for the rows of a snapshot, durable before any index can carry it.

        It is committed beside the snapshot, so that an index which takes rows over minutes is no
        stranger meanwhile, nor when it breaks off. Only the server that holds the snapshot can take
        it up elsewhere: a mark of another history than the rows would vouch for what this history
        never had.
        """
        mark = secrets.token_hex(16)
        record = of.execute("SELECT pg_export_snapshot()").fetchone()
        (snapshot,) = cast("tuple[str]", record)
        with self._pool.connection() as connection:
            connection.execute(_SNAPSHOT)
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
            connection.execute(statement("new_mark"), {"target": target, "mark": mark})
            connection.execute("COMMIT")
        return mark

    def pointer(self, target: str) -> Pointer | None:
        """See :meth:`memory_tool.log_ports.ChangeLog.pointer`."""
        with self._pool.connection() as connection:
            row = connection.execute(statement("pointer"), {"target": target}).fetchone()
        if row is None:
            return None
        name, generation, sha256, mark = cast("tuple[str, int, str, str]", row)
        return Pointer(target=name, generation=generation, locator=sha256, mark=mark)

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.publish`."""
        parameters = {
            "target": pointer.target,
            "generation": pointer.generation,
            "locator": pointer.locator,
            "mark": pointer.mark,
            "base_mark": base_mark,
        }
        with self._pool.connection() as connection:
            return connection.execute(statement("publish"), parameters).fetchone() is not None

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.note_progress`."""
        parameters = {
            "target": target,
            "ns_ids": number_array(clocks),
            "applied": number_array(clocks.values()),
        }
        with self._pool.connection() as connection:
            connection.execute(statement("note_progress"), parameters)
            connection.execute(statement("forget_marks"), {"target": target})

    def bury(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.bury`."""
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(
                statement("clear_letters", number=NUMBER[kind]),
                {
                    "target": target,
                    "ns_ids": number_array(delivered),
                    "above": number_array(above for above, _ in delivered.values()),
                    "upto": number_array(upto for _, upto in delivered.values()),
                },
            )
            for letter in letters:
                connection.execute(
                    statement("bury"),
                    {
                        "target": target,
                        "ns_id": letter.ns_id,
                        "id": letter.memory_id,
                        "version": letter.version,
                        "reason": letter.reason,
                    },
                )

    def identity(self) -> str:
        """What tells this store from every other: 32 hexadecimal digits."""
        with self._pool.connection() as connection:
            row = connection.execute(statement("store_identity")).fetchone()
        return cast("tuple[str]", row)[0]


def number_of_space(connection: Connection, target: str) -> int:
    """The number of the space whose vectors a target holds, or the active one's."""
    named = space_of_target(target)
    if named is not None:
        return named
    active = connection.execute(statement("active_number")).fetchone()
    return cast("tuple[int]", active)[0] if active else FIRST_SPACE


def _check_known(connection: Connection, target: str, *, base: TargetBase) -> None:
    if base.mark is None:
        return
    known = {"target": target, "mark": base.mark}
    if connection.execute(statement("known_mark"), known).fetchone() is None:
        message = f"{target} carries a mark that this store never made"
        raise ForeignHistory(message)


def _batch(
    connection: Connection,
    kind: Literal["vector", "keyword"],
    *,
    mark: str,
    base: TargetBase,
    limit: int,
    space: int,
) -> ChangeBatch:
    records = connection.execute(statement("changed_clocks"), {"since": None}).fetchall()
    upto = _span(cast("list[tuple[int, int, int]]", records), base, limit=limit)
    identity = connection.execute(statement("store_identity")).fetchone()
    definition = connection.execute(statement("space_numbered"), {"space": space}).fetchone()
    return ChangeBatch(
        rows=_changed_rows(connection, kind, base=base, upto=upto, space=space),
        clocks=upto,
        mark=mark,
        base_mark=base.mark,
        space=space_of(definition),
        store=cast("tuple[str]", identity)[0],
    )


def _span(clocks: list[tuple[int, int, int]], base: TargetBase, *, limit: int) -> Mapping[int, int]:
    """Up to which number each namespace is read: whole namespaces first, the last one cut.

    Args:
        clocks: (ns_id, clock, highest number purged) of each namespace.
        base: Where the target stands.
        limit: Most numbers to read.

    Raises:
        ForeignHistory: The base holds rows that may have been purged since.
    """
    left = limit
    upto: dict[int, int] = {}
    for ns_id, nseq, purged in clocks:
        done = base.clocks.get(ns_id, 0)
        if 0 < done < purged:
            message = f"rows of namespace {ns_id} were purged that the target has not seen go"
            raise ForeignHistory(message)
        if done < nseq and left > 0:
            upto[ns_id] = min(nseq, done + left)
            left -= upto[ns_id] - done
    return upto


def _changed_rows(
    connection: Connection,
    kind: Literal["vector", "keyword"],
    *,
    base: TargetBase,
    upto: Mapping[int, int],
    space: int,
) -> Iterator[ChangeRow]:
    sql = statement(
        "changed_rows", number=NUMBER[kind], held=ROW_HELD[kind], columns=_COLUMNS[kind]
    )
    parameters = {
        "ns_ids": number_array(upto),
        "above": number_array(base.clocks.get(ns_id, 0) for ns_id in upto),
        "upto": number_array(upto.values()),
        "space": space,
    }
    with connection.cursor(name="changes", binary=True) as cursor:
        cursor.itersize = _FETCH
        cursor.execute(sql, parameters)
        for _, group in groupby(cursor, key=itemgetter(0, 1)):
            yield _change_row(list(group))
    # What the target still has to do needs no snapshot, which would keep dead rows alive.
    connection.execute("COMMIT")


def _change_row(records: list[Record]) -> ChangeRow:
    ns_id, memory_id, nseq, version, live, extra, chunk_high = records[0][:7]
    return ChangeRow(
        ns_id=ns_id,
        memory_id=memory_id,
        nseq=nseq,
        version=version,
        live=live,
        extra=extra,
        chunk_high=chunk_high,
        chunks=tuple(chunk_of(record[7:]) for record in records if record[7] is not None),
    )
