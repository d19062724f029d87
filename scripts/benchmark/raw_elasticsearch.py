"""The limits on servers: the plain client, asking and filling indices by itself."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from elasticsearch import Elasticsearch, helpers

from memory_tool.adapters.elasticsearch_layout import Document
from memory_tool.adapters.elasticsearch_vector_index import EFFORT, RESCORED
from memory_tool.model import Vector
from memory_tool.text.tokenise import tokenise
from scripts.benchmark.questions import DEPTH

_PATIENT: Final = 600.0
_PAGE: Final = 10

Search = tuple[Mapping[str, Any], Mapping[str, Any]]


class RawElasticsearch:
    """Somebody who knows where the product's documents are, and does no more than ask for them."""

    def __init__(self, url: str) -> None:
        """Connect."""
        self.client = Elasticsearch(url.split(","), request_timeout=_PATIENT)

    def fill(self, documents: Sequence[Document], definition: Mapping[str, Any]) -> float:
        """Seconds of ``helpers.bulk`` of the documents into a new index, until they can be found.

        The index is made as the product makes its own, and removed again.
        """
        index = f"threefold-bench-raw-{uuid.uuid4().hex}"
        settings = {**definition["settings"], "number_of_replicas": 0, "refresh_interval": "30s"}
        self.client.indices.create(
            index=index, settings={"index": settings}, mappings=definition["mappings"]
        )
        try:
            start = time.perf_counter()
            helpers.bulk(self.client, _actions(documents, index))
            self.client.indices.refresh(index=index)
            return time.perf_counter() - start
        finally:
            self.client.indices.delete(index=index)

    def ask(self, searches: Sequence[Search], page: Callable[[Sequence[str]], None]) -> None:
        """All searches in one request; then the page of the first one's best."""
        lines = [line for search in searches for line in search]
        answers = self.client.msearch(searches=lines)["responses"]
        hits = answers[0]["hits"]["hits"][:_PAGE]
        page([hit["_id"].split("/")[1] for hit in hits])

    def wait_for_merges(self) -> None:
        """Wait until no segments of ours are being merged, or for ten minutes."""
        deadline = time.monotonic() + _PATIENT
        while time.monotonic() < deadline:
            figures = self.client.indices.stats(index="threefold-bench-*", metric="merge")
            if not figures["_all"]["total"]["merges"]["current"]:
                return
            time.sleep(1)

    def sizes(self, index: str) -> tuple[int, int]:
        """Bytes on disk and segments of an index."""
        figures = self.client.indices.stats(index=index)["_all"]["primaries"]
        return figures["store"]["size_in_bytes"], figures["segments"]["count"]

    def graph_bytes(self, index: str) -> int:
        """What the node wants in its page cache to search vectors: codes and graphs."""
        figures = self.client.indices.stats(index=index, metric="dense_vector")
        held = figures["_all"]["primaries"]["dense_vector"]["off_heap"]
        return int(held["total_veq_size_bytes"]) + int(held["total_vex_size_bytes"])

    def remove(self, prefix: str) -> None:
        """Delete the indices of that prefix, by their names."""
        for name in self.client.indices.get(index=f"{prefix}*"):
            self.client.indices.delete(index=name)

    def close(self) -> None:
        """Disconnect."""
        self.client.close()


def _actions(documents: Sequence[Document], index: str) -> Iterator[dict[str, Any]]:
    for document in documents:
        yield {
            "_index": index,
            "_id": document.id,
            "routing": document.routing,
            "_source": document.fields,
        }


def nearest(index: str, ns_id: int, *, vector: Vector) -> Search:
    """The vectors that are nearest within a namespace: as deep and as exact as the product's."""
    clause = {
        "field": "vector",
        "query_vector": vector.tolist(),
        "k": DEPTH,
        "num_candidates": EFFORT * DEPTH,
        "rescore_vector": {"oversample": RESCORED},
        "filter": {"term": {"ns": str(ns_id)}},
    }
    return _header(index, ns_id), {"knn": clause, "size": DEPTH, "_source": False}


def matching(index: str, ns_id: int, *, question: str) -> Search:
    """The texts of a namespace that match best, by their words and by their tags."""
    words = " ".join(dict.fromkeys(tokenise(question).words))
    clause = {
        "bool": {
            "should": [{"match": {"words": words}}, {"match": {"extra": words}}],
            "minimum_should_match": 1,
            "filter": {"term": {"ns": str(ns_id)}},
        }
    }
    body = {"query": clause, "size": DEPTH, "_source": False, "track_total_hits": False}
    return _header(index, ns_id), body


def _header(index: str, ns_id: int) -> Mapping[str, Any]:
    return {"index": index, "routing": str(ns_id)}


class RawPages:
    """Pages of content by a connection that no wall stops."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        """Keep the connection, of a superuser to the product's database."""
        self._connection = connection
        connection.prepare_threshold = 1

    def fetch(self, ids: Sequence[str]) -> None:
        """Content and metadata of some memories."""
        self._connection.execute(
            "SELECT id, content, metadata FROM threefold.memory WHERE id = ANY (%s::uuid[])",
            (list(ids),),
            binary=True,
        ).fetchall()

    def namespace(self, memory: str) -> int:
        """The number of the namespace that a memory is in."""
        row = self._connection.execute(
            "SELECT ns_id FROM threefold.memory WHERE id = %s::uuid", (memory,)
        ).fetchone()
        assert row is not None  # noqa: S101 - the caller holds a memory of it
        return int(str(row[0]))
