"""What may be stored, checked before any I/O. Pure."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np

from memory_tool.errors import (
    InputError,
    InvalidEmbedding,
    InvalidText,
    InvalidTime,
    SpaceMismatch,
    TooLarge,
)
from memory_tool.model import EmbeddingSpace, Json, NewMemory, Patch, Unset, Vector

DEPTH_MAX: Final = 8
TAGS_MAX: Final = 100
NAME_MAX: Final = 512
STARS: Final = range(1, 6)
NORM_MIN: Final = 1e-6

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


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


def check_json(value: object, what: str, *, largest: int) -> Mapping[str, Json]:
    """A JSON object as plain dicts and lists, without NaN, NUL, lone surrogates or deep nesting.

    Raises:
        InputError: It is no JSON object, or a part of it can't be stored.
        TooLarge: It has more than ``largest`` bytes.
    """
    if not isinstance(value, Mapping):
        message = f"{what} must be a mapping, not {type(value).__name__}"
        raise InputError(message)
    plain = _plain(value, what, DEPTH_MAX)
    size = len(json.dumps(plain, ensure_ascii=False).encode())
    if size > largest:
        message = f"{what} has {size:,} bytes of JSON, at most {largest:,} are allowed"
        raise TooLarge(message)
    return plain if isinstance(plain, dict) else {}


def _plain(value: object, what: str, depth: int) -> Json:
    if depth < 0:
        message = f"{what} is nested deeper than {DEPTH_MAX} levels"
        raise InputError(message)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            message = f"{what} holds {value}, which JSON has no word for"
            raise InputError(message)
        return value
    if isinstance(value, str):
        found = _UNSTORABLE.search(value)
        if found:
            message = f"{what} holds U+{ord(found[0]):04X}"
            raise InvalidText(message)
        return value
    return _plain_container(value, what, depth)


def _plain_container(value: object, what: str, depth: int) -> Json:
    if isinstance(value, Mapping):
        plain: dict[str, Json] = {}
        for name, item in value.items():
            if not isinstance(name, str) or _UNSTORABLE.search(name):
                message = f"{what} has a name that is no storable text: {name!r}"
                raise InputError(message)
            plain[name] = _plain(item, f"{what}.{name}"[:200], depth - 1)
        return plain
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item, what, depth - 1) for item in value]
    message = f"{what} holds a {type(value).__name__}, which is no JSON"
    raise InputError(message)


def check_rating(importance: object, confidence: object) -> None:
    """One to five stars or ``None``, and a confidence between 0 and 1.

    Raises:
        InputError: Either is out of its range.
    """
    if importance is not None and (isinstance(importance, bool) or importance not in STARS):
        message = f"importance is 1 to 5 stars, not {importance!r}"
        raise InputError(message)
    numeric = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not numeric or not 0 <= float(str(confidence)) <= 1:
        message = f"confidence lies between 0 and 1, not {confidence!r}"
        raise InputError(message)


def check_tags(tags: Sequence[object]) -> None:
    """At most 100 short texts.

    Raises:
        InputError: A tag is no storable text, or there are too many.
    """
    if len(tags) > TAGS_MAX:
        message = f"{len(tags)} tags are too many, at most {TAGS_MAX} are allowed"
        raise InputError(message)
    for tag in tags:
        check_text(tag, "a tag")


def check_new(new: NewMemory, *, content_bytes: int, metadata_bytes: int) -> NewMemory:
    """The memory with plain metadata, or the error that says what can't be stored."""
    check_text(new.content, "content", longest=content_bytes)
    check_rating(new.importance, new.confidence)
    check_tags(new.tags)
    for what in ("occurred_at", "expires_at"):
        check_time(getattr(new, what), what)
    for what in ("key", "run_id"):
        if getattr(new, what) is not None:
            check_text(getattr(new, what), what)
    if new.turn is not None:
        check_text(new.turn.conversation_id, "conversation_id")
        check_text(new.turn.role, "role")
        if new.turn.name is not None:
            check_text(new.turn.name, "name")
    metadata = check_json(new.metadata, "metadata", largest=metadata_bytes)
    source = check_json(new.source, "source", largest=metadata_bytes)
    return _replaced(new, metadata, source)


def _replaced(
    new: NewMemory, metadata: Mapping[str, Json], source: Mapping[str, Json]
) -> NewMemory:
    if metadata == new.metadata and source == new.source and type(new.metadata) is dict:
        return new
    values = {name: getattr(new, name) for name in NewMemory.__dataclass_fields__}
    return NewMemory(**{**values, "metadata": metadata, "source": source})


def check_patch(patch: Patch, *, content_bytes: int, metadata_bytes: int) -> None:
    """Raise what :func:`check_new` would, for the parts that a patch sets."""
    if not isinstance(patch.content, Unset):
        check_text(patch.content, "content", longest=content_bytes)
    importance = None if isinstance(patch.importance, Unset) else patch.importance
    confidence = 1.0 if isinstance(patch.confidence, Unset) else patch.confidence
    check_rating(importance, confidence)
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


def check_embedding(vector: object, space: EmbeddingSpace, named: str | None) -> Vector:
    """A unit vector of the space, from what a caller passed.

    Raises:
        SpaceMismatch: The caller names another space, or none.
        InvalidEmbedding: The shape is wrong, a value is not finite, or the vector is zero.
    """
    if named != space.name:
        message = f"the embedding is said to be of space {named!r}, the store holds {space.name!r}"
        raise SpaceMismatch(message)
    try:
        array = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        message = "an embedding is a sequence of numbers"
        raise InvalidEmbedding(message) from error
    if array.shape != (space.dimension,):
        message = f"the embedding has shape {array.shape}, the space {(space.dimension,)}"
        raise InvalidEmbedding(message)
    if not np.isfinite(array).all():
        message = "the embedding holds NaN or infinity"
        raise InvalidEmbedding(message)
    norm = float(np.linalg.norm(array))
    if norm < NORM_MIN:
        message = "the embedding is zero"
        raise InvalidEmbedding(message)
    return array / np.float32(norm)
