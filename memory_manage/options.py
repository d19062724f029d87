"""The keyword arguments of the public methods, and the check that catches a misspelt one."""

import difflib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Literal, TypedDict, get_args, get_origin

from memory_tool.errors import InputError
from memory_tool.model import Json, Vector
from memory_tool.scope_words import NamespaceName

When = datetime | date | str
"""An aware datetime, an ISO text with an offset, or a bare date, which is a whole day."""


class ScopeOptions(TypedDict, total=False):
    """Which memories a call may touch."""

    user_id: str | None
    agent_id: str | None
    project_id: str | None
    run_id: str | None
    namespace: NamespaceName | None


class ReadScopeOptions(ScopeOptions, total=False):
    """A read may also name several namespaces, or only the one named."""

    namespaces: Sequence[NamespaceName]
    exact: bool


class WriteOptions(ScopeOptions, total=False):
    """What is said of a new memory beside its text."""

    type: str | None
    importance: int | None
    pinned: bool
    confidence: float
    source: Mapping[str, Json]
    tags: Sequence[str]
    metadata: Mapping[str, Json]
    occurred_at: datetime | str | None
    expires_at: datetime | str | None
    ttl: timedelta | float | None
    key: str | None
    on_duplicate: Literal["skip", "update", "fail", "keep"]
    embedding: Vector | Sequence[float] | None
    space: str | None
    idempotency_key: str | None
    mode: Literal["now", "async"]
    conversation_id: str | None
    skip_tools: bool


class ManyOptions(ScopeOptions, total=False):
    """Options of a bulk add."""

    idempotency_key: str | None
    mode: Literal["now", "async"]
    on_duplicate: Literal["skip", "update", "fail", "keep"]


class ConditionOptions(ReadScopeOptions, total=False):
    """Which memories of the scope are meant."""

    filters: object
    since: When | None
    until: When | None
    types: Sequence[str]
    tags: Sequence[str]
    tz: str | None


class SearchOptions(ConditionOptions, total=False):
    """How a search is done."""

    mode: Literal["auto", "keyword", "vector", "hybrid"]
    limit: int
    cursor: str | None
    threshold: float | None
    now: datetime | None
    explain: bool
    on_degraded: Literal["flag", "raise"]
    query_embedding: Vector | Sequence[float] | None
    space: str | None


class ListOptions(ConditionOptions, total=False):
    """Options of a listing."""

    limit: int
    cursor: str | None


class GetOptions(ReadScopeOptions, total=False):
    """Which version of a memory to read."""

    version: int | None
    as_of: datetime | str | None


class UpdateOptions(ReadScopeOptions, total=False):
    """What an update changes; what is not named stays."""

    content: str
    type: str
    importance: int | None
    pinned: bool
    confidence: float
    source: Mapping[str, Json]
    tags: Sequence[str]
    metadata: Mapping[str, Json]
    occurred_at: datetime | str | None
    expires_at: datetime | str | None
    expected_version: int | None
    idempotency_key: str | None


def check_names(options: Mapping[str, object], kind: type) -> None:
    """Refuse an option that the method doesn't know, or a word that an option doesn't take.

    Raises:
        InputError: With the nearest known name, or the words that there are.
    """
    known = kind.__annotations__
    for name, value in options.items():
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            message = f"there is no option {name!r}; did you mean {nearest!r}?"
            raise InputError(message)
        words = _words(known[name])
        if words and value is not None and value not in words:
            message = f"{name} is one of {', '.join(words)}, not {value!r}"
            raise InputError(message)


def _words(annotation: object) -> Sequence[str]:
    """The words of a Literal; none of any other type."""
    return get_args(annotation) if get_origin(annotation) is Literal else ()
