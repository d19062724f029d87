"""Reading the truth without searching: by id, page by page, version by version."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final, cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_rows import (
    Record,
    key_arrays,
    number_array,
)
from memory_tool.adapters.postgres_snapshot import compiled_condition, name_namespaces
from memory_tool.model import Memory, MemoryId, StoredRow
from memory_tool.port_values import PageRequest
from memory_tool.ports import RecordReader
from memory_tool.query import EVERYTHING, Filter
from memory_tool.scope import Namespace, Scope

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresRecordReader(RecordReader):
    """See :class:`memory_tool.ports.RecordReader`. A call reads one moment, in one round trip."""

    def __init__(self, pool: PostgresPool, store: PostgresRecordStore) -> None:
        self._pool = pool
        self._store = store
        self._whole = store.whole

    def fetch(self, scope: Scope, ids: Sequence[MemoryId]) -> Mapping[MemoryId, StoredRow]:
        """See :meth:`memory_tool.ports.RecordReader.fetch`."""
        namespaces = self._namespaces(scope)
        (records,) = self._select(namespaces, ["rows"], values=_anywhere(namespaces, ids))
        return {row.memory.id: row for row in self._whole.shown(records, namespaces)}

    def page(self, scope: Scope, request: PageRequest) -> tuple[StoredRow, ...]:
        """See :meth:`memory_tool.ports.RecordReader.page`."""
        namespaces = self._namespaces(scope)
        after_time, after_id = request.after or (None, None)
        values = {"after_time": after_time, "after_id": after_id, "bound": request.limit}
        (records,) = self._select(namespaces, ["page"], values=values, condition=request.condition)
        return tuple(self._whole.shown(records, namespaces))

    def history(self, scope: Scope, memory_id: MemoryId) -> tuple[Memory, ...]:
        """See :meth:`memory_tool.ports.RecordReader.history`."""
        namespaces = self._namespaces(scope)
        names = ["old_versions", "rows"]
        values = _anywhere(namespaces, [memory_id])
        old, current = self._select(namespaces, names, values=values)
        if not current:
            return ()
        return self._whole.history(old, current[0], namespaces=namespaces)

    def deleted(self, scope: Scope, ids: Sequence[MemoryId]) -> frozenset[MemoryId]:
        """See :meth:`memory_tool.ports.RecordReader.deleted`."""
        namespaces = self._namespaces(scope)
        values = _anywhere(namespaces, ids)
        (records,) = self._select(namespaces, ["deleted_ids"], values=values)
        return frozenset(record[0] for record in records)

    def counts(self) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.RecordReader.counts`."""
        with self._pool.connection() as connection:
            records = connection.execute(statement("store_counts")).fetchall()
        return dict(cast("list[tuple[str, int]]", records))

    def _namespaces(self, scope: Scope) -> Mapping[int, Namespace]:
        view = self._store.view(scope, ())
        return {clock.ns_id: clock.namespace for clock in view.namespaces}

    def _select(
        self,
        namespaces: Mapping[int, Namespace],
        names: Sequence[str],
        *,
        values: Mapping[str, object],
        condition: Filter = EVERYTHING,
    ) -> list[list[Record]]:
        """The records of each statement, all of one snapshot."""
        if not namespaces:
            return [[] for _ in names]
        text, parameters = compiled_condition(condition)
        ns_ids = number_array(namespaces)
        named = {"ns_ids": ns_ids, **values, **parameters}
        with self._pool.connection() as connection:
            with connection.pipeline():
                connection.execute(_BEGIN)
                name_namespaces(connection, ns_ids)
                cursors = [
                    connection.execute(statement(name, condition=text), named, binary=True)
                    for name in names
                ]
                connection.execute("COMMIT")
            return [list(cursor) for cursor in cursors]


def _anywhere(namespaces: Iterable[int], ids: Sequence[MemoryId]) -> Mapping[str, str]:
    """The keys that these ids may have: who knows an id only looks into each namespace for it."""
    return key_arrays(product(namespaces, ids))
