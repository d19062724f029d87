"""MemoryManage, the front door: one long-term memory for agents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from types import TracebackType
from typing import Any, Final, Self, Unpack

import memory_manage.options as options_of
from memory_manage.bootstrap import Parts, open_parts
from memory_manage.conversation import Skipped, messages_to_memories
from memory_manage.cursors import ListCursor, fingerprint, read_list_cursor, write_list_cursor
from memory_manage.intake import (
    completed,
    is_record,
    new_memory,
    patch_from,
    record_memory,
    time_of,
)
from memory_manage.questions import checked_limit, option_filter, zone_of
from memory_manage.results import (
    Deleted,
    Found,
    Health,
    Listing,
    MemoryItem,
    Stats,
    WriteItem,
    Written,
    item_of,
    write_item,
)
from memory_manage.search import Search
from memory_tool.assembly import Stores
from memory_tool.errors import InputError, NotFound
from memory_tool.filters import all_of, parse_filter
from memory_tool.model import NewMemory, Status, Turn, Unset, WriteResult
from memory_tool.port_values import PageRequest
from memory_tool.scope import Namespace, Scope
from memory_tool.scope_words import ScopeWords, write_namespace
from memory_tool.validation import check_text
from memory_tool.write_path import raise_if_failed, refused

Message = Mapping[str, Any]
LIST_LIMIT: Final = 100
LIST_LIMIT_MAX: Final = 10_000
_SCOPE_WORDS: Final = tuple(options_of.ReadScopeOptions.__annotations__) + tuple(
    options_of.ScopeOptions.__annotations__
)


class MemoryManage:
    """Add, search, read, change and delete memories. Thread safe.

    Every method that touches memories takes the scope words ``user_id``, ``agent_id``,
    ``project_id``, ``run_id`` and ``namespace``; reads also ``namespaces`` and ``exact``. The other
    options are listed in :mod:`memory_manage.options`.
    """

    def __init__(self, parts: Parts, words: ScopeWords | None = None) -> None:
        """Keep the parts and the scope that is bound; use :meth:`open`."""
        self._parts = parts
        self._tool = parts.tool
        self._bound = words or ScopeWords()

    @classmethod
    def open(
        cls,
        *,
        stores: Stores | None = None,
        on_progress: Callable[[str], None] | None = None,
        **arguments: Any,  # noqa: ANN401 - settings by name, checked where they are read
    ) -> Self:
        """Open a memory: embedded stores in a local folder, or the servers that are named.

        Args:
            stores: Ready-made stores, instead of all others.
            on_progress: Hears of steps that take seconds; by default a line on standard error.
            arguments: Any of :class:`~memory_tool.settings.Settings`; ``embedder`` may also be an
                object with the port, as may ``record_store``, ``vector_index``, ``keyword_index``.

        Raises:
            MissingExtra: An embedded part is not installed.
            SpaceMismatch: The embedder is of another space than the store.
            SettingsError: A setting is unknown or wrong.
            Unavailable: A server can't be reached.
        """
        return cls(open_parts(arguments, stores=stores, on_progress=on_progress))

    def scoped(self, **words: Unpack[options_of.ReadScopeOptions]) -> Self:
        """The same memory with a scope bound, so that no call has to name it."""
        options_of.check_names(words, options_of.ReadScopeOptions)
        return type(self)(self._parts, self._bound.joined(ScopeWords(**words)))

    def add(
        self,
        content: str | Message | Sequence[Message],
        **options: Unpack[options_of.WriteOptions],
    ) -> Written:
        """Store a text, a record, or a conversation (a list of messages).

        Raises:
            InputError: The text, an option or the scope can't be.
            DuplicateMemory: The text is there already and ``on_duplicate="fail"``.
            Unavailable: The record store can't be reached; says whether anything was written.
        """
        options_of.check_names(options, options_of.WriteOptions)
        namespace, given = self._for_writing(options)
        call = _Call(namespace=namespace, options=given, request=_request(content, given))
        if isinstance(content, str):
            return self._stored_alone(call, new_memory(content, given))
        if isinstance(content, Mapping) and is_record(content):
            return self._stored_alone(call, record_memory(content, given))
        messages = _messages(content)
        position = self._next_position(namespace, given)
        return self._stored(call, messages_to_memories(messages, given, first_position=position))

    def add_many(
        self,
        memories: Sequence[NewMemory | str | Mapping[str, Any]],
        **options: Unpack[options_of.ManyOptions],
    ) -> Written:
        """Store many memories in grouped commits; a bad one fails alone.

        What a :class:`~memory_tool.model.NewMemory` leaves open, the options of the call decide.

        Raises:
            InputError: An option or the scope can't be, or this is no list.
            Unavailable: The record store can't be reached; says whether anything was written.
        """
        options_of.check_names(options, options_of.ManyOptions)
        if isinstance(memories, str | Mapping) or not isinstance(memories, Iterable):
            message = f"add_many takes a list of memories, not {type(memories).__name__}"
            raise InputError(message)
        listed = list(memories)
        namespace, given = self._for_writing(options)
        prepared: list[NewMemory | WriteResult] = []
        for memory in listed:
            try:
                prepared.append(_as_new(memory, given))
            except InputError as error:
                prepared.append(refused(error))
        call = _Call(namespace=namespace, options=given, request=_request(listed, given))
        return self._stored(call, prepared)

    def search(self, query: str, **options: Unpack[options_of.SearchOptions]) -> Found:
        """The memories that answer a question, best first.

        Every write acknowledged before this call is seen, of whichever process.

        Raises:
            InputError: The question, an option or the scope can't be.
            Degraded: A part was missing and ``on_degraded="raise"``.
            Unavailable: The record store can't be reached.
        """
        options_of.check_names(options, options_of.SearchOptions)
        return Search(self._tool, query, self._words(options), options).run()

    def get(self, memory_id: str, **options: Unpack[options_of.GetOptions]) -> MemoryItem:
        """One memory; with ``version`` or ``as_of`` as it was.

        Raises:
            NotFound: There is none with this id, or no such version, in the scope.
        """
        options_of.check_names(options, options_of.GetOptions)
        scope = self._scope(options)
        version, as_of = options.get("version"), time_of(options.get("as_of"), "as_of")
        if version is None and as_of is None:
            return item_of(self._tool.fetch(scope, memory_id).memory)
        for memory in reversed(self._tool.history(scope, memory_id)):
            if memory.version == version or (as_of is not None and memory.updated_at <= as_of):
                return item_of(memory)
        message = f"memory {memory_id} has no such version"
        raise NotFound(message)

    def get_all(self, **options: Unpack[options_of.ListOptions]) -> Listing:
        """A page of all memories of the scope, newest first; never repeats or skips one."""
        options_of.check_names(options, options_of.ListOptions)
        tz = zone_of(options.get("tz"), self._tool.settings.tz)
        scope, condition = self._tool.scope_and_filter(
            self._words(options), options.get("filters"), tz=tz
        )
        condition = all_of(condition, option_filter(options, tz))
        question = fingerprint("list", scope, condition)
        limit = checked_limit(options.get("limit", LIST_LIMIT), largest=LIST_LIMIT_MAX)
        text = options.get("cursor")
        cursor = read_list_cursor(question, text) if text else None
        after = (cursor.event_time, cursor.memory_id) if cursor else None
        request = PageRequest(condition=condition, limit=limit + 1, after=after)
        rows = self._tool.page(scope, request)
        shown = [row.memory for row in rows[:limit]]
        further = None
        if len(rows) > limit:
            last = ListCursor(event_time=shown[-1].event_time, memory_id=shown[-1].id)
            further = write_list_cursor(question, last)
        return Listing(results=tuple(map(item_of, shown)), cursor=further)

    def update(self, memory_id: str, **options: Unpack[options_of.UpdateOptions]) -> WriteItem:
        """Change what is named and nothing else; metadata is merged, ``None`` removes a name.

        Raises:
            NotFound: There is no such memory in the scope.
            VersionConflict: Its version is not ``expected_version``.
            InputError: A value can't be.
        """
        options_of.check_names(options, options_of.UpdateOptions)
        patch = patch_from(options)
        if all(isinstance(getattr(patch, name), Unset) for name in patch.__dataclass_fields__):
            message = "an update names what changes: content, metadata, tags, importance, …"
            raise InputError(message)
        result = self._tool.revise(
            self._scope(options),
            memory_id,
            patch=patch,
            expected_version=options.get("expected_version"),
            idempotency_key=options.get("idempotency_key"),
        )
        return write_item(result)

    def delete(self, memory_id: str, **options: Unpack[options_of.ReadScopeOptions]) -> WriteItem:
        """Delete one memory, gone from every search at once; a repetition says so.

        Raises:
            NotFound: There never was one with this id in the scope.
        """
        options_of.check_names(options, options_of.ReadScopeOptions)
        return write_item(self._tool.remove(self._scope(options), memory_id))

    def delete_all(self, **options: Unpack[options_of.ConditionOptions]) -> Deleted:
        """Delete every memory of the scope (that meets ``filters``); how many there were."""
        options_of.check_names(options, options_of.ConditionOptions)
        tz = zone_of(options.get("tz"), self._tool.settings.tz)
        scope, condition = self._tool.scope_and_filter(
            self._words(options), options.get("filters"), tz=tz
        )
        condition = all_of(condition, option_filter(options, tz))
        return Deleted(deleted=self._tool.remove_all(scope, condition))

    def history(self, memory_id: str, **options: Unpack[options_of.ReadScopeOptions]) -> Listing:
        """The kept versions of a memory and the current one, oldest first.

        Raises:
            NotFound: There is no such memory in the scope.
        """
        options_of.check_names(options, options_of.ReadScopeOptions)
        versions = self._tool.history(self._scope(options), memory_id)
        return Listing(results=tuple(map(item_of, versions)))

    def flush(self) -> None:
        """Wait until every ``mode="async"`` add is stored or has failed.

        Raises:
            ThreefoldError: What went wrong first with an add since the last flush.
        """
        self._tool.flush()

    def apply_now(self) -> bool:
        """Bring the indexes forward now; ``False`` when another process is doing it."""
        return self._tool.apply_now()

    def stats(self) -> Stats:
        """Latencies in seconds over a bounded window, and counts. No content, no scope needed."""
        figures = self._tool.figures()
        return Stats(
            avg_store_latency=figures["avg_store_latency"],
            p50_retrieve_latency=figures["p50_retrieve_latency"],
            p95_retrieve_latency=figures["p95_retrieve_latency"],
            cache_hit_rate=figures["cache_hit_rate"],
            namespaces=int(figures["namespaces"]),
            memories=int(figures["memories"]),
        )

    def health(self) -> Health:
        """Whether each store answers, and where the data lies. No content, no scope needed."""
        report = self._tool.health()
        return Health(
            ok=all(said == "ok" for said in report.stores.values()),
            stores=report.stores,
            where=self._tool.where,
            conditions=report.conditions,
            lag={
                name: {"rows": lag.rows, "seconds": lag.seconds} for name, lag in report.lag.items()
            },
        )

    def close(self) -> None:
        """Store what is queued and close everything. May be called twice."""
        self._tool.close()

    def __enter__(self) -> Self:
        """The memory itself, closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _words(self, options: Mapping[str, Any]) -> ScopeWords:
        return self._bound.joined(ScopeWords(**{word: options.get(word) for word in _SCOPE_WORDS}))

    def _for_writing(self, options: Mapping[str, Any]) -> tuple[Namespace, Mapping[str, Any]]:
        """Where a write goes, and its options without what said so."""
        words = self._words(options)
        namespace = write_namespace(words, requires=self._tool.settings.scope_requires)
        rest = {name: value for name, value in options.items() if name not in _SCOPE_WORDS}
        return namespace, {**rest, "run_id": words.run_id}

    def _scope(self, options: Mapping[str, Any]) -> Scope:
        return self._tool.scope_and_filter(self._words(options), None)[0]

    def _next_position(self, namespace: Namespace, options: Mapping[str, Any]) -> int:
        """A conversation that is added to goes on where it ended."""
        conversation = options.get("conversation_id") or options.get("run_id")
        if conversation is None:
            return 0
        check_text(conversation, "conversation_id")
        scope, position = Scope.of(namespace, exact=True), 0
        # A page is ordered by time, not by position: go on until nothing lies beyond.
        while turns := self._turns(scope, conversation, position=position):
            position = 1 + max(turn.position for turn in turns)
        return position

    def _turns(self, scope: Scope, conversation: str, *, position: int) -> Sequence[Turn]:
        wanted = {"conversation_id": conversation, "position": {"gte": position}}
        request = PageRequest(condition=parse_filter(wanted, tz=UTC), limit=LIST_LIMIT)
        return [row.memory.turn for row in self._tool.page(scope, request) if row.memory.turn]

    def _stored_alone(self, call: "_Call", new: NewMemory) -> Written:
        (result,) = self._results(call, [new])
        raise_if_failed(result)
        return Written(results=(write_item(result),))

    def _stored(
        self, call: "_Call", prepared: Sequence[NewMemory | Skipped | WriteResult]
    ) -> Written:
        news = [item for item in prepared if isinstance(item, NewMemory)]
        stored = iter(self._results(call, news))
        return Written(results=tuple(_item(item, stored) for item in prepared))

    def _results(self, call: "_Call", news: Sequence[NewMemory]) -> Sequence[WriteResult]:
        key = call.options.get("idempotency_key")
        if call.options.get("mode") != "async":
            return self._tool.store(call.namespace, news, idempotency_key=key, request=call.request)
        if key is not None:
            message = "an asynchronous add takes no idempotency_key: it joins a group of others"
            raise InputError(message)
        return [self._queued(call.namespace, new) for new in news]

    def _queued(self, namespace: Namespace, new: NewMemory) -> WriteResult:
        try:
            self._tool.store_later(namespace, new)
        except InputError as error:
            return refused(error)
        return WriteResult(status=Status.QUEUED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A write as it was asked for: where to, how, and what tells it from another call."""

    namespace: Namespace
    options: Mapping[str, Any]
    request: object


def _request(content: object, options: Mapping[str, Any]) -> object:
    """What was asked for, however often: not what the clock or the store made of it."""
    given = sorted((name, value) for name, value in options.items() if value is not None)
    return content, [pair for pair in given if pair[0] != "idempotency_key"]


def _messages(content: object) -> Sequence[Message]:
    messages = [content] if isinstance(content, Mapping) else content
    if not isinstance(messages, Sequence) or not all(isinstance(m, Mapping) for m in messages):
        message = f"add takes a text, a record or messages, not {type(content).__name__}"
        raise InputError(message)
    return messages


def _item(item: NewMemory | Skipped | WriteResult, stored: Any) -> WriteItem:  # noqa: ANN401
    if isinstance(item, Skipped):
        return WriteItem(id=None, version=None, status=Status.SKIPPED.value, error=item.reason)
    return write_item(item if isinstance(item, WriteResult) else next(stored))


def _as_new(memory: object, options: Mapping[str, Any]) -> NewMemory:
    if isinstance(memory, str):
        return new_memory(memory, options)
    if isinstance(memory, Mapping):
        return record_memory(memory, options)
    if not isinstance(memory, NewMemory):
        message = f"add_many takes texts, records and NewMemory, not {type(memory).__name__}"
        raise InputError(message)
    return completed(memory, options)
