"""The vector index in a folder keeps the contract, with graphs and without."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_vector_index import FaissVectorIndex
from tests.contract.vector_history import TARGET, VectorHistory, VectorPair
from tests.contract.vector_index import VectorIndexContract
from tests.contract.vector_target import VectorTargetContract


def folder_pair(root: Path, history: VectorHistory, *, graph_above: int) -> Iterator[VectorPair]:
    """An index and its target over one folder."""
    index = FaissVectorIndex(root, target=TARGET, store=history.store, space=lambda: history.space)
    target = FaissTarget(
        root,
        name=TARGET,
        pointer=lambda: history.pointer(TARGET),
        policy=GraphPolicy(above=graph_above, threads=1),
    )
    yield VectorPair(index=index, target=target, history=history)
    index.close()


class TestScannedVectorIndex(VectorIndexContract, VectorTargetContract):
    """Namespaces so small that they are scanned."""

    @pytest.fixture
    def pair(self, history: VectorHistory, tmp_path: Path) -> Iterator[VectorPair]:
        """Over an empty folder."""
        yield from folder_pair(tmp_path / "vectors", history, graph_above=10_000)


class TestGraphVectorIndex(VectorIndexContract, VectorTargetContract):
    """Graphs from two rows on."""

    @pytest.fixture
    def pair(self, history: VectorHistory, tmp_path: Path) -> Iterator[VectorPair]:
        """Over an empty folder."""
        yield from folder_pair(tmp_path / "vectors", history, graph_above=0)
