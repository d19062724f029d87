"""The ports of the log: the truth as appliers read it, and what follows it.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, runtime_checkable

from memory_tool.model import StoredRow
from memory_tool.port_values import (
    ChangeBatch,
    DeadLetter,
    Lag,
    Patience,
    Pointer,
    TargetBase,
)


@runtime_checkable
class ChangeLog(Protocol):
    """The truth as appliers read it: what changed since a number, for every namespace."""

    def pending(self, clocks: Mapping[int, int]) -> int:
        """How many numbers lie above these clocks, over all namespaces."""
        ...

    def knows(self, target: str, mark: str) -> bool:
        """Whether this history gave the target that mark."""
        ...

    def changes(
        self, target: str, kind: Literal["vector", "keyword"], *, base: TargetBase, limit: int
    ) -> AbstractContextManager[ChangeBatch]:
        """The rows above the base's clocks, at most about ``limit``, read in one snapshot.

        The batch's mark is known from now on, even if the target breaks off.

        Raises:
            ForeignHistory: The truth does not know the base's mark, or has purged rows that the
                base has not seen: the target has to start from nothing.
        """
        ...

    def pointer(self, target: str) -> Pointer | None:
        """The generation to read."""
        ...

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """Switch the pointer if it still stands on ``base_mark``; says whether it did.

        ``NO_POINTER`` asks that there be none yet, ``None`` asks for nothing.
        """
        ...

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """Record how far the target has come, for purging and health."""
        ...

    def bury(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """Remember rows that the target can't take.

        Others that it could not take are forgotten when they have changed since, or are among those
        just delivered: numbers above the one and up to the other, by namespace.
        """
        ...


@runtime_checkable
class ChangeFigures(Protocol):
    """Figures about the log. They cost more than a look-up, so searches never ask for them."""

    def lag(self, target: str) -> Lag:
        """How far a target is behind, by the progress that was noted of it."""
        ...


@runtime_checkable
class IndexTarget(Protocol):
    """Something that follows the log. Applying the same batch twice is harmless."""

    @property
    def name(self) -> str:
        """The name under which the truth keeps its marks, pointer and progress."""
        ...

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """Which of a row's numbers and columns the target holds."""
        ...

    @property
    def patience(self) -> Patience:
        """When pending changes are due."""
        ...

    def base(self) -> TargetBase:
        """Where the target stands, read from the target itself.

        Raises:
            Corrupt: It can't be read and has to be reset.
        """
        ...

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """Bring the target forward; its clocks never claim what is not visible."""
        ...

    def reset(self) -> None:
        """Forget everything: the next base is empty. Searches keep what they have open."""
        ...

    def close(self) -> None:
        """Let others apply: give back locks and files. May be called twice."""
        ...


@runtime_checkable
class VectorGaps(Protocol):
    """Which memories wait for their vectors, over all namespaces."""

    def without_vectors(self, limit: int) -> tuple[StoredRow, ...]:
        """Live rows with a chunk that has none, grouped by namespace, at most ``limit``."""
        ...
