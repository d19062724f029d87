"""Every error of Threefold, grouped by what the caller can do about it.

    ThreefoldError
    ├── InputError          fix the call
    ├── NotFound            it is not there, or not in your scope
    ├── WriteConflict       somebody else was first: read again and decide
    ├── Unavailable         try later; says which store and whether anything was written
    └── Corrupt             call an operator; names the command that repairs

The docstring of a class is its message when none is given.
"""

from collections.abc import Iterator
from typing import Final, Literal, Self

Outcome = Literal["not_started", "committed", "unknown"]


class ThreefoldError(Exception):
    """Something went wrong in Threefold."""

    def __init__(self, message: str | None = None) -> None:
        """Keep ``message``, or the first line of the class docstring when there is none."""
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])


class InputError(ThreefoldError):
    """The call can't be carried out as it stands: change it."""


class ScopeRequired(InputError):
    """A call that touches memories names a scope: user_id, agent_id, project_id or namespace."""


class InvalidScope(InputError):
    """The scope can't be understood."""


class TooManyNamespaces(InputError):
    """The scope covers more than 1,000 namespaces: name more ids."""


class InvalidFilter(InputError):
    """The filter can't be understood."""


class InvalidText(InputError):
    """The text is empty, or holds characters that can't be stored."""


class InvalidTime(InputError):
    """A time needs a zone: pass an aware datetime or an ISO text with an offset."""


class InvalidEmbedding(InputError):
    """An embedding has the wrong shape, or holds values that are not finite."""


class TooFewVectors(InputError):
    """A kind of vector index can't be trained with so few vectors."""


class SpaceMismatch(InputError):
    """The embedding space differs from this store's; run `threefold reembed` to change it."""


class TooLarge(InputError):
    """The text or its metadata is larger than the store accepts."""


class InvalidCursor(InputError):
    """The cursor belongs to another query, or is not one of ours."""


class SettingsError(InputError):
    """A setting is unknown or has a value that it can't have."""


class MissingExtra(InputError):
    """An optional part is not installed."""


class NotAuthenticated(InputError):
    """The call needs an API key: send it as `Authorization: Bearer KEY`."""


class Forbidden(InputError):
    """The API key may not do this."""


class NotFound(ThreefoldError):
    """There is no such memory in this scope."""

    @classmethod
    def of(cls, memory_id: str) -> Self:
        """The error that names the id."""
        return cls(f"there is no memory {memory_id} in this scope")


class WriteConflict(ThreefoldError):
    """The write meets another one: read again and decide."""


class VersionConflict(WriteConflict):
    """The memory has another version than the expected one."""


class DuplicateMemory(WriteConflict):
    """The same text is already stored in this namespace."""


class IdempotencyConflict(WriteConflict):
    """The idempotency key was used before for another request."""


class WouldLose(WriteConflict):
    """The store has memories that the backup lacks: say --replace to lose them."""


class Unavailable(ThreefoldError):
    """A store can't be reached: try again later."""

    def __init__(
        self,
        message: str | None = None,
        *,
        store: str = "postgres",
        outcome: Outcome = "not_started",
        key: str | None = None,
    ) -> None:
        """Say which store failed and what became of the write.

        Args:
            message: What happened.
            store: The store that failed.
            outcome: Whether anything was written. ``unknown`` comes with the ``key`` under which
                the same call can be repeated without a second effect.
            key: The idempotency key of the write.
        """
        super().__init__(message)
        self.store = store
        self.outcome: Outcome = outcome
        self.key = key


class PartUnavailable(Unavailable):
    """A part of a store can't answer; its other parts may."""


class Degraded(Unavailable):
    """A part of the answer is missing and the caller asked for an error in that case."""


class Corrupt(ThreefoldError):
    """Stored files or rows are damaged: an operator has to repair them."""

    def __init__(
        self,
        message: str | None = None,
        *,
        command: str = "threefold doctor",
        store: str = "index",
    ) -> None:
        """Keep the ``command`` that repairs, and whether the truth is damaged or an index."""
        super().__init__(message)
        self.command = command
        self.store = store


def error_named(name: str, message: str) -> ThreefoldError:
    """The error that a failed result names; a plain one when there is no such class here."""
    return _BY_NAME.get(name, ThreefoldError)(message)


def _branch(kind: type[ThreefoldError]) -> Iterator[type[ThreefoldError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _branch(child)


_BY_NAME: Final = {kind.__name__: kind for kind in _branch(ThreefoldError)}
