"""The vector index in a folder of generations, as searches see it."""

import threading
from collections.abc import Callable
from pathlib import Path

from memory_tool.adapters.faiss_files import OpenedGeneration, open_generation
from memory_tool.adapters.faiss_generation import (
    CACHE_BYTES,
    BlockCache,
    FaissGeneration,
    searchable,
)
from memory_tool.adapters.faiss_manifest import Manifest
from memory_tool.errors import Corrupt
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Pointer
from memory_tool.ports import VectorIndex


class FaissVectorIndex(VectorIndex):
    """See :class:`memory_tool.ports.VectorIndex`. It never writes."""

    def __init__(
        self,
        root: Path,
        *,
        target: str,
        store: str,
        space: Callable[[], EmbeddingSpace | None],
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Serve generations below ``root``.

        Args:
            root: The folder that a :class:`FaissTarget` writes to; it may still be missing.
            target: See :attr:`target`.
            store: Identity of the store; generations of another one are refused.
            space: The store's embedding space, asked at each view.
            cache_bytes: Most bytes of floats kept of namespaces that are scanned.
        """
        self._root = root
        self._target = target
        self._store = store
        self._space = space
        self._cache_bytes = cache_bytes
        self._loading = threading.Lock()
        self._none = self._empty()
        self._current: tuple[Pointer | None, FaissGeneration] = (None, self._none)

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.VectorIndex.target`."""
        return self._target

    def view(self, pointer: Pointer | None) -> FaissGeneration:
        """See :meth:`memory_tool.ports.VectorIndex.view`."""
        if pointer is None:
            return self._none
        loaded, generation = self._current
        if loaded != pointer:
            generation = self._load(pointer)
        self._check_space(generation.manifest)
        return generation

    def scrub(self) -> None:
        """Read all vectors of the generation that was viewed last; takes 0.3 s for a gigabyte.

        Raises:
            Corrupt: Some are damaged. Searches raise it too as soon as they meet them.
        """
        _, generation = self._current
        generation.verify_vectors()

    def close(self) -> None:
        """See :meth:`memory_tool.ports.VectorIndex.close`. A view that is held stays usable."""
        with self._loading:
            self._current = (None, self._none)

    def _load(self, pointer: Pointer) -> FaissGeneration:
        # The old generation is searched meanwhile; both are in memory until it is let go.
        with self._loading:
            loaded, previous = self._current
            if loaded == pointer:
                return previous
            opened = open_generation(self._root, pointer)
            if opened.manifest.store != self._store:
                message = f"generation {pointer.generation} belongs to another store"
                raise Corrupt(message)
            self._check_space(opened.manifest)
            generation = searchable(opened, cache_bytes=self._cache_bytes, previous=previous)
            # Who still reads by an older pointer must not make the others load again.
            if loaded is None or loaded.generation < pointer.generation:
                self._current = (pointer, generation)
            return generation

    def _check_space(self, manifest: Manifest) -> None:
        space = self._space()
        if manifest.rows and manifest.space != space:
            held = manifest.space.name if manifest.space else None
            wanted = space.name if space else None
            message = (
                f"generation {manifest.generation} holds the embedding space {held}, not {wanted}"
            )
            raise Corrupt(message)

    def _empty(self) -> FaissGeneration:
        opened = OpenedGeneration.empty(self._root)
        return FaissGeneration(opened, {}, cache=BlockCache(0))
