"""A close look at the generation that searches read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from memory_tool.adapters.faiss_files import OpenedGeneration, open_generation
from memory_tool.adapters.faiss_inventory import FaissContents, FaissInventory
from memory_tool.adapters.faiss_manifest import Manifest
from memory_tool.findings import Drift, Finding
from memory_tool.inspection_ports import Inspected, Look
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Pointer
from memory_tool.ports import VectorIndex


class FaissInspection(Inspected):
    """See :class:`memory_tool.inspection_ports.Inspected`. A generation never changes."""

    def __init__(
        self,
        root: Path,
        index: VectorIndex,
        *,
        store: str,
        pointer: Callable[[str], Pointer | None],
        space: Callable[[], EmbeddingSpace | None],
    ) -> None:
        """Touch nothing yet.

        Args:
            root: The folder of the generations.
            index: The index as searches see it.
            store: Identity of the store that they have to belong to.
            pointer: Tells the generation to read, by target.
            space: The store's embedding space.
        """
        self._root = root
        self._index = index
        self._store = store
        self._pointer = pointer
        self._space = space

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.inspection_ports.Inspected.target`."""
        return self._index.target

    @property
    def kind(self) -> Literal["vector"]:
        """``vector``."""
        return "vector"

    @contextmanager
    def look(self) -> Iterator[Look]:
        """See :meth:`memory_tool.inspection_ports.Inspected.look`."""
        pointer = self._pointer(self.target)
        opened = (
            open_generation(self._root, pointer) if pointer else OpenedGeneration.empty(self._root)
        )
        yield Look(
            inventory=FaissInventory(opened),
            contents=FaissContents(opened),
            faults=tuple(self._faults(opened.manifest)),
            vectors=lambda: self._index.view(pointer),
        )

    def _faults(self, manifest: Manifest) -> Iterator[Finding]:
        if manifest.store and manifest.store != self._store:
            yield Finding(
                drift=Drift.FOREIGN_STORE,
                target=self.target,
                found=manifest.store,
                expected=self._store,
            )
        space = self._space()
        if manifest.rows and manifest.space != space:
            yield Finding(
                drift=Drift.OTHER_SPACE,
                target=self.target,
                found=manifest.space.name if manifest.space else "none",
                expected=space.name if space else "none",
            )
