"""Indexes and targets over one folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memory_tool.adapters.faiss_codes import kinds_of
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_manifest import Block
from memory_tool.adapters.faiss_vector_index import FaissVectorIndex
from tests.contract.vector_history import TARGET, VectorHistory, VectorPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A data folder of a process that may be started again.

    Attributes:
        graph_above: Namespaces with more rows get a graph or codes.
        vector_index: Of which kind.
        effort: How well graphs are built.
    """

    root: Path
    history: VectorHistory = field(default_factory=VectorHistory)
    graph_above: int = 10_000
    vector_index: str = "auto"
    effort: int = 200

    def index(self, **options: int) -> FaissVectorIndex:
        """A new index."""
        return FaissVectorIndex(
            self.root,
            target=TARGET,
            store=self.history.store,
            space=lambda: self.history.space,
            **options,
        )

    def target(self) -> FaissTarget:
        """A new target."""
        return FaissTarget(
            self.root,
            name=TARGET,
            pointer=lambda: self.history.pointer(TARGET),
            policy=GraphPolicy(
                above=self.graph_above,
                kinds=kinds_of(self.vector_index),
                ef_construction=self.effort,
                threads=1,
            ),
        )

    def newest(self) -> Path:
        """Where the published generation lies."""
        return self.root / f"gen-{self.history.published(TARGET).generation:06}"

    def block(self, ns_id: int) -> Block:
        """What the published generation says of a namespace."""
        manifest = self.index().view(self.history.published(TARGET)).manifest
        return next(block for block in manifest.blocks if block.ns_id == ns_id)

    @contextmanager
    def pair(self) -> Iterator[VectorPair]:
        """A new index and a new target."""
        index = self.index()
        yield VectorPair(index=index, target=self.target(), history=self.history)
        index.close()
