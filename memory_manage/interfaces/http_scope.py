"""What a key's scope makes of a request: nothing named is the key's own, more is refused. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from memory_manage.interfaces.http_keys import Key
from memory_tool.errors import Forbidden, ScopeRequired
from memory_tool.filters import split_scope
from memory_tool.scope import Scope
from memory_tool.scope_words import ScopeWords, read_scope, write_namespace

_IDS: Final = ("user_id", "project_id", "agent_id")
_SPACES: Final = ("namespace", "namespaces")
_WORDS: Final = (*_IDS, *_SPACES, "run_id", "exact")


def for_reading(key: Key, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a read, or of a change by id, within what the key may touch.

    Raises:
        Forbidden: They name a namespace outside.
        InputError: Their scope or filter can't be.
    """
    ids, _ = split_scope(options.get("filters"))
    completed = _completed(key, options, named={*_named(options), *ids})
    if key.scope is not None:
        _check(key.scope, read_scope(_scope_words(completed), ids), key=key)
    return completed


def for_writing(key: Key, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an add, within what the key may touch.

    Raises:
        Forbidden: They name a namespace outside.
        InputError: Their scope can't be.
    """
    completed = _completed(key, options, named=_named(options))
    if key.scope is not None:
        _check(key.scope, Scope.of(write_namespace(_scope_words(completed))), key=key)
    return completed


def check_named(options: Mapping[str, Any]) -> None:
    """Refuse options that leave the scope to the key: too little was said to delete everything.

    Raises:
        ScopeRequired: They name none.
    """
    ids, _ = split_scope(options.get("filters"))
    if not _named(options) and not ids:
        message = "deleting all memories of a scope names the scope, also where a key implies it"
        raise ScopeRequired(message)


def _named(options: Mapping[str, Any]) -> set[str]:
    return {word for word in (*_IDS, *_SPACES) if options.get(word) is not None}


def _completed(key: Key, options: Mapping[str, Any], *, named: set[str]) -> dict[str, Any]:
    """The options with the words of the key's scope that they don't name themselves."""
    words = key.words
    if words is None or named & set(_SPACES) or (named and words.namespace is not None):
        return dict(options)
    own = {word: getattr(words, word) for word in (*_IDS, "namespace")}
    missing = {
        word: value for word, value in own.items() if value is not None and word not in named
    }
    return {**options, **missing}


def _check(allowed: Scope, wanted: Scope, *, key: Key) -> None:
    for namespace in wanted.within:
        if not allowed.covers(namespace):
            message = f"the key {key.name} is bound to {allowed.within[0]}: {namespace} is outside"
            raise Forbidden(message)


def _scope_words(options: Mapping[str, Any]) -> ScopeWords:
    return ScopeWords(**{word: options.get(word) for word in _WORDS})
