"""What an Elasticsearch index of each kind looks like, and how rows become its documents.

A document is one chunk, named ``ns_id/memory/ordinal`` and versioned by the row's own number. A hit
is read from columns that say the same: reading names would open the stored text of each document,
which takes longer than finding them. What has to go becomes a document without
fields: a deletion would be forgotten after a minute, and a late write of an older version could
then bring the chunk back.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from memory_tool.adapters.elasticsearch_connection import Body
from memory_tool.bm25 import DEFAULT_FIELD_PARAMETERS, NOTHING, FieldParameters
from memory_tool.model import Chunk, EmbeddingSpace, MemoryId
from memory_tool.port_values import ChangeRow
from memory_tool.query import Candidate
from memory_tool.unit_vectors import check_unit

LAYOUT_VERSION: Final = 2
"""Changes with the fields or with what they mean; an index of another version is built again."""

GRAPH_LINKS: Final = 16
GRAPH_EFFORT: Final = 100
"""Links of a node of the vector graph (m) and candidates looked at when one is added."""

_PLACE: Final[Body] = {
    "ns": {"type": "keyword"},
    "memory": {"type": "keyword"},
    "ordinal": {"type": "integer", "index": False},
    "control": {"type": "object", "enabled": False},
}
"""The fields of every index: where a chunk belongs, and what the index says of itself."""

HITS: Final[Body] = {
    "stored_fields": "_none_",
    "docvalue_fields": ["ns", "memory", "ordinal", "_version"],
    "track_total_hits": False,
}
"""How hits are to come, for the body of a search: as :func:`candidate` reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One chunk as the index has to hold it; without fields it has to go."""

    id: str
    routing: str
    version: int
    fields: Body = field(default_factory=dict)
    row: ChangeRow


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordLayout:
    """Tokens that we made ourselves, under an analyzer that only parts them at blanks.

    Attributes:
        tokeniser: Version of the tokeniser that makes them.
        parameters: The knobs of BM25.
    """

    tokeniser: int
    parameters: FieldParameters = DEFAULT_FIELD_PARAMETERS
    kind: Literal["keyword"] = "keyword"

    def settings(self) -> Body:
        """The BM25 of each field."""
        return {
            "similarity": {
                name: {"type": "BM25", "k1": knobs.k1, "b": knobs.b}
                for name, knobs in self.parameters.by_field().items()
            }
        }

    def made_of(self, space: EmbeddingSpace | None) -> Body:  # noqa: ARG002 - as the vector layout
        """What has to stay the same in an index."""
        return {"tokeniser": self.tokeniser}

    def properties(self, space: EmbeddingSpace | None) -> Body:  # noqa: ARG002 - as the vector layout
        """The fields."""
        tokens: dict[str, Body] = {
            name: {
                "type": "text",
                "analyzer": "whitespace",
                "similarity": name,
                "index_options": "freqs",
            }
            for name in self.parameters.by_field()
        }
        return {**_PLACE, **tokens}

    def fields(self, row: ChangeRow, chunk: Chunk) -> Body | None:
        """The tokens of a chunk; none where nothing could find it."""
        if not (chunk.words or chunk.bigrams or row.extra):
            return None
        return {
            "words": chunk.words or NOTHING,
            "bigrams": chunk.bigrams or NOTHING,
            "extra": row.extra or NOTHING,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLayout:
    """Unit vectors in a graph over one byte for each dimension.

    Inner product, not cosine: stored vectors are half floats, whose length is 1 only nearly.
    """

    kind: Literal["vector"] = "vector"

    def settings(self) -> Body:
        """Nothing of its own."""
        return {}

    def made_of(self, space: EmbeddingSpace | None) -> Body:
        """What has to stay the same in an index."""
        return {"space": space.name if space else None}

    def properties(self, space: EmbeddingSpace | None) -> Body:
        """The fields; no vector where no space is known yet."""
        if space is None:
            return _PLACE
        vector = {
            "type": "dense_vector",
            "dims": space.dimension,
            "similarity": "max_inner_product",
            "index_options": {
                "type": "int8_hnsw",
                "m": GRAPH_LINKS,
                "ef_construction": GRAPH_EFFORT,
            },
        }
        return {**_PLACE, "vector": vector}

    def fields(self, row: ChangeRow, chunk: Chunk) -> Body | None:  # noqa: ARG002 - as the keyword layout
        """The vector of a chunk; none where the embedder owes it."""
        if chunk.embedding is None:
            return None
        return {"vector": chunk.embedding.tolist()}


Layout = KeywordLayout | VectorLayout


def definition(layout: Layout, space: EmbeddingSpace | None) -> Body:
    """Settings and mappings of an index, as they are compared: without shards and replicas.

    Nothing in it is a default of the server, which would leave it out when asked for it.
    """
    return {
        "settings": layout.settings(),
        "mappings": {
            "dynamic": "strict",
            "_routing": {"required": True},
            # Never read back, and a vector's text form is five times its size.
            "_source": {"excludes": ["vector"]},
            "_meta": {"layout": LAYOUT_VERSION, **layout.made_of(space)},
            "properties": layout.properties(space),
        },
    }


def fingerprint(wanted: Body) -> str:
    """What tells one definition from another: 16 hexadecimal digits."""
    canonical = json.dumps(wanted, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def mappings_of(wanted: Body) -> Body:
    """The mappings of a definition, with its fingerprint: who reads them knows whose they are."""
    mappings = wanted["mappings"]
    return {**mappings, "_meta": {**mappings["_meta"], "fingerprint": fingerprint(wanted)}}


def differences(wanted: Body, found: Body) -> list[str]:
    """Where an index differs from what it shall be; what it has beside that doesn't matter."""
    return list(_differences(wanted, found, at=""))


def _differences(wanted: object, found: object, *, at: str) -> Iterator[str]:
    if isinstance(wanted, Mapping):
        there = found if isinstance(found, Mapping) else {}
        for name, value in wanted.items():
            yield from _differences(value, there.get(name), at=f"{at}.{name}".lstrip("."))
    elif _plain(wanted) != _plain(found):
        yield f"{at} is {_plain(found)}, not {_plain(wanted)}"


def _plain(value: object) -> object:
    """A value as settings come back: numbers and truths as texts, what is left out as nothing."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: None}[value]
    if isinstance(value, int | float):
        return str(float(value))
    try:
        return str(float(str(value)))
    except ValueError:
        return value


def documents(
    row: ChangeRow, layout: Layout, *, space: EmbeddingSpace | None
) -> Iterator[Document]:
    """Every document of a row: its chunks, and an empty one for each that it once had more.

    Raises:
        InvalidEmbedding: A vector is none of the space.
    """
    living = {chunk.ordinal: chunk for chunk in row.chunks} if row.live else {}
    for ordinal in range(max(row.chunk_high, len(living))):
        chunk = living.get(ordinal)
        if chunk is not None and chunk.embedding is not None and space is not None:
            check_unit(chunk.embedding, space.dimension)
        fields = layout.fields(row, chunk) if chunk else None
        place = {"ns": str(row.ns_id), "memory": row.memory_id, "ordinal": ordinal}
        yield Document(
            id=f"{row.ns_id}/{row.memory_id}/{ordinal}",
            routing=str(row.ns_id),
            version=row.version,
            fields={**place, **fields} if fields else {},
            row=row,
        )


def candidate(hit: Mapping[str, Any], score: float) -> Candidate:
    """The chunk that a hit names, asked for as :data:`HITS` says."""
    fields = hit["fields"]
    (ns_id,), (memory_id,), (ordinal,) = fields["ns"], fields["memory"], fields["ordinal"]
    return Candidate(int(ns_id), memory_id, ordinal, fields["_version"][0], score)


def among(ns_ids: Sequence[int], within: frozenset[MemoryId] | None) -> list[Body]:
    """The conditions that keep a search to these namespaces and memories."""
    named: list[Body] = [{"terms": {"ns": [str(ns_id) for ns_id in dict.fromkeys(ns_ids)]}}]
    return named if within is None else [*named, {"terms": {"memory": sorted(within)}}]


ROUTED: Final = 64
"""Most namespaces whose shards are named; more are on nearly all shards anyway."""


def routing(ns_ids: Sequence[int]) -> Body:
    """Where the documents of these namespaces are, for the header of a search."""
    named = dict.fromkeys(ns_ids)
    return {"routing": ",".join(map(str, named))} if len(named) <= ROUTED else {}
