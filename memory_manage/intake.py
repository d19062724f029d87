"""What callers pass to ``add`` and ``update``, made into the nouns of the hands. Pure."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from memory_manage.classify import classify
from memory_tool.errors import InputError, InvalidEmbedding, InvalidTime
from memory_tool.model import NewMemory, OnDuplicate, Patch, Turn, Vector
from memory_tool.validation import check_time, memory_type_of, on_duplicate_of

_SAME: Final = ("importance", "pinned", "confidence", "source", "metadata", "key", "space")
_PATCHED: Final = ("content", "importance", "pinned", "confidence", "source", "metadata")
TURN_NAMES: Final = ("conversation_id", "position", "role", "name")
RECORD_NAMES: Final = frozenset(
    (
        *_SAME,
        *TURN_NAMES,
        "content",
        "type",
        "tags",
        "occurred_at",
        "expires_at",
        "ttl",
        "run_id",
        "on_duplicate",
        "embedding",
    )
)

_OF_MESSAGES: Final = frozenset(("role", "content", "name"))


def new_memory(
    content: object, options: Mapping[str, Any], *, turn: Turn | None = None
) -> NewMemory:
    """A text with its options as a new memory; what isn't rated or typed is left to the rules.

    Raises:
        InputError: An option has a value that it can't have.
    """
    if not isinstance(content, str):
        message = f"content must be a text, not {type(content).__name__}"
        raise InputError(message)
    given = {name: options[name] for name in _SAME if options.get(name) is not None}
    kind = options.get("type")
    typed = (
        memory_type_of(kind)
        if kind is not None
        else classify(content, in_conversation=turn is not None).type
    )
    return NewMemory(
        content=content,
        type=typed,
        tags=tuple(_list(options.get("tags") or (), "tags")),
        occurred_at=time_of(options.get("occurred_at"), "occurred_at"),
        expires_at=time_of(options.get("expires_at"), "expires_at"),
        ttl=_ttl(options),
        run_id=options.get("run_id"),
        turn=turn,
        on_duplicate=on_duplicate_of(options.get("on_duplicate") or OnDuplicate.SKIP),
        embedding=vector_of(options.get("embedding")),
        **given,
    )


def is_record(content: Mapping[str, Any]) -> bool:
    """Whether a mapping is a record rather than a message: it has no role, or more than one has."""
    return "role" not in content or bool(set(content) & (RECORD_NAMES - _OF_MESSAGES))


def record_memory(record: Mapping[str, Any], defaults: Mapping[str, Any]) -> NewMemory:
    """A record in the JSON form of :class:`~memory_tool.model.NewMemory` as a new memory.

    Raises:
        InputError: A name is unknown, or ``content`` is missing.
    """
    unknown = sorted(set(record) - RECORD_NAMES)
    if unknown:
        message = f"a record has no field {unknown[0]!r}; put your own values under metadata"
        raise InputError(message)
    if "content" not in record:
        message = "a record needs its content"
        raise InputError(message)
    turn = None
    if record.get("conversation_id") is None:
        lonely = [name for name in ("role", "position", "name") if record.get(name) is not None]
        if lonely:
            message = f"a record with {lonely[0]} needs the conversation_id that it belongs to"
            raise InputError(message)
    else:
        turn = Turn(
            conversation_id=record["conversation_id"],
            position=record.get("position") or 0,
            role=record.get("role") or "user",
            name=record.get("name"),
        )
    options = {**defaults, **{name: value for name, value in record.items() if value is not None}}
    return new_memory(record["content"], options, turn=turn)


def completed(memory: NewMemory, options: Mapping[str, Any]) -> NewMemory:
    """The same memory, where it says nothing as the options and the rules say."""
    given: dict[str, Any] = {}
    if memory.type is None and isinstance(memory.content, str):
        given["type"] = classify(memory.content, in_conversation=memory.turn is not None).type
    if memory.run_id is None:
        given["run_id"] = options.get("run_id")
    if memory.on_duplicate is OnDuplicate.SKIP and options.get("on_duplicate") is not None:
        given["on_duplicate"] = on_duplicate_of(options["on_duplicate"])
    return dataclasses.replace(memory, **given)


def patch_from(options: Mapping[str, Any]) -> Patch:
    """The options of an update as a patch; only what is named changes."""
    given: dict[str, Any] = {name: options[name] for name in _PATCHED if name in options}
    if "type" in options:
        given["type"] = memory_type_of(options["type"])
    if "tags" in options:
        given["tags"] = tuple(_list(options["tags"], "tags"))
    for name in ("occurred_at", "expires_at"):
        if name in options:
            given[name] = time_of(options[name], name)
    return Patch(**given)


def time_of(value: object, what: str) -> datetime | None:
    """An aware time in UTC from a datetime, an ISO text with an offset, or seconds since 1970.

    Raises:
        InvalidTime: It has no zone or is no time.
    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError) as error:
            message = f"{what}: {value!r} is no time in seconds"
            raise InvalidTime(message) from error
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            message = f"{what}: {value!r} is no ISO time"
            raise InvalidTime(message) from error
    if not isinstance(value, datetime):
        message = f"{what} must be a time with a zone, not {type(value).__name__}"
        raise InvalidTime(message)
    if value.utcoffset() is None:
        message = f"{what} needs a time zone, such as {value.isoformat()}+00:00"
        raise InvalidTime(message)
    check_time(value, what)
    return value.astimezone(UTC)


def vector_of(value: object) -> Vector | None:
    """An embedding as an array; its shape and values are checked where the space is known.

    Raises:
        InvalidEmbedding: It is no sequence of numbers.
    """
    if value is None:
        return None
    try:
        # What is too large becomes infinite, and is refused with the other checks.
        with np.errstate(over="ignore"):
            return np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        message = "an embedding is a sequence of numbers"
        raise InvalidEmbedding(message) from error


def _ttl(options: Mapping[str, Any]) -> timedelta | None:
    ttl = options.get("ttl")
    if ttl is None or isinstance(ttl, timedelta):
        return ttl
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not math.isfinite(ttl):
        message = f"ttl is a positive number of seconds or a timedelta, not {ttl!r}"
        raise InputError(message)
    try:
        return timedelta(seconds=ttl)
    except OverflowError as error:
        message = f"ttl {ttl!r} reaches beyond the year 9999"
        raise InvalidTime(message) from error


def _list(value: object, what: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        message = f"{what} must be a list of texts, not {type(value).__name__}"
        raise InputError(message)
    return value
