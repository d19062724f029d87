"""The part of the composition root that opens indexes for a check."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_tool.adapters.elasticsearch_inspection import ElasticsearchInspection
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import VectorLayout
from memory_tool.adapters.elasticsearch_vector_index import ElasticsearchVectorIndex
from memory_tool.adapters.faiss_inspection import FaissInspection
from memory_tool.adapters.faiss_vector_index import FaissVectorIndex
from memory_tool.bootstrap_truth import Truth
from memory_tool.inspection_ports import Inspected, TruthSide
from memory_tool.model import EmbeddingSpace
from memory_tool.ports import KeywordIndex, VectorIndex
from memory_tool.text.tokenise import TOKENISER_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where the files of the indexes lie, if they are files."""

    vectors: Path
    keywords: Path


def inspected_of(
    folders: Folders,
    truth: Truth,
    *,
    space: Callable[[], EmbeddingSpace | None],
    vector_index: VectorIndex,
    keyword_index: KeywordIndex,
) -> tuple[Inspected, ...]:
    """The indexes that a check can look at; one of another make, which a caller gave, is not."""
    if truth.side is None:
        return ()
    parts = _Parts(folders, truth, truth.side, space=space)
    return (*parts.of_vectors(vector_index), *parts.of_keywords(keyword_index))


class _Parts:
    """What the inspections have in common."""

    def __init__(
        self,
        folders: Folders,
        truth: Truth,
        side: TruthSide,
        *,
        space: Callable[[], EmbeddingSpace | None],
    ) -> None:
        self._folders = folders
        self._store = truth.identity
        self._space = space
        self._pointer = side.log.pointer

    def of_vectors(self, index: VectorIndex) -> Iterator[Inspected]:
        """The vector index."""
        if isinstance(index, FaissVectorIndex):
            yield FaissInspection(
                self._folders.vectors,
                index,
                store=self._store,
                pointer=self._pointer,
                space=self._space,
            )
        elif isinstance(index, ElasticsearchVectorIndex):
            yield ElasticsearchInspection(
                index,
                layout=VectorLayout(),
                store=self._store,
                pointer=self._pointer,
                space=self._space,
            )

    def of_keywords(self, index: KeywordIndex) -> Iterator[Inspected]:
        """The keyword index."""
        if isinstance(index, ElasticsearchKeywordIndex):
            yield ElasticsearchInspection(
                index,
                layout=index.layout,
                store=self._store,
                pointer=self._pointer,
                space=self._space,
            )
            return
        try:
            from memory_tool.adapters.tantivy_inspection import TantivyInspection  # noqa: PLC0415 - extra `local`
            from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex  # noqa: PLC0415 - extra `local`
        except ImportError:
            return
        if isinstance(index, TantivyKeywordIndex):
            yield TantivyInspection(
                self._folders.keywords,
                index,
                store=self._store,
                tokeniser=TOKENISER_VERSION,
            )
