"""The keyword index in a folder keeps the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.bm25 import FieldWeights
from tests.contract.keyword_index import KeywordIndexContract, KeywordPair
from tests.contract.keyword_rows import apply, chunk, find, row


class TestTantivyKeywordIndex(KeywordIndexContract):
    """Tantivy."""

    @pytest.fixture
    def pair(self, tmp_path: Path) -> Iterator[KeywordPair]:
        """An index and its target over an empty folder."""
        index = TantivyKeywordIndex(tmp_path / "keywords", target="folder-1", tokeniser=1)
        target = TantivyTarget(tmp_path / "keywords", name="folder-1", tokeniser=1)
        yield KeywordPair(index=index, target=target)
        target.close()
        index.close()

    def test_a_field_of_weight_0_is_not_searched(self, pair: KeywordPair, tmp_path: Path) -> None:
        """As in BM25 over the overlay, where a score of 0 is no candidate."""
        apply(pair.target, row(1, chunk("one", "茶叶"), extra="tea"))
        weights = FieldWeights(bigrams=0.0, extra=0.0)
        index = TantivyKeywordIndex(
            tmp_path / "keywords", target="folder-1", tokeniser=1, weights=weights
        )
        assert find(index.view(), "tea", bigrams="茶叶") == []
        assert find(pair.index.view(), "tea", bigrams="茶叶") == [1]
