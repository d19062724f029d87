"""The embedder without a model keeps the contract, and is the same everywhere."""

import numpy as np
import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.ports import Embedder
from tests.contract.embedder import EmbedderContract


class TestHashingEmbedder(EmbedderContract):
    """Directions from SHAKE-128."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """One of 64 dimensions."""
        return HashingEmbedder()


def test_vectors_are_the_same_on_every_machine() -> None:
    """A test with a fixed ranking must not depend on Python's hash seed or the platform."""
    (row,) = HashingEmbedder(dimension=8).embed_passages(["memory 记忆"])
    assert np.sign(row).tolist() == [1, -1, 1, 1, -1, 1, 1, 1]


def test_similar_texts_lie_closer_than_unrelated_ones() -> None:
    """Unit tests of the read path need a ranking that people can foresee."""
    tea, likes_tea, other = HashingEmbedder(dimension=256).embed_passages(
        ["she likes green tea", "She likes  tea", "张先生喜欢蓝色系的产品"]
    )
    assert float(tea @ likes_tea) > 0.6
    assert abs(float(tea @ other)) < 0.3


@pytest.mark.parametrize("dimension", [1, 7, 64, 1000])
def test_any_dimension_can_be_asked_for(dimension: int) -> None:
    """Stores are tested at the dimensions of real models."""
    embedder = HashingEmbedder(dimension=dimension)
    assert embedder.space.name == f"hashing/{dimension}"
    assert embedder.embed_passages(["odd"]).shape == (1, dimension)
