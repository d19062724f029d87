"""What others write, as our own: mem0's exports, LangGraph's items, plain JSON. Pure."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from memory_manage.intake import new_memory, record_memory, time_of
from memory_tool.errors import InputError, NotFound
from memory_tool.model import MemoryId, NewMemory
from memory_tool.scope import Namespace
from memory_tool.scope_words import ScopeWords, write_namespace
from memory_tool.validation import checked_id
from memory_tool.write_changes import Arrival, Kept

Form: TypeAlias = Literal["threefold", "mem0", "langgraph", "json"]
Item: TypeAlias = Mapping[str, Any]
Read: TypeAlias = Callable[[Any, Namespace | None], tuple[Namespace, Arrival]]
"""An item, and where it goes if not where it says, as an arrival and its place."""

_LISTS: Final = ("results", "memories", "items", "points", "data")
"""Names under which a document keeps its list."""

_SCOPE: Final = ("user_id", "agent_id", "project_id", "namespace", "run_id")


def items_of(document: object) -> Iterator[object]:
    """The items of a whole document: an array, or an object that holds one under a usual name."""
    if isinstance(document, Mapping):
        for name in (*_LISTS, "result"):
            inner = document.get(name)
            if isinstance(inner, Sequence) and not isinstance(inner, str):
                document = inner
                break
            if name == "result" and isinstance(inner, Mapping):
                yield from items_of(inner)
                return
    if isinstance(document, Sequence) and not isinstance(document, str):
        yield from document
    else:
        yield document


# ── mem0 ──

_MEM0_OWN: Final = frozenset(
    (
        *("id", "memory", "data", "hash", "metadata", "created_at", "updated_at", "score", "event"),
        *("user_id", "agent_id", "run_id", "app_id", "categories", "expiration_date", "payload"),
        *("text_lemmatized", "attributed_to"),
    )
)
_MEM0_WORDS: Final = (("user_id", "user_id"), ("agent_id", "agent_id"), ("app_id", "project_id"))


def read_mem0(item: object, namespace: Namespace | None) -> tuple[Namespace, Arrival]:
    """An item of mem0's ``get_all`` or export, or a point of its vector store.

    Raises:
        InputError: It has no text, or names no user, agent or app.
    """
    said = _mapping(item)
    payload = said.get("payload")
    if isinstance(payload, Mapping):
        said = {"id": said.get("id"), **payload}
    text = said.get("memory", said.get("data"))
    words = {ours: said[theirs] for theirs, ours in _MEM0_WORDS if said.get(theirs)}
    rest = {name: value for name, value in said.items() if name not in _MEM0_OWN}
    metadata = {**(said.get("metadata") or {}), **rest}
    new = new_memory(
        text,
        {
            "tags": tuple(said.get("categories") or ()),
            "metadata": {name: value for name, value in metadata.items() if value is not None},
            "run_id": said.get("run_id"),
            "expires_at": _day_after(said.get("expiration_date")),
        },
    )
    return _placed(new, said, words=words, namespace=namespace)


def _day_after(said: object) -> datetime | None:
    """mem0 names the last day on which a memory is valid."""
    time = _time(said, "expiration_date")
    if time is None or not isinstance(said, str) or "T" in said:
        return time
    return time + timedelta(days=1)


# ── LangGraph ──


def read_langgraph(item: object, namespace: Namespace | None) -> tuple[Namespace, Arrival]:
    """An item of a LangGraph store, or a row of its table.

    Raises:
        InputError: It has no namespace, key or value.
    """
    said = _mapping(item)
    segments, value = said.get("namespace", said.get("prefix")), said.get("value")
    if isinstance(segments, str):
        # Its tables join the segments, which may hold no dot.
        segments = segments.split(".")
    if not isinstance(said.get("key"), str) or not isinstance(segments, Sequence):
        message = "an item of a LangGraph store has a namespace, a key and a value"
        raise InputError(message)
    text, metadata = _text_and_rest(_mapping(value))
    new = new_memory(
        text,
        {"key": said["key"], "metadata": metadata, "expires_at": _time(said.get("expires_at"), "")},
    )
    return namespace or Namespace(path=tuple(segments)), _arrival(new, said, memory_id=None)


_TEXTS: Final = ("content", "text", "memory", "data")


def _text_and_rest(value: Item) -> tuple[str, Item]:
    """The text of a value, however deep LangMem laid it, and everything beside it."""
    for name in _TEXTS:
        inner = value.get(name)
        rest = {other: one for other, one in value.items() if other != name}
        if isinstance(inner, str) and inner.strip():
            return inner, rest
        if isinstance(inner, Mapping):
            text, more = _text_and_rest(inner)
            return text, {**rest, **more}
    return json.dumps(value, ensure_ascii=False), value


# ── Plain JSON ──

_STAMPS: Final = ("id", "created_at", "updated_at")


def read_plain(item: object, namespace: Namespace | None) -> tuple[Namespace, Arrival]:
    """A text, or a record as ``add`` takes it, which may also name its scope, id and times.

    Raises:
        InputError: A name is unknown, a value can't be, or nothing says where it goes.
    """
    said = {"content": item} if isinstance(item, str) else _mapping(item)
    words: dict[str, Any] = {name: said[name] for name in _SCOPE if said.get(name) is not None}
    fields = {name: one for name, one in said.items() if name not in (*_SCOPE, *_STAMPS)}
    new = record_memory(fields, {})
    if "run_id" in words:
        new = dataclasses.replace(new, run_id=words["run_id"])
    if isinstance(words.get("namespace"), list):
        words["namespace"] = tuple(words["namespace"])
    return _placed(new, said, words=words, namespace=namespace)


# ── What they have in common ──


def id_in(place: Namespace, memory_id: MemoryId, *, before: Namespace) -> MemoryId:
    """The id of a memory that goes to another place than before.

    There it has another one, always the same: no two memories of a store share an id.
    """
    if place == before:
        return memory_id
    return hashlib.sha256(f"{place.address}\0{memory_id}".encode()).hexdigest()[:32]


def _placed(
    new: NewMemory, said: Item, *, words: Mapping[str, Any], namespace: Namespace | None
) -> tuple[Namespace, Arrival]:
    """Where an item goes: to the scope that was asked for, else to its own."""
    own = namespace
    if own is None or words.keys() - {"run_id"}:
        own = write_namespace(ScopeWords(**words))
    place, memory_id = namespace or own, _id_of(said.get("id"))
    if memory_id is not None:
        memory_id = id_in(place, memory_id, before=own)
    return place, _arrival(new, said, memory_id=memory_id)


def _arrival(new: NewMemory, said: Item, *, memory_id: MemoryId | None) -> Arrival:
    created = _time(said.get("created_at"), "created_at")
    updated = _time(said.get("updated_at"), "updated_at")
    now = datetime.now(UTC)
    kept = Kept(
        memory_id=memory_id,
        created_at=created or updated or now,
        updated_at=updated or created or now,
    )
    return Arrival(new=new, kept=kept)


def _mapping(item: object) -> Item:
    if not isinstance(item, Mapping):
        message = f"an item is an object, not {type(item).__name__}"
        raise InputError(message)
    return item


def _id_of(said: object) -> MemoryId | None:
    """The id, if it is one like ours; others are not kept."""
    try:
        return None if said is None else checked_id(said)
    except NotFound:
        return None


def _time(said: object, what: str) -> datetime | None:
    """A time, in UTC where it has no zone: those who leave it out mean that."""
    if isinstance(said, str):
        try:
            bare = datetime.fromisoformat(said)
        except ValueError:
            bare = None
        if bare is not None and bare.tzinfo is None:
            said = bare.replace(tzinfo=UTC)
    return time_of(said, what)


READERS: Final[Mapping[str, Read]] = {
    "mem0": read_mem0,
    "langgraph": read_langgraph,
    "json": read_plain,
}
