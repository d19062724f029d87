"""Lies that an index believes: batches that say other than the truth, and forced documents."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from elasticsearch import Elasticsearch

from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.adapters.elasticsearch_layout import KeywordLayout, VectorLayout, documents
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_spaces import space_folder
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.inspection_ports import TruthSide
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import ChangeRow, TargetBase
from memory_tool.settings import Settings
from memory_tool.space_values import FIRST_SPACE
from memory_tool.text.tokenise import TOKENISER_VERSION
from memory_tool.tool import MemoryTool

NOTHING = TargetBase(mark=None, clocks={})


class Liar(Protocol):
    """A way to lie to one index."""

    @property
    def name(self) -> str:
        """The target."""
        ...

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """What it holds."""
        ...

    def tell(self, *rows: ChangeRow, clocks: Mapping[int, int] | None = None) -> None:
        """Say that these rows are so, and that it stands there."""
        ...

    def rebuilt_as(self, *, store: str | None = None, space: EmbeddingSpace | None = None) -> None:
        """Build it anew, but as of another store or in another space."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLiar:
    """Lies by the target's own batches."""

    target: IndexTarget
    log: ChangeLog

    @property
    def name(self) -> str:
        """See :attr:`Liar.name`."""
        return self.target.name

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """See :attr:`Liar.kind`."""
        return self.target.kind

    def tell(self, *rows: ChangeRow, clocks: Mapping[int, int] | None = None) -> None:
        """See :meth:`Liar.tell`."""
        base = self.target.base()
        ordered = sorted(rows, key=lambda row: (row.ns_id, row.nseq))
        with self.log.changes(self.name, self.kind, base=base, limit=1) as batch:
            lie = dataclasses.replace(batch, rows=iter(ordered), clocks=clocks or {})
            self.target.apply(lie, self.log)
        self.target.close()

    def rebuilt_as(self, *, store: str | None = None, space: EmbeddingSpace | None = None) -> None:
        """See :meth:`Liar.rebuilt_as`."""
        self.target.reset()
        with self.log.changes(self.name, self.kind, base=NOTHING, limit=10**9) as batch:
            lie = dataclasses.replace(batch, store=store or batch.store, space=space or batch.space)
            self.target.apply(lie, self.log)
        self.target.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLiar(BatchLiar):
    """Lies to an index on a server: it refuses versions that it has, so documents are forced."""

    client: Elasticsearch
    layout: KeywordLayout | VectorLayout
    space: EmbeddingSpace | None

    def tell(self, *rows: ChangeRow, clocks: Mapping[int, int] | None = None) -> None:
        """See :meth:`Liar.tell`."""
        if clocks is not None:
            BatchLiar.tell(self, clocks=clocks)
        operations = [part for row in rows for part in self._forced(row)]
        pointer = self.log.pointer(self.name)
        if operations and pointer is not None:
            answer = self.client.bulk(
                operations=operations, index=f"{pointer.locator}-write", refresh=True
            )
            if answer["errors"]:
                raise RuntimeError(answer["items"])

    def lose(self) -> None:
        """Delete the index that is read."""
        pointer = self.log.pointer(self.name)
        if pointer is not None:
            self.client.indices.delete(index=pointer.locator)

    def _forced(self, row: ChangeRow) -> Iterator[Mapping[str, object]]:
        for document in documents(row, self.layout, space=self.space):
            action = {
                "_id": document.id,
                "routing": document.routing,
                "version": document.version,
                "version_type": "external_gte",
            }
            yield {"index": action}
            yield document.fields


def folder_liars(settings: Settings, tool: MemoryTool, *, truth: TruthSide) -> Sequence[Liar]:
    """Those of the indexes in the data folder."""
    log, stores = truth.log, tool.stores
    vectors, words = stores.vector_index.target, stores.keyword_index.target
    policy = GraphPolicy(above=settings.hnsw_min_rows, threads=1)
    return (
        BatchLiar(
            target=FaissTarget(
                space_folder(settings.data_dir / "vectors", _identity(truth), space=FIRST_SPACE),
                name=vectors,
                pointer=lambda: log.pointer(vectors),
                policy=policy,
            ),
            log=log,
        ),
        BatchLiar(
            target=TantivyTarget(
                settings.data_dir / "keywords", name=words, tokeniser=TOKENISER_VERSION
            ),
            log=log,
        ),
    )


def server_liars(settings: Settings, tool: MemoryTool, *, truth: TruthSide) -> Sequence[Liar]:
    """Those of the indexes on an Elasticsearch."""
    indexes = ElasticsearchIndexes(settings, store=_identity(truth), tokeniser=TOKENISER_VERSION)
    client = Elasticsearch(settings.elasticsearch_url.split(","))
    layouts: tuple[KeywordLayout | VectorLayout, ...] = (
        VectorLayout(),
        KeywordLayout(tokeniser=TOKENISER_VERSION),
    )
    return tuple(
        DocumentLiar(
            target=indexes.target(layout.kind, log=truth.log),
            log=truth.log,
            client=client,
            layout=layout,
            space=tool.space if layout.kind == "vector" else None,
        )
        for layout in layouts
    )


def _identity(truth: TruthSide) -> str:
    with truth.log.changes("drift", "keyword", base=NOTHING, limit=1) as batch:
        return batch.store
