"""The fields of a Tantivy index, and how a chunk becomes a document and a candidate again.

A chunk is found by its tokens and read back from fast fields; none of its text is stored. The
control documents beside the chunks are the matter of ``tantivy_control``.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from tantivy import (
    DocAddress,
    Document,
    Index,
    Schema,
    SchemaBuilder,
    Searcher,
    TextAnalyzerBuilder,
    Tokenizer,
)

from memory_tool.bm25 import NOTHING
from memory_tool.model import MemoryId
from memory_tool.port_values import ChangeRow
from memory_tool.query import Candidate

SCHEMA_VERSION: Final = 2
"""Changes with the fields or with what they mean; an index of another version is rebuilt."""

_BLANKS: Final = "blanks"
_FAST_FIELDS: Final = ("ns_id", "id_high", "id_low", "ordinal", "version")


@functools.cache
def schema() -> Schema:
    """The fields. Ids are texts: deleting by a term of an unsigned field deletes nothing."""
    builder = SchemaBuilder()
    for name in ("memory", "ns", "control"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("words", "bigrams", "extra"):
        builder.add_text_field(name, tokenizer_name=_BLANKS, index_option="freq")
    for name in _FAST_FIELDS:
        builder.add_unsigned_field(name, fast=True)
    builder.add_bytes_field("payload", stored=True)
    return builder.build()


def prepare(index: Index) -> None:
    """Register what an index does not remember, and leave reloading to us.

    An unregistered tokenizer would only show when the writer's thread dies of it.
    """
    index.register_tokenizer(_BLANKS, TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    index.config_reader("manual")


def memory_term(ns_id: int, memory_id: MemoryId) -> str:
    """The term that all chunks of a memory share and nothing else has."""
    return f"{ns_id}/{memory_id}"


def chunk_documents(row: ChangeRow) -> Iterator[Document]:
    """The documents of a row; none of a dead one, nor of a chunk without any token.

    A document without tokens would never be found, but change what is rare and what is long.
    """
    if not row.live:
        return
    high, low = int(row.memory_id[:16], 16), int(row.memory_id[16:], 16)
    for chunk in row.chunks:
        if not (chunk.words or chunk.bigrams or row.extra):
            continue
        fields = {
            # The second term is for searches among given ids.
            "memory": [memory_term(row.ns_id, row.memory_id), row.memory_id],
            "ns": str(row.ns_id),
            "words": chunk.words or NOTHING,
            "bigrams": chunk.bigrams or NOTHING,
            "extra": row.extra or NOTHING,
            "ns_id": row.ns_id,
            "id_high": high,
            "id_low": low,
            "ordinal": chunk.ordinal,
            "version": row.version,
        }
        yield Document.from_dict(fields, schema())


def read_candidates(
    searcher: Searcher,
    hits: Sequence[tuple[float, DocAddress]],
    *,
    within: frozenset[MemoryId] | None = None,
) -> list[Candidate]:
    """The chunks of ``hits`` in their order, less those of memories that aren't ``within``.

    Five columns are read instead of a stored document for each hit.
    """
    addresses = [address for _, address in hits]
    columns = (searcher.fast_field_values(name, addresses) for name in _FAST_FIELDS)
    rows = cast("Iterable[tuple[int, int, int, int, int]]", zip(*columns, strict=True))
    return [
        Candidate(ns_id, memory_id, ordinal, version, score)
        for (ns_id, high, low, ordinal, version), (score, _) in zip(rows, hits, strict=True)
        if (memory_id := f"{high:016x}{low:016x}") and (within is None or memory_id in within)
    ]
