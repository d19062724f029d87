"""Keyword indexes as the product makes and asks them, filled by hand with any tokens."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import tantivy
from elasticsearch import Elasticsearch, helpers

from memory_tool.adapters.elasticsearch_layout import KeywordLayout, definition, documents
from memory_tool.adapters.tantivy_control import Stamp
from memory_tool.adapters.tantivy_keyword_index import TantivyView
from memory_tool.adapters.tantivy_schema import SCHEMA_VERSION, chunk_documents, prepare, schema
from memory_tool.bm25 import DEFAULT_WEIGHTS
from memory_tool.port_values import ChangeRow, KeywordQuery
from memory_tool.text.tokenise import TOKENISER_VERSION

_WRITER_BYTES: Final = 256 << 20
_PATIENT: Final = 600.0
_NS_ID: Final = 1


class SearchedIndex(Protocol):
    """A filled index; ``size`` in bytes on disk, in one segment."""

    size: int

    def search(self, query: KeywordQuery, depth: int) -> int:
        """How many hits a search has, at most ``depth``."""

    def close(self) -> None:
        """Remove it."""


class KeywordBench(Protocol):
    """Makes indexes of one kind."""

    name: str

    def filled(self, rows: Iterator[ChangeRow]) -> SearchedIndex:
        """A new index of these rows."""


class _TantivyIndex:
    """The product's schema and view over one commit."""

    def __init__(self, folder: Path, rows: Iterator[ChangeRow]) -> None:
        folder.mkdir()
        index = tantivy.Index(schema(), path=str(folder))
        prepare(index)
        writer = index.writer(_WRITER_BYTES, num_threads=1)
        for row in rows:
            for document in chunk_documents(row):
                writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self.size = sum(file.stat().st_size for file in folder.iterdir())
        stamp = Stamp(
            mark="",
            store="",
            tokeniser=TOKENISER_VERSION,
            schema=SCHEMA_VERSION,
            # Others are there too, so that a search has to keep to its own.
            namespaces=2,
        )
        self._view = TantivyView(index.searcher(), stamp, DEFAULT_WEIGHTS)

    def search(self, query: KeywordQuery, depth: int) -> int:
        return len(self._view.search(query, [_NS_ID], depth=depth))

    def close(self) -> None:
        """The folder goes with the run's."""


class TantivyBench:
    """Tantivy, below a folder."""

    name = "Tantivy"

    def __init__(self, folder: Path) -> None:
        """Make indexes below ``folder``."""
        self._folder = folder

    def filled(self, rows: Iterator[ChangeRow]) -> SearchedIndex:
        """See :meth:`KeywordBench.filled`."""
        return _TantivyIndex(self._folder / uuid.uuid4().hex, rows)


class _ElasticsearchIndex:
    """The product's mapping, one shard, merged into one segment."""

    def __init__(self, client: Elasticsearch, rows: Iterator[ChangeRow]) -> None:
        self._client = client
        self._index = f"threefold-bench-pruning-{uuid.uuid4().hex}"
        layout = KeywordLayout(tokeniser=TOKENISER_VERSION)
        wanted = definition(layout, None)
        settings = {**wanted["settings"], "number_of_shards": 1, "number_of_replicas": 0}
        client.indices.create(
            index=self._index, settings={"index": settings}, mappings=wanted["mappings"]
        )
        helpers.bulk(
            client,
            (
                {
                    "_index": self._index,
                    "_id": document.id,
                    "routing": document.routing,
                    "_source": document.fields,
                }
                for row in rows
                for document in documents(row, layout, space=None)
            ),
        )
        client.indices.forcemerge(index=self._index, max_num_segments=1, wait_for_completion=True)
        client.indices.flush(index=self._index, force=True)
        client.indices.refresh(index=self._index)
        time.sleep(1)
        figures = client.indices.stats(index=self._index, metric="store")
        self.size = int(figures["_all"]["primaries"]["store"]["size_in_bytes"])

    def search(self, query: KeywordQuery, depth: int) -> int:
        asked = {
            "words": (query.words, DEFAULT_WEIGHTS.words),
            "bigrams": (query.bigrams, DEFAULT_WEIGHTS.bigrams),
        }
        should = [
            {"match": {field: {"query": " ".join(terms), "boost": weight}}}
            for field, (terms, weight) in asked.items()
            if terms
        ]
        answer = self._client.search(
            index=self._index,
            query={
                "bool": {
                    "should": should,
                    "minimum_should_match": 1,
                    "filter": {"term": {"ns": str(_NS_ID)}},
                }
            },
            size=depth,
            source=False,
            track_total_hits=False,
        )
        return len(answer["hits"]["hits"])

    def close(self) -> None:
        self._client.indices.delete(index=self._index)


class ElasticsearchBench:
    """Elasticsearch, at an address."""

    name = "Elasticsearch"

    def __init__(self, url: str) -> None:
        """Connect."""
        self._client = Elasticsearch(url.split(","), request_timeout=_PATIENT)

    def filled(self, rows: Iterator[ChangeRow]) -> SearchedIndex:
        """See :meth:`KeywordBench.filled`."""
        return _ElasticsearchIndex(self._client, rows)
