"""MemoryTool, the front door of the hands: store, search, read, change, delete."""

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, tzinfo
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from memory_tool.assembly import Shared, Stores, reader_of
from memory_tool.breaker import Breaker, Condition
from memory_tool.errors import InputError, NotFound
from memory_tool.filters import all_of, parse_filter, split_scope
from memory_tool.health import HealthReport, look_at
from memory_tool.joining import Joining
from memory_tool.log import logger
from memory_tool.metrics import Metrics
from memory_tool.model import (
    EmbeddingSpace,
    Json,
    Memory,
    MemoryId,
    MemoryType,
    NewMemory,
    Patch,
    Status,
    StoredRow,
    WriteResult,
)
from memory_tool.port_values import PageRequest
from memory_tool.ports import RecordReader
from memory_tool.query import HYBRID, Answer, Arm, Filter, Found, Hit, Query
from memory_tool.scope import Namespace, Scope
from memory_tool.scope_words import ScopeWords, read_scope, write_namespace
from memory_tool.settings import Settings
from memory_tool.settling import Rank
from memory_tool.use_counts import UseCounts
from memory_tool.validation import check_query, checked_id, memory_type_of
from memory_tool.write_changes import Arrival, Decide
from memory_tool.write_path import raise_if_failed
from memory_tool.write_plan import decide_duplicates
from memory_tool.write_queue import WriteQueue

_SCOPE_WORDS: Final = ("user_id", "agent_id", "project_id", "run_id", "namespace")
_DELETE_PAGE: Final = 500
_THREADS: Final = 4
_ARM_THREADS: Final = 8
"""Their own, so that an index that hangs keeps no write from being embedded."""


class MemoryTool:
    """Durable memories over three engines as if they were one."""

    def __init__(
        self, stores: Stores, settings: Settings, *, decide: Decide = decide_duplicates
    ) -> None:
        """Join the stores; ``decide`` is the rule for duplicates and conflicts on write."""
        self.settings = settings
        self.metrics = Metrics()
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="threefold")
        self._arms = ThreadPoolExecutor(_ARM_THREADS, thread_name_prefix="threefold-arm")
        model = Breaker(on_change=partial(_note_condition, "embedder"))
        arms = {arm: Breaker(on_change=partial(_note_condition, f"{arm} index")) for arm in Arm}
        self._breakers = {**{f"{arm} index": arms[arm] for arm in arms}, "embedder": model}
        shared = Shared(
            settings=settings,
            executor=self._executor,
            arms=self._arms,
            metrics=self.metrics,
            breakers=arms,
        )
        self._joining = Joining(stores, shared, model=model, decide=decide)
        if stores.background is not None:
            stores.background.whenever(self._joining.prepare)
        self._by_id = reader_of(stores, shared)
        self._queue = WriteQueue(
            self._stored, items=settings.group_items, seconds=settings.group_seconds
        )
        self._use = UseCounts(stores.ageing.use if stores.ageing else None)
        self._queue_failure: Exception | None = None
        self._closed = False

    @property
    def stores(self) -> Stores:
        """What it works with, the embedder and the vector index of the space in use."""
        return self._joining.now.stores

    @property
    def where(self) -> Mapping[str, str]:
        """What is in use and where the data lies, for people."""
        return self.stores.where

    @property
    def space(self) -> EmbeddingSpace:
        """The store's space, or that of the embedder in use where none is recorded yet.

        Raises:
            Unavailable: None is recorded, and the embedder that has to be asked is down.
        """
        return self._joining.now.embedder.space

    def side(self, name: str) -> Json:
        """What the side structure of that name keeps for the space in use; ``None`` for nothing."""
        return self._joining.now.side(name)

    def store_memory(
        self,
        memory_type: MemoryType | str | None,
        content: str,
        metadata: Mapping[str, Json] | None = None,
    ) -> WriteResult:
        """Store one text. The scope words ``user_id``, ``agent_id``, … stand in ``metadata``.

        Raises:
            InputError: The text, its type or its scope can't be.
            Unavailable: The record store can't be reached.
        """
        words, rest = _words_of(metadata or {})
        new = NewMemory(
            content=content,
            type=None if memory_type is None else memory_type_of(memory_type),
            metadata=rest,
            run_id=words.run_id,
        )
        namespace = write_namespace(words, requires=self.settings.scope_requires)
        result = self.store(namespace, [new])[0]
        raise_if_failed(result)
        return result

    def retrieve_memories(
        self, query: str, filters: object = None, *, limit: int = 5
    ) -> tuple[Found, ...]:
        """The ``limit`` most relevant memories; the scope words stand in ``filters``.

        Raises:
            InputError: The question, a filter or the scope can't be.
            Unavailable: The record store can't be reached.
        """
        text = check_query(query)
        scope, condition = self.scope_and_filter(ScopeWords(), filters)
        asked = Query(
            text=text,
            scope=scope,
            strategy=HYBRID,
            filter=condition,
            limit=limit,
            depth=max(100, 2 * limit),
        )
        return self.search(asked, lambda hits, _now: sorted(hits, key=_by_relevance)[:limit]).found

    def scope_and_filter(
        self, words: ScopeWords, filters: object, *, tz: tzinfo = UTC
    ) -> tuple[Scope, Filter]:
        """The scope and the filter of a read, from its keywords and its filter expression."""
        ids, rest = split_scope(filters)
        scope = read_scope(words, ids, requires=self.settings.scope_requires)
        condition = parse_filter(rest, tz=tz)
        if words.run_id is not None:
            condition = all_of(condition, parse_filter({"run_id": words.run_id}, tz=tz))
        return scope, condition

    def store(
        self,
        namespace: Namespace,
        news: Sequence[NewMemory],
        *,
        idempotency_key: str | None = None,
        request: object = None,
    ) -> tuple[WriteResult, ...]:
        """See :meth:`memory_tool.write_path.WritePath.store`."""
        self._check_open()
        return self._stored(namespace, news, idempotency_key=idempotency_key, request=request)

    def _stored(
        self,
        namespace: Namespace,
        news: Sequence[NewMemory],
        *,
        idempotency_key: str | None = None,
        request: object = None,
    ) -> tuple[WriteResult, ...]:
        # Groups that were stored before the space changed answer to the key of the call.
        key = uuid.uuid4().hex if idempotency_key is None else idempotency_key
        asked = request if idempotency_key is not None else key
        return self._joining.run(
            lambda now: now.write.store(namespace, news, idempotency_key=key, request=asked)
        )

    def adopt(self, namespace: Namespace, arrivals: Sequence[Arrival]) -> tuple[WriteResult, ...]:
        """See :meth:`memory_tool.write_path.WritePath.adopt`."""
        self._check_open()
        return self._joining.run(lambda now: now.write.adopt(namespace, arrivals))

    def store_later(self, namespace: Namespace, new: NewMemory) -> "Future[WriteResult]":
        """Queue one memory for a grouped commit; durable once the future has a result.

        Raises:
            InputError: It can't be stored.
        """
        self._check_open()
        self._joining.run(lambda now: now.write.check(new))
        future = self._queue.put(namespace, new)
        future.add_done_callback(self._note_failure)
        return future

    def _note_failure(self, future: "Future[WriteResult]") -> None:
        try:
            raise_if_failed(future.result())
        except Exception as error:  # noqa: BLE001 - whatever it is, flush() has to tell it
            logger().warning("job_failed", job="asynchronous add", reason=str(error))
            self._queue_failure = self._queue_failure or error

    def flush(self) -> None:
        """Wait until every queued memory is stored or has failed.

        Raises:
            ThreefoldError: What went wrong first with a memory queued since the last flush.
        """
        self._queue.flush()
        failure, self._queue_failure = self._queue_failure, None
        if failure is not None:
            raise failure

    def search(self, query: Query, rank: Rank) -> Answer:
        """See :meth:`memory_tool.read_path.ReadPath.search`."""
        self._check_open()
        answer = self._joining.run(lambda now: now.read.search(query, rank))
        self._use.note((found.hit.outline.ns_id, found.memory.id) for found in answer.found)
        return answer

    def fetch(self, scope: Scope, memory_id: MemoryId) -> StoredRow:
        """One memory; that is counted as a use of it.

        Raises:
            NotFound: There is none with this id in the scope.
        """
        row = self._row(scope, memory_id)
        self._use.note([(row.ns_id, row.memory.id)])
        return row

    def _row(self, scope: Scope, memory_id: MemoryId) -> StoredRow:
        known = checked_id(memory_id)
        row = self._reader.fetch(scope, [known]).get(known)
        if row is None:
            raise NotFound.of(memory_id)
        return row

    def page(self, scope: Scope, request: PageRequest) -> tuple[StoredRow, ...]:
        """A page of a listing, newest first."""
        return self._reader.page(scope, request)

    def history(self, scope: Scope, memory_id: MemoryId) -> tuple[Memory, ...]:
        """The kept versions of a memory and the current one, oldest first.

        Raises:
            NotFound: There is none with this id in the scope.
        """
        versions = self._reader.history(scope, checked_id(memory_id))
        if not versions:
            raise NotFound.of(memory_id)
        return versions

    def revise(
        self,
        scope: Scope,
        memory_id: MemoryId,
        *,
        patch: Patch,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> WriteResult:
        """Change one memory; see :meth:`memory_tool.write_path.WritePath.revise`."""
        found = self._row(scope, memory_id).memory
        return self._joining.run(
            lambda now: now.write.revise(
                found.namespace,
                found.id,
                patch=patch,
                expected_version=expected_version,
                idempotency_key=idempotency_key,
            )
        )

    def remove(self, scope: Scope, memory_id: MemoryId) -> WriteResult:
        """Delete one memory; a repetition says ``already_deleted``.

        Raises:
            NotFound: There never was one with this id in the scope.
        """
        known = checked_id(memory_id)
        row = self._reader.fetch(scope, [known]).get(known)
        if row is None:
            if known in self._reader.deleted(scope, [known]):
                return WriteResult(status=Status.ALREADY_DELETED, id=known)
            raise NotFound.of(memory_id)
        return self._joining.now.write.remove(row.memory.namespace, [known])[0]

    def remove_all(self, scope: Scope, condition: Filter) -> int:
        """Delete every memory of the scope that meets the condition; how many there were."""
        deleted = 0
        request = PageRequest(condition=condition, limit=_DELETE_PAGE)
        while rows := self._reader.page(scope, request):
            by_namespace: dict[Namespace, list[MemoryId]] = {}
            for row in rows:
                by_namespace.setdefault(row.memory.namespace, []).append(row.memory.id)
            for namespace, ids in by_namespace.items():
                results = self._joining.now.write.remove(namespace, ids)
                deleted += sum(result.status is Status.DELETED for result in results)
        return deleted

    def figures(self) -> Mapping[str, float]:
        """Counts and latencies, in seconds, over a bounded window. No content."""
        metrics = self.metrics
        embedder = self._joining.now.embedder
        asked = embedder.hits + embedder.misses
        return {
            "avg_store_latency": metrics.mean("store"),
            "p50_retrieve_latency": metrics.percentile("retrieve", 0.50),
            "p95_retrieve_latency": metrics.percentile("retrieve", 0.95),
            "cache_hit_rate": embedder.hits / asked if asked else 0.0,
            **self._reader.counts(),
        }

    def complete(self, rows: Sequence[StoredRow]) -> int:
        """See :meth:`memory_tool.write_path.WritePath.complete`."""
        return self._joining.run(lambda now: now.write.complete(rows))

    def apply_now(self) -> bool:
        """Bring the indexes forward now; ``False`` when another process does it."""
        background = self.stores.background
        return background is not None and background.apply_now()

    def health(self) -> HealthReport:
        """How each store is doing."""
        self._check_open()
        return look_at(self.stores, self._breakers)

    @property
    def _reader(self) -> RecordReader:
        self._check_open()
        return self._by_id

    def _check_open(self) -> None:
        if self._closed:
            message = "the memory is closed: open it again"
            raise InputError(message)

    def close(self) -> None:
        """Store what is queued, end the threads, close the stores. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._queue.close()
        self._use.close()
        stores = self.stores
        if stores.background is not None:
            stores.background.close()
        self._executor.shutdown()
        self._arms.shutdown(cancel_futures=True)
        self._joining.close()
        stores.keyword_index.close()
        for close in stores.closing:
            close()

    def __enter__(self) -> Self:
        """The tool itself, closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def _note_condition(part: str, condition: Condition) -> None:
    logger().warning("condition", part=part, condition=str(condition))


def _by_relevance(hit: Hit) -> tuple[float, MemoryId]:
    return -hit.relevance, hit.outline.id


def _words_of(metadata: Mapping[str, Json]) -> tuple[ScopeWords, Mapping[str, Json]]:
    given: dict[str, Any] = {word: metadata[word] for word in _SCOPE_WORDS if word in metadata}
    rest = {name: value for name, value in metadata.items() if name not in _SCOPE_WORDS}
    return ScopeWords(**given), rest
