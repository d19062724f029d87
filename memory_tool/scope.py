"""Namespaces (where a memory lives) and scopes (which namespaces a call may touch)."""

import json
from dataclasses import dataclass
from typing import Final

from memory_tool.errors import InvalidScope, ScopeRequired

ID_LENGTH_MAX: Final = 512
"""Longest id or segment, in characters: PostgreSQL's btree refuses entries over 2,700 bytes, and
four segments of 512 characters of three bytes have to be stored as a hash anyway."""

_KINDS: Final = ("project", "user", "agent")


def _checked(kind: str, value: object) -> str:
    if not isinstance(value, str):
        message = f"{kind} must be a text, not {type(value).__name__}"
        raise InvalidScope(message)
    if not value or value.isspace():
        message = f"{kind} is empty"
        raise InvalidScope(message)
    if len(value) > ID_LENGTH_MAX:
        message = f"{kind} has {len(value)} characters, at most {ID_LENGTH_MAX} are allowed"
        raise InvalidScope(message)
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        message = f"{kind} holds a NUL or a lone surrogate"
        raise InvalidScope(message)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """The unit of isolation: project, user and agent ids, or a free path of segments.

    Segments are compared whole, so ``acme`` never reaches ``acme-corp``; every character but NUL
    is an ordinary one.
    """

    project: str | None = None
    user: str | None = None
    agent: str | None = None
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an empty namespace, and ids mixed with a path."""
        ids = [(kind, getattr(self, kind)) for kind in _KINDS if getattr(self, kind) is not None]
        if ids and self.path:
            message = "name ids or a namespace path, not both"
            raise InvalidScope(message)
        if not ids and not self.path:
            raise ScopeRequired
        for kind, value in ids:
            _checked(f"{kind}_id", value)
        for segment in self.path:
            _checked("a namespace segment", segment)

    @property
    def address(self) -> str:
        """The one text that stands for this namespace: JSON, equal for equal namespaces."""
        if self.path:
            return json.dumps(list(self.path), ensure_ascii=False)
        ids = {kind: getattr(self, kind) for kind in _KINDS if getattr(self, kind) is not None}
        return json.dumps(ids, ensure_ascii=False)

    @classmethod
    def from_address(cls, address: str) -> "Namespace":
        """The namespace that :attr:`address` stands for."""
        value = json.loads(address)
        if isinstance(value, list):
            return cls(path=tuple(value))
        return cls(**value)

    @classmethod
    def parse(cls, text: str) -> "Namespace":
        """Read ``"user:u1/project:p2"``.

        ``%2F`` stands for a slash inside an id and ``%25`` for a percent sign before ``2F``.

        Raises:
            InvalidScope: A part is not ``kind:value``, or a kind comes twice.
        """
        ids: dict[str, str] = {}
        for part in text.split("/"):
            kind, colon, value = part.partition(":")
            if not colon or kind not in _KINDS or kind in ids:
                message = (
                    f"{text!r} is not of the form 'user:…/project:…/agent:…'; "
                    "pass a tuple for a free namespace"
                )
                raise InvalidScope(message)
            ids[kind] = value.replace("%2F", "/").replace("%25", "%")
        return cls(project=ids.get("project"), user=ids.get("user"), agent=ids.get("agent"))

    def __str__(self) -> str:
        """``project:p2/user:u1`` as :meth:`parse` reads it, or the path as a JSON list."""
        if self.path:
            return self.address
        values = ((kind, getattr(self, kind)) for kind in _KINDS)
        return "/".join(f"{kind}:{_escaped(value)}" for kind, value in values if value is not None)


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("/", "%2F")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The namespaces that one read may touch; it can't be empty.

    A read covers every namespace that carries all the ids of one of ``within`` (or starts with its
    whole path segments); with ``exact`` only the namespaces named.
    """

    within: tuple[Namespace, ...]
    exact: bool = False

    def __post_init__(self) -> None:
        """Refuse a scope of nothing."""
        if not self.within:
            raise ScopeRequired

    @classmethod
    def of(cls, *namespaces: Namespace, exact: bool = False) -> "Scope":
        """The scope that these namespaces name."""
        return cls(within=tuple(dict.fromkeys(namespaces)), exact=exact)

    def covers(self, namespace: Namespace) -> bool:
        """Whether a read in this scope may see ``namespace``."""
        if self.exact:
            return namespace in self.within
        return any(_carries(namespace, wanted) for wanted in self.within)


def _carries(namespace: Namespace, wanted: Namespace) -> bool:
    if wanted.path:
        return namespace.path[: len(wanted.path)] == wanted.path
    return not namespace.path and all(
        getattr(wanted, kind) in (None, getattr(namespace, kind)) for kind in _KINDS
    )
