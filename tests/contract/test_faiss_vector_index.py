"""The vector index in a folder keeps the contract, with graphs and without."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import VectorHistory, VectorPair
from tests.contract.vector_index import VectorIndexContract
from tests.contract.vector_target import VectorTargetContract


class TestScannedVectorIndex(VectorIndexContract, VectorTargetContract):
    """Namespaces so small that they are scanned."""

    @pytest.fixture
    def pair(self, history: VectorHistory, tmp_path: Path) -> Iterator[VectorPair]:
        """Over a folder that is not there yet."""
        with Folder(root=tmp_path / "vectors", history=history).pair() as pair:
            yield pair


class TestGraphVectorIndex(VectorIndexContract, VectorTargetContract):
    """Graphs from two rows on."""

    @pytest.fixture
    def pair(self, history: VectorHistory, tmp_path: Path) -> Iterator[VectorPair]:
        """Over a folder that is not there yet."""
        with Folder(root=tmp_path / "vectors", history=history, graph_above=0).pair() as pair:
            yield pair


class TestCodedVectorIndex(VectorIndexContract):
    """Codes from two rows on, of the kind that needs fewest; `test_faiss_codes` has the others."""

    @pytest.fixture
    def pair(self, history: VectorHistory, tmp_path: Path) -> Iterator[VectorPair]:
        """Over a folder that is not there yet."""
        folder = Folder(
            root=tmp_path / "vectors", history=history, graph_above=0, vector_index="rabitq"
        )
        with folder.pair() as pair:
            yield pair
