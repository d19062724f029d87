"""One memory in: prepare, plan under the namespace's lock, one commit, acknowledge."""

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory_tool.errors import InputError, error_named
from memory_tool.metrics import Metrics
from memory_tool.model import (
    Memory,
    MemoryId,
    NewMemory,
    OnDuplicate,
    Patch,
    Status,
    StoredRow,
    Unset,
    WriteResult,
)
from memory_tool.port_values import Commit, Existing, WritePlan
from memory_tool.ports import RecordStore
from memory_tool.prepare import PrepareLimits, Preparer, request_hash
from memory_tool.retry import RetryPolicy, retrying
from memory_tool.scope import Namespace
from memory_tool.space_values import FIRST_SPACE, SpaceChanged
from memory_tool.text.extra import extra_tokens
from memory_tool.text.normalise import content_hash
from memory_tool.validation import check_patch, check_text
from memory_tool.write_changes import Arrival, Change, Complete, Decide, Put, Remove, Revise
from memory_tool.write_plan import decide_duplicates, lookup_for, plan_changes

GROUP_ITEMS: Final = 50
"""Items of one grouped commit (mission, item 5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRules:
    """How writes are done: sizes, patience, group size, and the brain's rule for duplicates.

    ``space`` is the number of the space that the preparer's vectors are of.
    """

    limits: PrepareLimits
    retry: RetryPolicy
    group_items: int = GROUP_ITEMS
    decide: Decide = decide_duplicates
    space: int = FIRST_SPACE


class WritePath:
    """The way down. Every call has one effect, however often its commit is tried.

    Any call that brings vectors raises ``SpaceChanged``, with nothing written of the group at hand,
    when another embedding space is active than that of its vectors.
    """

    def __init__(
        self,
        store: RecordStore,
        preparer: Preparer,
        *,
        rules: WriteRules,
        metrics: Metrics,
        committed: Callable[[], None],
    ) -> None:
        """Keep the parts; ``committed`` is called after each commit, to wake the appliers."""
        self._store = store
        self._preparer = preparer
        self._rules = rules
        self._metrics = metrics
        self._committed = committed

    def check(self, new: NewMemory) -> None:
        """Refuse what :meth:`store` would refuse.

        Raises:
            InputError: The memory can't be stored.
        """
        self._preparer.check(new)

    def store(
        self,
        namespace: Namespace,
        news: Sequence[NewMemory],
        *,
        idempotency_key: str | None = None,
        request: object = None,
    ) -> tuple[WriteResult, ...]:
        """Store memories in grouped commits; one result for each, in order.

        A memory that can't be stored gives a failed result and leaves its neighbours alone.

        Args:
            namespace: Where they go.
            news: The memories.
            idempotency_key: Makes a repetition of the call return the first answer.
            request: What the caller asked for, where ``news`` say more than that (when a ttl
                ends, a place in a conversation): by it a repetition is told from another call.

        Raises:
            Unavailable: A commit failed for good. Earlier groups stay; under the same
                ``idempotency_key`` the call can be repeated and stores the rest.
        """
        _check_key(idempotency_key)
        asked = b"-"
        if idempotency_key is not None:
            asked = request_hash(tuple(news) if request is None else request)
        with self._metrics.timed("store"):
            results: list[WriteResult] = []
            for number, group in enumerate(self._groups(news)):
                key = idempotency_key and (
                    f"{idempotency_key}\0{number}" if number else idempotency_key
                )
                results.extend(self._store_group(namespace, group, key=key, request=asked))
            return tuple(results)

    def adopt(self, namespace: Namespace, arrivals: Sequence[Arrival]) -> tuple[WriteResult, ...]:
        """Take in memories that were kept elsewhere, in one commit; one result for each, in order.

        To do it again is harmless: what is there in the same version is left as it is.

        Raises:
            Unavailable: The commit failed for good, and none of them is stored.
        """
        prepared = self._preparer.adopt(arrivals)
        puts = [put for put in prepared if isinstance(put, Put)]
        stored = iter(
            self._commit(namespace, puts, idempotency_key=None, request=b"-") if puts else ()
        )
        return tuple(
            refused(put) if isinstance(put, InputError) else next(stored) for put in prepared
        )

    def revise(
        self,
        namespace: Namespace,
        memory_id: MemoryId,
        *,
        patch: Patch,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> WriteResult:
        """Change one memory.

        Raises:
            NotFound: There is no such memory in the namespace.
            VersionConflict: Its version is not the expected one.
            DuplicateMemory: Another memory already says the new text.
        """
        _check_key(idempotency_key)
        limits = self._rules.limits
        check_patch(patch, content_bytes=limits.content_bytes, metadata_bytes=limits.metadata_bytes)
        text = None if isinstance(patch.content, Unset) else patch.content
        change = Revise(
            memory_id=memory_id,
            patch=patch,
            expected_version=expected_version,
            content_hash=None if text is None else content_hash(text),
            chunks=None if text is None else self._preparer.chunks(text),
        )
        request = request_hash(memory_id, patch, expected_version)
        result = self._commit(
            namespace, [change], idempotency_key=idempotency_key, request=request
        )[0]
        raise_if_failed(result)
        return result

    def remove(
        self,
        namespace: Namespace,
        ids: Sequence[MemoryId],
        *,
        idempotency_key: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Delete memories in one commit; unknown ids give failed results."""
        changes = [Remove(memory_id=memory_id) for memory_id in dict.fromkeys(ids)]
        request = request_hash(tuple(ids))
        return self._commit(namespace, changes, idempotency_key=idempotency_key, request=request)

    def complete(self, rows: Sequence[StoredRow]) -> int:
        """Give memories the vectors that they lack; how many got them."""
        done = 0
        for namespace, group in itertools.groupby(rows, key=lambda row: row.memory.namespace):
            changes = [
                Complete(
                    memory_id=row.memory.id,
                    content_hash=row.content_hash,
                    chunks=self._preparer.chunks(row.memory.content),
                )
                for row in group
            ]
            whole = [change for change in changes if _is_whole(change)]
            if whole:
                self._commit(namespace, whole, idempotency_key=None, request=b"-")
            done += len(whole)
        return done

    def _groups(self, news: Sequence[NewMemory]) -> Iterator[Sequence[NewMemory]]:
        """Cut into groups in which no row is changed twice: a plan changes each row once."""
        group: list[NewMemory] = []
        rows: set[object] = set()
        for new in news:
            row = _row_of(new)
            may_change = new.key is not None or new.on_duplicate is OnDuplicate.UPDATE
            if len(group) >= self._rules.group_items or (may_change and row in rows):
                yield group
                group, rows = [], set()
            group.append(new)
            rows.add(row)
        if group:
            yield group

    def _store_group(
        self, namespace: Namespace, news: Sequence[NewMemory], *, key: str | None, request: bytes
    ) -> Sequence[WriteResult]:
        prepared = self._preparer.prepare(news)
        puts = [put for put in prepared if isinstance(put, Put)]
        stored = iter(
            self._commit(namespace, puts, idempotency_key=key, request=request) if puts else ()
        )
        return [refused(put) if isinstance(put, InputError) else next(stored) for put in prepared]

    def _commit(
        self,
        namespace: Namespace,
        changes: Sequence[Change],
        *,
        idempotency_key: str | None,
        request: bytes,
    ) -> tuple[WriteResult, ...]:
        made_in = self._preparer.made_in if _has_vectors(changes) else None

        def plan(existing: Existing) -> WritePlan:
            if made_in is not None and existing.space not in (None, self._rules.space):
                raise SpaceChanged
            return plan_changes(
                changes,
                existing,
                namespace=namespace,
                decide=self._rules.decide,
                extra=_extra_of,
            )

        commit = Commit(
            namespace=namespace,
            lookup=lookup_for(changes),
            plan=plan,
            # Made once, outside the tries: that is what makes them one call.
            idempotency_key=idempotency_key or uuid.uuid4().hex,
            request_hash=request,
            space=made_in,
        )
        results = retrying(self._rules.retry, "commit")(self._store.commit, commit)
        self._committed()
        return results


def _has_vectors(changes: Sequence[Change]) -> bool:
    return any(
        chunk.embedding is not None
        for change in changes
        if isinstance(change, Put | Revise | Complete)
        for chunk in change.chunks or ()
    )


def _extra_of(memory: Memory) -> str:
    return extra_tokens(memory.tags, memory.source, metadata=memory.metadata)


def _row_of(new: NewMemory) -> object:
    """What two memories of one call share when they may mean the same row."""
    if new.key is not None:
        return "key", new.key
    text: object = new.content
    return "text", content_hash(text) if isinstance(text, str) else None


def _check_key(idempotency_key: object) -> None:
    if idempotency_key is not None:
        check_text(idempotency_key, "idempotency_key")


def refused(error: InputError) -> WriteResult:
    """The result of a memory that can't be stored."""
    return WriteResult(status=Status.FAILED, error=f"{type(error).__name__}: {error}")


def _is_whole(change: Complete) -> bool:
    return all(chunk.embedding is not None for chunk in change.chunks)


def raise_if_failed(result: WriteResult) -> None:
    """Raise the error that a failed result names; one call about one memory has no neighbours."""
    if result.status is not Status.FAILED or result.error is None:
        return
    name, _, message = result.error.partition(": ")
    raise error_named(name, message)
