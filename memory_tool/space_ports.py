"""The ports of a change of model: the store's spaces, the vectors that one lacks, what hangs on it.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from memory_tool.model import EmbeddingSpace, Json, MemoryId
from memory_tool.port_values import StoredVectors
from memory_tool.ports import Embedder
from memory_tool.space_values import EmbeddedText, FilledChunk, KnownSpace, Unembedded


@runtime_checkable
class SpaceCatalogue(Protocol):
    """Which spaces a store knows. At most one is active, and at most one more filled or built."""

    def spaces(self) -> tuple[KnownSpace, ...]:
        """All of them, by number."""
        ...

    def begin(self, space: EmbeddingSpace, *, embedder: str) -> KnownSpace:
        """Make ``space`` the next one, or go on with it: it is filled, built, or active already.

        A kept one is built on from where it stands.

        Raises:
            InputError: Another one is under way.
        """
        ...

    def build(self, number: int) -> None:
        """Let indexes follow a space that was filled. Harmless if they do."""
        ...

    def unready(self, number: int, *, own: str, most: int) -> tuple[str, ...]:
        """Indexes of a space that miss more than ``most`` numbers.

        Asked of ``own``, and of the index of everyone who follows the active space.
        """
        ...

    def switch(self, number: int) -> None:
        """Make a built space the active one, in one step; the one before is kept.

        Harmless if it is active.

        Raises:
            InputError: It is not built.
        """
        ...

    def outlasted(self) -> bool:
        """Whether every write that was under way at the latest switch has ended."""
        ...

    def close_others(self) -> None:
        """Let nothing follow, fill or switch to another space than the active one."""
        ...

    def forget_others(self) -> int:
        """Forget them with all that was known of their indexes; how many there were.

        Their vectors must be gone.
        """
        ...


@runtime_checkable
class VectorFiller(Protocol):
    """The vectors of chunks in one space or another, over all namespaces."""

    def clocks(self) -> Mapping[int, int]:
        """The clock of every namespace."""
        ...

    def count_missing(self, space: int) -> tuple[int, int]:
        """How many chunks of live rows lack a vector in this space, of how many."""
        ...

    def missing(self, space: int, ns_ids: Sequence[int]) -> Iterator[Unembedded]:
        """The live memories that lack one, read page by page, never all at once."""
        ...

    def fill(self, space: int, ns_id: int, *, chunks: Sequence[FilledChunk]) -> int:
        """Put down vectors for chunks that are still the same; how many that were.

        Where indexes follow the space, each memory takes a number, so that they hear of it.
        """
        ...

    def settle(self, ns_id: int) -> None:
        """Keep of a namespace's vectors only those of the active space."""
        ...


@runtime_checkable
class VectorSamples(Protocol):
    """Stored vectors of a space, to measure it by."""

    def sample(self, space: int, limit: int) -> StoredVectors:
        """Some stored vectors, of chunks taken at random."""
        ...

    def texts(self, space: int, limit: int) -> tuple[EmbeddedText, ...]:
        """The texts of some chunks taken at random, with their stored vectors."""
        ...

    def namespace(self, space: int, ns_id: int, *, limit: int) -> StoredVectors | None:
        """All stored vectors of a namespace; ``None`` when there are more than ``limit``."""
        ...


@runtime_checkable
class SideShelf(Protocol):
    """Where the contents of side structures are kept, for each space."""

    def keep(self, name: str, space: int, *, content: Json) -> None:
        """Keep a content in place of the one before."""
        ...

    def kept(self, name: str, space: int) -> Json:
        """The content that is kept; ``None`` for none."""
        ...


class SideStructure(Protocol):
    """What is made of the vectors of a space, and is worth nothing in another."""

    @property
    def name(self) -> str:
        """Under which name its content is kept."""
        ...

    def rebuild(
        self, space: KnownSpace, vectors: VectorSamples, *, embedder: Embedder, shelf: SideShelf
    ) -> None:
        """Make it for a space that is about to become active. Doing it twice is harmless."""
        ...

    def erase(self, targets: Sequence[tuple[int, MemoryId | None]]) -> None:
        """Forget what it holds of these, in every space.

        Each is (number of the namespace, memory), or a whole namespace with ``None``.
        """
        ...


@runtime_checkable
class SpaceKeeper(SpaceCatalogue, VectorFiller, VectorSamples, SideShelf, Protocol):
    """A record store whose model can be changed in place has all of it."""
