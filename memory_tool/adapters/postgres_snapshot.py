"""One repeatable-read moment of the truth, for one search."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, cast

import numpy as np

from memory_tool.adapters.postgres_archive import WholeRows
from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_filters import compile_filter
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import (
    HALF,
    Record,
    chunk_of,
    id_array,
    key_arrays,
    number_array,
)
from memory_tool.errors import ScopeRequired
from memory_tool.model import MemoryId, MemoryType, StoredRow
from memory_tool.port_values import ChunkTokens, Opening, OverlayRow, RowKey, StoredVectors
from memory_tool.ports import Snapshot
from memory_tool.query import EVERYTHING, AllOf, Candidate, Comparison, Filter, Outline

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
UNDELIVERED: Final = 1_000
"""Most chunks of dead letters that one search reads: there should be none at all."""

_TYPES: Final = {member.value: member for member in MemoryType}


@contextlib.contextmanager
def open_snapshot(
    pool: PostgresPool, opening: Opening, *, whole: WholeRows
) -> Iterator["PostgresSnapshot"]:
    """Open a snapshot and read what ``opening`` asks for in one round trip.

    Raises:
        ScopeRequired: The opening names no namespace.
    """
    if not opening.namespaces:
        raise ScopeRequired
    with pool.connection() as connection:
        yield PostgresSnapshot(connection, opening, whole=whole)
        # Nothing was written, but after a ROLLBACK the driver forgets its prepared statements.
        connection.execute("COMMIT")


class PostgresSnapshot(Snapshot):
    """See :class:`memory_tool.ports.RecordSnapshot` and :class:`memory_tool.ports.TokenSearch`."""

    def __init__(self, connection: Connection, opening: Opening, *, whole: WholeRows) -> None:
        self._connection = connection
        self._whole = whole
        self._namespaces = opening.namespaces
        self._ns_ids = number_array(opening.namespaces)
        with connection.pipeline():
            connection.execute(_BEGIN)
            name_namespaces(connection, self._ns_ids)
            clocks = connection.execute(statement("clocks"), {"ns_ids": self._ns_ids})
            marks = connection.execute(
                statement("missing_marks"),
                {
                    "targets": [target for target, _ in opening.marks],
                    "marks": [mark for _, mark in opening.marks],
                },
            )
            changed = connection.execute(
                statement("overlay"),
                {
                    "since_ns": number_array(opening.since),
                    "since": number_array(opening.since.values()),
                    "bound": opening.overlay_limit,
                },
                binary=True,
            )
            letters = opening.letters_of and connection.execute(
                statement("undelivered"),
                {
                    "ns_ids": self._ns_ids,
                    "targets": list(opening.letters_of),
                    "bound": UNDELIVERED + 1,
                },
                binary=True,
            )
        stood = cast("list[tuple[int | None, int | None, int, int]]", clocks.fetchall())
        self._space = stood[0][0]
        self._clocks = {ns_id: nseq for _, ns_id, nseq, _ in stood if ns_id is not None}
        self._lowered = sum(lowered for _, _, _, lowered in stood if lowered)
        self._missing = frozenset(str(target) for (target,) in marks)
        above = sum(
            max(0, self._clocks.get(ns_id, 0) - number) for ns_id, number in opening.since.items()
        )
        too_many = above > opening.overlay_limit
        self._overlay = None if too_many else _overlay(changed.fetchall())
        self._undelivered = _by_target(letters.fetchall()) if letters else {}

    @property
    def missing_marks(self) -> frozenset[str]:
        """See :attr:`memory_tool.ports.RecordSnapshot.missing_marks`."""
        return self._missing

    @property
    def space(self) -> int | None:
        """See :attr:`memory_tool.ports.RecordSnapshot.space`."""
        return self._space

    @property
    def clocks(self) -> Mapping[int, int]:
        """See :attr:`memory_tool.ports.RecordSnapshot.clocks`."""
        return self._clocks

    @property
    def overlay(self) -> tuple[OverlayRow, ...] | None:
        """See :attr:`memory_tool.ports.RecordSnapshot.overlay`."""
        return self._overlay

    @property
    def undelivered(self) -> Mapping[str, tuple[OverlayRow, ...]] | None:
        """See :attr:`memory_tool.ports.RecordSnapshot.undelivered`."""
        return self._undelivered

    def outlines(self, keys: Sequence[RowKey], condition: Filter) -> Mapping[MemoryId, Outline]:
        """See :meth:`memory_tool.ports.RecordSnapshot.outlines`."""
        records = self._select("outlines", key_arrays(keys), condition=condition)
        return {
            record[0]: Outline._make((*record[:5], _TYPES[record[5]], *record[6:]))
            for record in records
        }

    def rows(self, keys: Sequence[RowKey]) -> Mapping[MemoryId, StoredRow]:
        """See :meth:`memory_tool.ports.RecordSnapshot.rows`."""
        records = self._select("rows", key_arrays(keys))
        return {row.memory.id: row for row in self._whole.shown(records, self._namespaces)}

    def matching_keys(self, condition: Filter, limit: int) -> frozenset[RowKey] | None:
        """See :meth:`memory_tool.ports.RecordSnapshot.matching_keys`."""
        wanted = _indexed_part(condition)
        name = "matching_keys_by_metadata" if wanted else "matching_keys"
        values = {"wanted": json.dumps(wanted), "bound": limit + 1}
        records = self._select(name, values, condition=condition)
        return None if len(records) > limit else frozenset(records)

    def vectors(self, keys: Sequence[RowKey] | None, limit: int) -> StoredVectors | None:
        """See :meth:`memory_tool.ports.RecordSnapshot.vectors`."""
        bound = {"bound": limit + 1}
        if keys is None:
            records = self._select("all_vectors", bound)
        else:
            records = self._select("vectors_of", {**key_arrays(keys), **bound})
        if len(records) > limit:
            return None
        references = tuple(
            Candidate(ns_id, memory_id, ordinal, version, 0.0)
            for ns_id, memory_id, ordinal, version, _ in records
        )
        if not records:
            return StoredVectors(references=(), vectors=np.empty((0, 0), np.float32))
        halves = np.frombuffer(b"".join(record[4] for record in records), HALF)
        vectors = halves.reshape(len(records), -1).astype(np.float32)
        return StoredVectors(references=references, vectors=vectors)

    def chunks_with(self, terms: Sequence[str], limit: int) -> tuple[ChunkTokens, ...]:
        """See :meth:`memory_tool.ports.TokenSearch.chunks_with`."""
        records = self._select("chunks_with", {"terms": list(terms), "bound": limit})
        return tuple(map(_chunk_tokens, records))

    @property
    def lowered(self) -> int:
        """See :attr:`memory_tool.ports.TokenSearch.lowered`."""
        return self._lowered

    def lower_chunks_with(
        self, terms: Sequence[str], limit: int, *, within: frozenset[MemoryId] | None
    ) -> tuple[ChunkTokens, ...]:
        """See :meth:`memory_tool.ports.TokenSearch.lower_chunks_with`."""
        ids = None if within is None else id_array(within)
        values = {"terms": list(terms), "ids": ids, "bound": limit}
        return tuple(map(_chunk_tokens, self._select("lower_chunks_with", values)))

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.TokenSearch.term_documents`."""
        return dict(self._select("term_documents", {"terms": list(terms)}))

    def _select(
        self, name: str, values: Mapping[str, object], *, condition: Filter = EVERYTHING
    ) -> list[Any]:
        text, parameters = compiled_condition(condition)
        return self._connection.execute(
            statement(name, condition=text),
            {"ns_ids": self._ns_ids, **values, **parameters},
            binary=True,
        ).fetchall()


def name_namespaces(connection: Connection, ns_ids: str) -> None:
    """Open the walls of the transaction for these namespaces, an array as text."""
    connection.execute(statement("name_namespaces"), {"named": ns_ids})


def compiled_condition(condition: Filter) -> tuple[str, Mapping[str, object]]:
    """``AND …`` for a WHERE clause with named parameters; empty when nothing is asked."""
    if condition == EVERYTHING:
        return "", {}
    text, values = compile_filter(condition)
    first, *others = text.split("%s")
    pieces = (f"%(f{number})s{piece}" for number, piece in enumerate(others))
    parameters = {f"f{number}": value for number, value in enumerate(values)}
    return f"AND ({first}{''.join(pieces)})", parameters


def _indexed_part(condition: Filter) -> Mapping[str, object]:
    """The metadata that every match has to hold: what the index on metadata can look up."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    return {
        part.name: part.value
        for part in parts
        if isinstance(part, Comparison) and part.metadata and part.operator == "eq"
    }


def _chunk_tokens(record: Record) -> ChunkTokens:
    ns_id, memory_id, ordinal, number, words, bigrams, extra = record
    return ChunkTokens(
        ns_id=ns_id,
        memory_id=memory_id,
        ordinal=ordinal,
        keyword_nseq=number,
        words=words,
        bigrams=bigrams,
        extra=extra,
    )


def _overlay(records: Sequence[Record]) -> tuple[OverlayRow, ...]:
    by_memory = groupby(records, key=itemgetter(0, 1))
    return tuple(_overlay_row(list(group)) for _, group in by_memory)


def _by_target(records: Sequence[Record]) -> Mapping[str, tuple[OverlayRow, ...]] | None:
    if len(records) > UNDELIVERED:
        return None
    return {
        target: _overlay([record[1:] for record in group])
        for target, group in groupby(records, key=itemgetter(0))
    }


def _overlay_row(records: Sequence[Record]) -> OverlayRow:
    """A changed row from its joined records, one for each chunk."""
    ns_id, memory_id, nseq, vector_nseq, keyword_nseq, live, extra = records[0][:7]
    return OverlayRow(
        ns_id=ns_id,
        memory_id=memory_id,
        nseq=nseq,
        vector_nseq=vector_nseq,
        keyword_nseq=keyword_nseq,
        live=live,
        extra=extra,
        chunks=tuple(chunk_of(record[7:]) for record in records if record[7] is not None),
    )
