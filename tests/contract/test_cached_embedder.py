"""A cache in front of an embedder is an embedder."""

import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.embedding_cache import CachedEmbedder
from memory_tool.ports import Embedder
from tests.contract.embedder import EmbedderContract


class TestCachedEmbedder(EmbedderContract):
    """A cache that keeps everything these tests ask for."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """In front of the embedder without a model."""
        return CachedEmbedder(HashingEmbedder())


class TestCacheOfNothing(EmbedderContract):
    """A cache that is switched off."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """Size zero."""
        return CachedEmbedder(HashingEmbedder(), size=0)
