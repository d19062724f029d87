"""The truth in PostgreSQL: commits, and the door to consistent reads."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, cast

from memory_tool.adapters.postgres_adoption import attached_steps
from memory_tool.adapters.postgres_archive import WholeRows, loaded_json, tokens_json
from memory_tool.adapters.postgres_connection import Connection, PostgresPool, StandbyServer
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import (
    Record,
    chunk_images,
    digest,
    id_array,
    json_text,
    receipt_json,
    results_of,
    row_image,
    row_of_image,
    space_definition,
    space_of,
)
from memory_tool.adapters.postgres_snapshot import PostgresSnapshot, open_snapshot
from memory_tool.archive_ports import Archive
from memory_tool.errors import IdempotencyConflict, TooManyNamespaces, Unavailable
from memory_tool.model import EmbeddingSpace, State, StoredRow, Tier, WriteResult
from memory_tool.port_values import (
    ArchiveFile,
    Commit,
    Existing,
    NamespaceClock,
    Opening,
    Pointer,
    ReadView,
    RowChange,
    WritePlan,
)
from memory_tool.ports import RecordStore, SpaceRegistry
from memory_tool.scope import Namespace, Scope

NAMESPACES_MAX: Final = 1000
VERSIONS_KEPT: Final = 10
"""Old versions of a memory that are kept beside the current one (mission, item 23)."""


class PostgresRecordStore(RecordStore, SpaceRegistry):
    """Commits and snapshots over a pool of the role ``threefold_app``, or that of jobs.

    A namespace's clock row is its lock: numbers are dense and in the order of commits.
    """

    def __init__(self, pool: PostgresPool, archive: Archive | None = None) -> None:
        """Without an ``archive`` cold memories show their summaries and can't be changed."""
        self._pool = pool
        self.whole = WholeRows(archive)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def commit(self, commit: Commit) -> tuple[WriteResult, ...]:
        """See :meth:`memory_tool.ports.RecordStore.commit`."""
        used: Connection | None = None
        try:
            with self._pool.connection() as connection:
                existing, answered = _open_write(connection, commit, whole=self.whole)
                if answered is not None:
                    connection.execute("COMMIT")
                    return answered
                plan = commit.plan(existing)
                used = connection
                _write(connection, commit, existing=existing, plan=plan)
        except Unavailable as error:
            if used is not None and used.closed:
                # The answer to COMMIT may be what was lost: only a repetition under the key tells.
                message = str(error)
                raise Unavailable(message, outcome="unknown", key=commit.idempotency_key) from error
            raise
        return plan.results

    def view(self, scope: Scope, targets: Sequence[str]) -> ReadView:
        """See :meth:`memory_tool.ports.RecordStore.view`."""
        with self._pool.connection() as connection:
            with connection.pipeline():
                found = [
                    connection.execute(statement(name), parameters)
                    for name, parameters in _scope_statements(scope)
                ]
                state = connection.execute(statement("view_state"), {"targets": list(targets)})
            records = cast("list[tuple[Any, ...]]", state.fetchall())
            # Covers of several names may overlap.
            clocks = {record[0]: _clock(record) for cursor in found for record in cursor}
            now, is_standby, incarnation, space = records[0][:4]
            if is_standby:
                message = "the server is a standby, which may lack what was acknowledged"
                raise StandbyServer(message)
        if len(clocks) > NAMESPACES_MAX:
            raise TooManyNamespaces
        return ReadView(
            namespaces=tuple(clocks.values()),
            pointers={
                target: Pointer(target=target, generation=generation, locator=sha256, mark=mark)
                for *_, target, generation, sha256, mark in records
                if target is not None
            },
            incarnation=incarnation,
            now=now,
            space=space,
        )

    def snapshot(self, opening: Opening) -> AbstractContextManager[PostgresSnapshot]:
        """See :meth:`memory_tool.ports.RecordStore.snapshot`."""
        return open_snapshot(self._pool, opening, whole=self.whole)

    def active_space(self) -> EmbeddingSpace | None:
        """See :meth:`memory_tool.ports.SpaceRegistry.active_space`."""
        with self._pool.connection() as connection:
            return space_of(connection.execute(statement("active_space")).fetchone())

    def record_space(self, space: EmbeddingSpace) -> EmbeddingSpace:
        """See :meth:`memory_tool.ports.SpaceRegistry.record_space`."""
        parameters = {"name": space.name, "definition": space_definition(space)}
        with self._pool.connection() as connection:
            connection.execute(statement("record_space"), parameters)
            return space_of(connection.execute(statement("active_space")).fetchone()) or space


def _scope_statements(scope: Scope) -> list[tuple[str, Mapping[str, object]]]:
    if scope.exact:
        hashes = [digest(name.address) for name in scope.within]
        return [("named_namespaces", {"hashes": hashes})]
    return [
        ("covered_namespaces", {**_ids(name), "bound": NAMESPACES_MAX + 1}) for name in scope.within
    ]


def _clock(record: Record) -> NamespaceClock:
    ns_id, address, nseq, stamp = record
    return NamespaceClock(
        ns_id=ns_id, namespace=Namespace.from_address(address), nseq=nseq, stamp=stamp
    )


def namespace_parameters(namespace: Namespace) -> Mapping[str, object]:
    """A namespace as ``threefold.ensure_namespace`` takes it."""
    address = namespace.address
    return {"address": address, "address_hash": digest(address), **_ids(namespace)}


def _ids(namespace: Namespace) -> Mapping[str, object]:
    return {
        "project": namespace.project,
        "user": namespace.user,
        "agent": namespace.agent,
        "path": list(namespace.path) or None,
    }


def _open_write(
    connection: Connection, commit: Commit, *, whole: WholeRows
) -> tuple[Existing, tuple[WriteResult, ...] | None]:
    namespace = commit.namespace
    parameters = {
        **namespace_parameters(namespace),
        "key": digest(commit.idempotency_key),
        # NULL is cheaper than an empty array, for the driver and the server.
        "text_hashes": list(commit.lookup.dedup_hashes) or None,
        "key_hashes": [digest(key) for key in commit.lookup.keys] or None,
        "ids": id_array(commit.lookup.ids) if commit.lookup.ids else None,
    }
    with connection.pipeline():
        connection.execute("BEGIN")
        opened = connection.execute(statement("open_write"), parameters, binary=True)
        active = connection.execute(statement("active_number"))
    records = cast("list[tuple[Any, ...]]", opened.fetchall())
    ns_id, nseq, now, request_hash, response = records[0][:5]
    space = cast("tuple[int] | None", active.fetchone())
    rows = (row_of_image(record[5], {ns_id: namespace}) for record in records[1:])
    existing = Existing(
        ns_id=ns_id,
        nseq=nseq,
        now=now,
        # A row may answer to its text, its key and its id.
        rows=tuple({row.memory.id: row for row in rows}.values()),
        whole=whole.loaded,
        space=space and space[0],
    )
    if request_hash is None:
        return existing, None
    if request_hash != commit.request_hash:
        message = f"idempotency key {commit.idempotency_key!r} was used for another request"
        raise IdempotencyConflict(message)
    return existing, results_of(response)


def _write(connection: Connection, commit: Commit, *, existing: Existing, plan: WritePlan) -> None:
    changes = plan.changes
    chunks, embeddings = chunk_images(changes)
    parameters = {
        "ns_id": existing.ns_id,
        "base": existing.nseq,
        "last": existing.nseq + len(changes),
        "stamp": secrets.randbits(63),
        "changed": json_text([row_image(change) for change in changes]),
        "archived": _ids_of(change.previous for change in changes),
        "versions_kept": VERSIONS_KEPT,
        "rechunked": _ids_of(
            change.row for change in changes if change.chunks is not None and change.action != "add"
        ),
        "deleted": _ids_of(change.row for change in changes if change.row.state is State.DELETED),
        "chunks": json_text(chunks) if chunks else None,
        "embeddings": embeddings,
        "space": commit.space,
        "key": digest(commit.idempotency_key),
        "request_hash": commit.request_hash,
        "receipt": receipt_json(plan.results),
    }
    with connection.pipeline():
        for name, values in _before(existing, changes):
            connection.execute(statement(name), values)
        connection.execute(statement("write_changes"), parameters)
        for name, values in _after(existing, changes, archived=commit.archived):
            connection.execute(statement(name), values)
        connection.execute("COMMIT")


_Step: TypeAlias = tuple[str, Mapping[str, object]]


def _before(existing: Existing, changes: Sequence[RowChange]) -> Iterator[_Step]:
    """What the archive kept is there again before its row is changed and becomes an old version."""
    loaded = loaded_json(changes)
    if loaded:
        yield "bring_back", {"ns_id": existing.ns_id, "loaded": loaded}


def _after(
    existing: Existing, changes: Sequence[RowChange], *, archived: ArchiveFile | None
) -> Iterator[_Step]:
    """What an import or a change of tier takes beside the row; for other writes mostly nothing."""
    ns_id = existing.ns_id
    yield from attached_steps(ns_id, changes, versions=VERSIONS_KEPT)
    tokens = tokens_json(changes)
    if tokens:
        yield "put_tokens", {"ns_id": ns_id, "tokens": tokens}
    before = {row.memory.id: row for row in existing.rows}
    after = {change.row.memory.id: change.row for change in changes}
    lowered = sum(map(_is_lower, after.values())) - sum(
        _is_lower(row) for memory_id, row in before.items() if memory_id in after
    )
    if lowered:
        yield "note_lowered", {"ns_id": ns_id, "lowered": lowered}
    if archived is not None:
        moved = [row for row in after.values() if row.archive is not None]
        yield "drop_versions", {"ns_id": ns_id, "ids": id_array(row.memory.id for row in moved)}
        yield (
            "note_archive_file",
            {
                "name": archived.name,
                "ns_id": archived.ns_id,
                "sha256": archived.sha256,
                "bytes": archived.size,
                "memories": len(moved),
                # Of rows that stayed where they were, lines went into it that nothing names.
                "stale": len(moved) < len(archived.places),
            },
        )


def _is_lower(row: StoredRow) -> bool:
    return row.state is State.LIVE and row.memory.tier is not Tier.HOT


def _ids_of(rows: Iterable[StoredRow | None]) -> str | None:
    ids = [row.memory.id for row in rows if row is not None]
    return id_array(ids) if ids else None
