"""The port of export and import: all that a store knows of its memories, as values that travel.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from memory_tool.model import Json, StoredRow
from memory_tool.port_values import Attached
from memory_tool.scope import Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChunk:
    """Where a chunk lies in its text; its vector as half floats, little endian, in base 64."""

    start: int
    stop: int
    language: str
    vector: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMemory:
    """A memory with everything that is known of it, its text whole.

    ``space`` names the space of the chunks' vectors; ``None`` where they were not asked for.
    """

    row: StoredRow
    chunks: tuple[ExportedChunk, ...]
    attached: Attached
    space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A node of a namespace's tree; ``parent`` is the place of its parent in the list before it."""

    name: str
    parent: int | None
    properties: Mapping[str, Json]


class Exchange(Protocol):
    """A store that can be read out and filled memory by memory."""

    def identity(self) -> str:
        """What tells the store from every other: 32 hexadecimal digits."""
        ...

    def namespaces(self) -> tuple[Namespace, ...]:
        """Every namespace, the oldest first."""
        ...

    def memories(
        self, namespace: Namespace, *, with_vectors: bool
    ) -> AbstractContextManager[Iterator[ExportedMemory]]:
        """The memories of a namespace that are neither deleted nor expired, at one moment.

        In the order of their numbers; they are read while they are taken.

        Raises:
            Corrupt: An archived text can't be read.
        """
        ...

    def tree(self, namespace: Namespace) -> tuple[TreeNode, ...]:
        """The nodes of a namespace's tree."""
        ...

    def grow(self, namespace: Namespace, nodes: Sequence[TreeNode]) -> None:
        """Add the nodes that the namespace's tree lacks; the namespace is made if it is new."""
        ...
