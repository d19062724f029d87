"""The keyword index in a folder keeps the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from tests.contract.keyword_index import KeywordIndexContract, KeywordPair


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
