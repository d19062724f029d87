"""Commits in memory, and the door to consistent reads."""

import dataclasses
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from memory_tool.adapters.in_memory_snapshot import InMemorySnapshot
from memory_tool.adapters.in_memory_state import InMemoryStore, NamespaceState, Receipt
from memory_tool.errors import Corrupt, IdempotencyConflict, ScopeRequired, TooManyNamespaces
from memory_tool.model import Chunk, EmbeddingSpace, Memory, MemoryId, State, StoredRow, WriteResult
from memory_tool.port_values import (
    ChunkWords,
    Commit,
    Existing,
    Lookup,
    NamespaceClock,
    Opening,
    ReadView,
    RowChange,
    WritePlan,
)
from memory_tool.ports import RecordStore, SpaceRegistry
from memory_tool.scope import Namespace, Scope
from memory_tool.space_values import FIRST_SPACE

NAMESPACES_MAX: Final = 1000
VERSIONS_KEPT: Final = 10


class InMemoryRecordStore(RecordStore, SpaceRegistry):
    """See :class:`memory_tool.ports.RecordStore`: the state is replaced under one lock."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def commit(self, commit: Commit) -> tuple[WriteResult, ...]:
        """See :meth:`memory_tool.ports.RecordStore.commit`."""
        with self._store.lock:
            before = self._namespace(commit.namespace)
            receipt = before.receipts.get(commit.idempotency_key)
            if receipt is not None:
                if receipt.request_hash != commit.request_hash:
                    key = commit.idempotency_key
                    message = f"idempotency key {key!r} was used for another request"
                    raise IdempotencyConflict(message)
                return receipt.results
            plan = commit.plan(
                Existing(
                    ns_id=before.ns_id,
                    nseq=before.nseq,
                    now=self._store.now(),
                    rows=tuple(_candidates(before, commit.lookup)),
                    space=self._space_number(),
                )
            )
            space = self._store.state.space
            fits = space is None or commit.space in (None, space.name)
            self._put(_written(before, commit, plan=plan if fits else _without_vectors(plan)))
            return plan.results

    def _namespace(self, namespace: Namespace) -> NamespaceState:
        state = self._store.state
        known = state.numbers.get(namespace)
        if known is not None:
            return state.namespaces[known]
        return NamespaceState(ns_id=self._store.new_number(), namespace=namespace)

    def _put(self, after: NamespaceState) -> None:
        state = self._store.state
        self._store.state = dataclasses.replace(
            state,
            namespaces={**state.namespaces, after.ns_id: after},
            numbers={**state.numbers, after.namespace: after.ns_id},
        )

    def view(self, scope: Scope, targets: Sequence[str]) -> ReadView:
        """See :meth:`memory_tool.ports.RecordStore.view`."""
        with self._store.lock:
            state, incarnation = self._store.state, self._store.incarnation
        covered = [one for one in state.namespaces.values() if scope.covers(one.namespace)]
        if len(covered) > NAMESPACES_MAX:
            raise TooManyNamespaces
        return ReadView(
            namespaces=tuple(
                NamespaceClock(
                    ns_id=one.ns_id, namespace=one.namespace, nseq=one.nseq, stamp=one.stamp
                )
                for one in covered
            ),
            pointers={name: state.pointers[name] for name in targets if name in state.pointers},
            incarnation=incarnation,
            now=self._store.now(),
            space=self._space_number(),
        )

    @contextmanager
    def snapshot(self, opening: Opening) -> Iterator[InMemorySnapshot]:
        """See :meth:`memory_tool.ports.RecordStore.snapshot`."""
        if not opening.namespaces:
            raise ScopeRequired
        yield InMemorySnapshot(self._store.state, self._store.now(), opening)

    def close(self) -> None:
        """Nothing to give back: what is stored stays in the shared state."""

    def active_space(self) -> EmbeddingSpace | None:
        """See :meth:`memory_tool.ports.SpaceRegistry.active_space`."""
        return self._store.state.space

    def record_space(self, space: EmbeddingSpace) -> EmbeddingSpace:
        """See :meth:`memory_tool.ports.SpaceRegistry.record_space`."""
        with self._store.lock:
            recorded = self._store.state.space or space
            self._store.state = dataclasses.replace(self._store.state, space=recorded)
            return recorded

    def _space_number(self) -> int | None:
        # This store has no second one.
        return FIRST_SPACE if self._store.state.space else None


def _candidates(before: NamespaceState, lookup: Lookup) -> Iterator[StoredRow]:
    hashes, keys, ids = set(lookup.dedup_hashes), set(lookup.keys), set(lookup.ids)
    for row in before.rows.values():
        if row.dedup_hash in hashes or row.memory.key in keys or row.memory.id in ids:
            yield row


def _written(before: NamespaceState, commit: Commit, *, plan: WritePlan) -> NamespaceState:
    """The namespace after the plan.

    Raises:
        Corrupt: The plan breaks what a database would enforce.
    """
    rows, chunks = dict(before.rows), dict(before.chunks)
    versions = dict(before.versions)
    for number, change in enumerate(plan.changes, start=before.nseq + 1):
        memory_id = change.row.memory.id
        if change.row.nseq != number:
            message = f"the plan gives {memory_id} the number {change.row.nseq}, not {number}"
            raise Corrupt(message)
        rows[memory_id] = _kept(change.row)
        if change.chunks is not None:
            kept = sorted(change.chunks, key=lambda chunk: chunk.ordinal)
            chunks[memory_id] = tuple(map(_kept_chunk, kept))
        if change.tokens:
            chunks[memory_id] = _with_tokens(chunks[memory_id], change.tokens)
        versions[memory_id] = _versions(versions.get(memory_id, ()), change)
    _check_unique(rows)
    receipt = Receipt(request_hash=commit.request_hash, results=plan.results)
    return dataclasses.replace(
        before,
        nseq=before.nseq + len(plan.changes),
        stamp=secrets.randbits(63) if plan.changes else before.stamp,
        rows=rows,
        chunks=chunks,
        versions=versions,
        receipts={**before.receipts, commit.idempotency_key: receipt},
    )


def _without_vectors(plan: WritePlan) -> WritePlan:
    """The plan without vectors of another space than the store's."""
    return dataclasses.replace(
        plan,
        changes=tuple(
            dataclasses.replace(
                change,
                chunks=change.chunks
                and tuple(dataclasses.replace(chunk, embedding=None) for chunk in change.chunks),
            )
            for change in plan.changes
        ),
    )


def _with_tokens(chunks: tuple[Chunk, ...], tokens: Sequence[ChunkWords]) -> tuple[Chunk, ...]:
    new = {one.ordinal: one for one in tokens}
    return tuple(
        dataclasses.replace(chunk, words=one.words, bigrams=one.bigrams)
        if (one := new.get(chunk.ordinal))
        else chunk
        for chunk in chunks
    )


def _versions(kept: tuple[Memory, ...], change: RowChange) -> tuple[Memory, ...]:
    if change.row.state is State.DELETED:
        return ()
    if change.attached is not None:
        return change.attached.versions[-VERSIONS_KEPT:]
    if change.previous is None:
        return kept
    return (*kept, _kept(change.previous).memory)[-VERSIONS_KEPT:]


def _check_unique(rows: Mapping[MemoryId, StoredRow]) -> None:
    texts = [row.dedup_hash for row in rows.values() if row.dedup_hash is not None]
    keys = [row.memory.key for row in rows.values() if row.memory.key is not None]
    if len(set(texts)) < len(texts) or len(set(keys)) < len(keys):
        message = "the plan stores a text or a key twice"
        raise Corrupt(message)


def _kept(row: StoredRow) -> StoredRow:
    """The row as a database would give it back: nothing in it is shared with the caller."""
    memory = dataclasses.replace(
        row.memory,
        source=json.loads(json.dumps(row.memory.source)),
        metadata=json.loads(json.dumps(row.memory.metadata)),
        tags=tuple(row.memory.tags),
    )
    return dataclasses.replace(row, memory=memory)


def _kept_chunk(chunk: Chunk) -> Chunk:
    """The chunk with its embedding in the precision of half floats."""
    if chunk.embedding is None:
        return chunk
    halved = chunk.embedding.astype(np.float16).astype(np.float32)
    return dataclasses.replace(chunk, embedding=halved)
