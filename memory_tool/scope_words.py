"""The words with which callers name a scope, as keywords and in filters, made into one. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

from memory_tool.errors import InvalidScope, ScopeRequired, TooManyNamespaces
from memory_tool.scope import Namespace, Scope

NamespaceName: TypeAlias = str | Sequence[str] | Namespace

NAMED_MAX: Final = 1000
"""Most namespaces that one read may name or cover."""

_IDS: Final = {"user_id": "user", "agent_id": "agent", "project_id": "project"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeWords:
    """What a call or a bound memory says of its scope; ``run_id`` is a filter, not a part of it."""

    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    namespace: NamespaceName | None = None
    namespaces: Sequence[NamespaceName] | None = None
    exact: bool | None = None

    def joined(self, other: "ScopeWords") -> "ScopeWords":
        """Both together.

        Raises:
            InvalidScope: They name different ids for one word.
        """
        values: dict[str, object] = {}
        for word in (field.name for field in fields(self)):
            mine, theirs = getattr(self, word), getattr(other, word)
            if mine is not None and theirs is not None and mine != theirs:
                message = f"{word} is named twice: {mine!r} and {theirs!r}"
                raise InvalidScope(message)
            values[word] = theirs if mine is None else mine
        return ScopeWords(**values)  # type: ignore[arg-type] # each value comes from the same field


def write_namespace(words: ScopeWords, *, requires: Sequence[str] = ()) -> Namespace:
    """The one namespace that a write goes to.

    Raises:
        ScopeRequired: Nothing, or not all that ``requires`` asks for, is named.
        InvalidScope: Ids and a namespace are mixed, or several namespaces are named.
    """
    if words.namespaces is not None:
        message = "a write goes to one namespace: use namespace=, not namespaces="
        raise InvalidScope(message)
    found = _one(words)
    _require(found, requires)
    return found


def read_scope(
    words: ScopeWords,
    filtered: Mapping[str, tuple[str, ...]],
    *,
    requires: Sequence[str] = (),
) -> Scope:
    """The namespaces that a read may touch.

    Args:
        words: The scope words of the call.
        filtered: The scope words that stood in its filter, each with one or several ids.
        requires: Ids that must be named.

    Raises:
        ScopeRequired: Nothing, or not all that ``requires`` asks for, is named.
        InvalidScope: Two different ids are named for one word.
        TooManyNamespaces: More than 1,000 are named.
    """
    if words.namespaces is None:
        wanted = [_one(choice) for choice in _choices(words, filtered)]
    else:
        wanted = _listed(words, words.namespaces, filtered=filtered)
    if len(wanted) > NAMED_MAX:
        raise TooManyNamespaces
    for namespace in wanted:
        _require(namespace, requires)
    return Scope.of(*wanted, exact=words.namespaces is not None or bool(words.exact))


def named(name: object) -> Namespace:
    """The namespace that a text, a tuple of segments or a namespace names.

    Raises:
        InvalidScope: It is none of these.
    """
    if isinstance(name, Namespace):
        return name
    if isinstance(name, str):
        return Namespace.parse(name)
    if not isinstance(name, Sequence):
        message = f"a namespace is a text or a tuple of segments, not {type(name).__name__}"
        raise InvalidScope(message)
    segments = tuple(name)
    if not segments:
        raise ScopeRequired
    return Namespace(path=segments)


def _one(words: ScopeWords) -> Namespace:
    ids = {kind: getattr(words, word) for word, kind in _IDS.items()}
    given = {kind: value for kind, value in ids.items() if value is not None}
    if words.namespace is None:
        return Namespace(**given)
    if given:
        message = "name ids or a namespace, not both"
        raise InvalidScope(message)
    return named(words.namespace)


def _listed(
    words: ScopeWords,
    names: object,
    *,
    filtered: Mapping[str, tuple[str, ...]],
) -> list[Namespace]:
    if filtered or any(getattr(words, word) is not None for word in (*_IDS, "namespace")):
        message = "name ids or namespaces=[…], not both"
        raise InvalidScope(message)
    if isinstance(names, str) or not isinstance(names, Sequence):
        message = f"namespaces is a list of names, not {type(names).__name__}"
        raise InvalidScope(message)
    if len(names) > NAMED_MAX:
        raise TooManyNamespaces
    return [named(name) for name in names]


def _choices(words: ScopeWords, filtered: Mapping[str, tuple[str, ...]]) -> list[ScopeWords]:
    lists = [[(word, value) for value in values] for word, values in filtered.items()]
    combined = itertools.islice(itertools.product(*lists), NAMED_MAX + 1)
    return [words.joined(_filter_words(dict(pairs))) for pairs in combined]


def _filter_words(ids: Mapping[str, str]) -> ScopeWords:
    return ScopeWords(
        user_id=ids.get("user_id"),
        agent_id=ids.get("agent_id"),
        project_id=ids.get("project_id"),
        namespace=ids.get("namespace"),
    )


def _require(namespace: Namespace, requires: Sequence[str]) -> None:
    for kind in requires:
        if getattr(namespace, kind) is None:
            message = f"this store requires {kind}_id in every call"
            raise ScopeRequired(message)
