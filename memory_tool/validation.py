"""What may be stored, checked before any I/O. Pure."""

import dataclasses
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from memory_tool.errors import (
    InputError,
    InvalidEmbedding,
    InvalidText,
    InvalidTime,
    NotFound,
    SpaceMismatch,
    TooLarge,
)
from memory_tool.model import (
    EmbeddingSpace,
    Json,
    MemoryId,
    MemoryType,
    NewMemory,
    OnDuplicate,
    Patch,
    Turn,
    Unset,
    Vector,
)

DEPTH_MAX: Final = 8
LONGEST_TTL: Final = timedelta(days=366 * 1000)
"""A thousand years: added to any clock it ends before the year 9999, the last of Python's."""

TAGS_MAX: Final = 100
NAME_MAX: Final = 512
STARS: Final = range(1, 6)
NORM_MIN: Final = 1e-6

QUERY_BYTES: Final = 100_000
"""Longest question: a few pages. Whatever is longer is a text to be stored, not to be asked."""

POSITION_MAX: Final = 2**31 - 1
"""Last position of a message in its conversation: PostgreSQL's int."""

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_ID: Final = re.compile("[0-9a-f]{32}")


def check_text(text: object, what: str, *, longest: int = NAME_MAX * 4) -> str:
    """A text that can be stored byte for byte, or an error that says what is wrong with it.

    Args:
        text: The value to check.
        what: Its name, for the message.
        longest: Most bytes of UTF-8.

    Raises:
        InvalidText: It is no text, blank, or holds a NUL or a lone surrogate.
        TooLarge: It is longer than ``longest``.
    """
    if not isinstance(text, str):
        message = f"{what} must be a text, not {type(text).__name__}"
        raise InvalidText(message)
    if not text.strip():
        message = f"{what} is empty"
        raise InvalidText(message)
    found = _UNSTORABLE.search(text)
    if found:
        message = f"{what} holds U+{ord(found[0]):04X} at position {found.start()}"
        raise InvalidText(message)
    size = len(text) if text.isascii() else len(text.encode())
    if size > longest:
        message = f"{what} has {size:,} bytes, at most {longest:,} are allowed"
        raise TooLarge(message)
    return text


def check_query(text: object) -> str:
    """A question that can be asked; see :func:`check_text`."""
    return check_text(text, "the query", longest=QUERY_BYTES)


def check_time(time: object, what: str) -> None:
    """An aware datetime or ``None``.

    Raises:
        InvalidTime: It has no zone, or is no datetime.
    """
    if time is None:
        return
    if not isinstance(time, datetime):
        message = f"{what} must be a datetime, not {type(time).__name__}"
        raise InvalidTime(message)
    if time.utcoffset() is None:
        message = f"{what} has no time zone: add one, e.g. tzinfo=datetime.UTC"
        raise InvalidTime(message)
    try:
        time.astimezone(UTC)
    except OverflowError as error:
        message = f"{what} lies outside the years 1 to 9999 in UTC: {time.isoformat()}"
        raise InvalidTime(message) from error


def check_json(value: object, what: str, *, largest: int) -> Mapping[str, Json]:
    """A JSON object as plain dicts and lists, without NaN, NUL, lone surrogates or deep nesting.

    Raises:
        InputError: It is no JSON object, or a part of it can't be stored.
        TooLarge: It has more than ``largest`` bytes.
    """
    if not isinstance(value, Mapping):
        message = f"{what} must be a mapping, not {type(value).__name__}"
        raise InputError(message)
    plain = _plain(value, what, depth=DEPTH_MAX)
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > largest:
        message = f"{what} has {size:,} bytes of JSON, at most {largest:,} are allowed"
        raise TooLarge(message)
    return plain if isinstance(plain, dict) else {}


def _plain(value: object, what: str, *, depth: int) -> Json:
    if depth < 0:
        message = f"{what} is nested deeper than {DEPTH_MAX} levels"
        raise InputError(message)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _plain_number(value, what)
    if isinstance(value, str):
        found = _UNSTORABLE.search(value)
        if found:
            message = f"{what} holds U+{ord(found[0]):04X}"
            raise InvalidText(message)
        return value
    return _plain_container(value, what, depth=depth)


def _plain_number(value: float, what: str) -> Json:
    if not abs(value) <= sys.float_info.max:
        message = f"{what} holds a number that is not finite, or too large"
        raise InputError(message)
    return value


def _plain_container(value: object, what: str, *, depth: int) -> Json:
    if isinstance(value, Mapping):
        plain: dict[str, Json] = {}
        for name, item in value.items():
            if not isinstance(name, str) or _UNSTORABLE.search(name):
                message = f"{what} has a name that is no storable text: {name!r}"
                raise InputError(message)
            plain[name] = _plain(item, f"{what}.{name}"[:200], depth=depth - 1)
        return plain
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item, what, depth=depth - 1) for item in value]
    message = f"{what} holds a {type(value).__name__}, which is no JSON"
    raise InputError(message)


def check_rating(importance: object, confidence: object, *, pinned: object = False) -> None:
    """One to five stars or ``None``, a confidence between 0 and 1, and whether it is pinned.

    Raises:
        InputError: One of them is out of its range.
    """
    if importance is not None and (type(importance) is not int or importance not in STARS):
        message = f"importance is 1 to 5 stars, not {importance!r}"
        raise InputError(message)
    if not isinstance(pinned, bool):
        message = f"pinned is true or false, not {pinned!r}"
        raise InputError(message)
    numeric = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not numeric or not 0 <= float(str(confidence)) <= 1:
        message = f"confidence lies between 0 and 1, not {confidence!r}"
        raise InputError(message)


def check_tags(tags: object) -> None:
    """At most 100 short texts.

    Raises:
        InputError: A tag is no storable text, or there are too many.
    """
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        message = f"tags must be a list of texts, not {type(tags).__name__}"
        raise InputError(message)
    if len(tags) > TAGS_MAX:
        message = f"{len(tags)} tags are too many, at most {TAGS_MAX} are allowed"
        raise InputError(message)
    for tag in tags:
        check_text(tag, "a tag")


def _check_ttl(new: NewMemory) -> None:
    ttl: object = new.ttl
    if ttl is None:
        return
    if new.expires_at is not None:
        message = "give expires_at or ttl, not both"
        raise InputError(message)
    if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
        message = f"ttl is a positive number of seconds or a timedelta, not {ttl!r}"
        raise InputError(message)
    if ttl > LONGEST_TTL:
        message = f"ttl is at most {LONGEST_TTL.days:,} days, not {ttl.days:,}"
        raise InvalidTime(message)


def check_new(new: NewMemory, *, content_bytes: int, metadata_bytes: int) -> NewMemory:
    """The memory in plain values, or the error that says what can't be stored."""
    check_text(new.content, "content", longest=content_bytes)
    check_rating(new.importance, new.confidence, pinned=new.pinned)
    check_tags(new.tags)
    for what in ("occurred_at", "expires_at"):
        check_time(getattr(new, what), what)
    _check_ttl(new)
    for what in ("key", "run_id"):
        if getattr(new, what) is not None:
            check_text(getattr(new, what), what)
    if new.turn is not None:
        _check_turn(new.turn)
    return dataclasses.replace(
        new,
        type=None if new.type is None else memory_type_of(new.type),
        on_duplicate=on_duplicate_of(new.on_duplicate),
        tags=tuple(new.tags),
        metadata=check_json(new.metadata, "metadata", largest=metadata_bytes),
        source=check_json(new.source, "source", largest=metadata_bytes),
    )


def _check_turn(turn: Turn) -> None:
    check_text(turn.conversation_id, "conversation_id")
    check_text(turn.role, "role")
    if turn.name is not None:
        check_text(turn.name, "name")
    position: object = turn.position
    if type(position) is not int or not 0 <= position <= POSITION_MAX:
        message = f"position is a whole number from 0 to {POSITION_MAX:,}, not {position!r}"
        raise InputError(message)


def check_patch(patch: Patch, *, content_bytes: int, metadata_bytes: int) -> None:
    """Raise what :func:`check_new` would, for the parts that a patch sets."""
    if not isinstance(patch.content, Unset):
        check_text(patch.content, "content", longest=content_bytes)
    importance = None if isinstance(patch.importance, Unset) else patch.importance
    confidence = 1.0 if isinstance(patch.confidence, Unset) else patch.confidence
    pinned = False if isinstance(patch.pinned, Unset) else patch.pinned
    check_rating(importance, confidence, pinned=pinned)
    if not isinstance(patch.tags, Unset):
        check_tags(patch.tags)
    for what in ("occurred_at", "expires_at", "verified_at"):
        value = getattr(patch, what)
        if not isinstance(value, Unset):
            check_time(value, what)
    for what in ("metadata", "source"):
        value = getattr(patch, what)
        if not isinstance(value, Unset):
            check_json(value, what, largest=metadata_bytes)


def check_embedding(vector: object, space: EmbeddingSpace, *, named: str | None) -> Vector:
    """A unit vector of the space, from what a caller passed.

    Raises:
        SpaceMismatch: The caller names another space, or none.
        InvalidEmbedding: The shape is wrong, a value is not finite, or the vector is zero.
    """
    if named != space.name:
        message = f"the embedding is said to be of space {named!r}, the store holds {space.name!r}"
        raise SpaceMismatch(message)
    try:
        # In double precision the length of no float32 vector overflows.
        array = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        message = "an embedding is a sequence of numbers"
        raise InvalidEmbedding(message) from error
    if array.shape != (space.dimension,):
        message = f"the embedding has shape {array.shape}, the space {(space.dimension,)}"
        raise InvalidEmbedding(message)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.linalg.norm(array))
    if not math.isfinite(norm):
        message = "the embedding holds NaN, infinity or far too large numbers"
        raise InvalidEmbedding(message)
    if norm < NORM_MIN:
        message = "the embedding is zero"
        raise InvalidEmbedding(message)
    unit: Vector = (array / norm).astype(np.float32)
    return unit


def check_space(recorded: EmbeddingSpace, given: EmbeddingSpace) -> None:
    """Refuse vectors of another space than the store's.

    Raises:
        SpaceMismatch: Model, revision, dimension, prefixes or normalisation differ.
    """
    if recorded != given:
        message = (
            f"this store holds vectors of {recorded.name}, the embedder makes {given.name}: "
            "open it with the recorded model, or run `threefold reembed --model …`"
        )
        raise SpaceMismatch(message)


def checked_id(memory_id: object) -> MemoryId:
    """The id, also when it was written with hyphens or capitals.

    Raises:
        NotFound: It can't be the id of any memory.
    """
    plain = str(memory_id).replace("-", "").lower()
    if not _ID.fullmatch(plain):
        message = f"there is no memory {memory_id!r}: ids have 32 hexadecimal digits"
        raise NotFound(message)
    return plain


def memory_type_of(name: MemoryType | str) -> MemoryType:
    """The type of that name.

    Raises:
        InputError: There is none.
    """
    try:
        return MemoryType(name)
    except ValueError as error:
        known = ", ".join(MemoryType)
        message = f"{name!r} is no memory type; known are {known}"
        raise InputError(message) from error


def on_duplicate_of(name: OnDuplicate | str) -> OnDuplicate:
    """The rule for duplicates of that name.

    Raises:
        InputError: There is none.
    """
    try:
        return OnDuplicate(name)
    except ValueError as error:
        message = f"on_duplicate is one of {', '.join(OnDuplicate)}, not {name!r}"
        raise InputError(message) from error
