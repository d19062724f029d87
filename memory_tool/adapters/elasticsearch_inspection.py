"""A close look at the Elasticsearch index that searches read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from memory_tool.adapters.elasticsearch_control import Stamp, check_lineage, lineage_of
from memory_tool.adapters.elasticsearch_inventory import elasticsearch_inventory
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import Layout, definition, fingerprint
from memory_tool.adapters.elasticsearch_vector_index import ElasticsearchVectorIndex
from memory_tool.empty_inventory import EmptyInventory
from memory_tool.findings import Drift, Finding
from memory_tool.inspection_ports import Inspected, Look
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Pointer


class ElasticsearchInspection(Inspected):
    """See :class:`memory_tool.inspection_ports.Inspected`. Vectors can't be read back from it."""

    def __init__(
        self,
        index: ElasticsearchKeywordIndex | ElasticsearchVectorIndex,
        *,
        layout: Layout,
        store: str,
        pointer: Callable[[str], Pointer | None],
        space: Callable[[], EmbeddingSpace | None],
    ) -> None:
        """Ask nothing yet.

        Args:
            index: The index as searches see it.
            layout: What it holds.
            store: Identity of the store that it has to belong to.
            pointer: Tells the index to read, by target.
            space: The store's embedding space.
        """
        self._index = index
        self._connection = index.generations.connection
        self._layout = layout
        self._store = store
        self._pointer = pointer
        self._space = space

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.inspection_ports.Inspected.target`."""
        return self._index.target

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """See :attr:`memory_tool.inspection_ports.Inspected.kind`."""
        return self._layout.kind

    @contextmanager
    def look(self) -> Iterator[Look]:
        """See :meth:`memory_tool.inspection_ports.Inspected.look`."""
        pointer = self._pointer(self.target)
        if pointer is None:
            yield Look(inventory=EmptyInventory(), contents=None, faults=())
            return
        with elasticsearch_inventory(self._connection, pointer.locator) as inventory:
            stamp = inventory.control.stamp
            check_lineage(stamp, lineage_of(self._connection, pointer.locator))
            index = self._index
            look = Look(inventory=inventory, contents=None, faults=tuple(self._faults(stamp)))
            if isinstance(index, ElasticsearchVectorIndex):
                yield replace(look, vectors=lambda: index.view(pointer))
            else:
                yield replace(look, words=lambda: index.view(pointer))

    def _faults(self, stamp: Stamp) -> Iterator[Finding]:
        if stamp.store != self._store:
            yield Finding(
                drift=Drift.FOREIGN_STORE,
                target=self.target,
                found=stamp.store,
                expected=self._store,
            )
        space = self._space()
        expected = fingerprint(definition(self._layout, space))
        if stamp.fingerprint != expected:
            is_space = self._layout.kind == "vector"
            yield Finding(
                drift=Drift.OTHER_SPACE if is_space else Drift.OTHER_DEFINITION,
                target=self.target,
                found=f"made by definition {stamp.fingerprint}",
                expected=f"definition {expected}" + (f" of {space.name}" if space else ""),
            )
