"""Control documents: what a Tantivy commit says of itself, in the same commit as its chunks.

One document, the stamp, holds the mark. The clocks of the namespaces come in bundles: a document
for each namespace would count as one in every BM25 statistic, which tells rare words from frequent
ones and long texts from short ones; a store of many small namespaces would rank by it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from tantivy import DocAddress, Document, IndexWriter, Query, Searcher

from memory_tool.adapters.tantivy_folder import reading
from memory_tool.adapters.tantivy_schema import SCHEMA_VERSION, schema
from memory_tool.errors import Corrupt

BUNDLE: Final = 64
"""Clocks in one document, read as a whole for each of them and written when one of them moves.
10,000 namespaces make 157 documents, and 1,000 clocks anywhere among them take 157 reads; with 8
they would make 1,250 documents, with 1,024 a single clock takes a document of 12 KB."""

_STAMP: Final = "stamp"
_CLOCKS: Final = "clocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a commit follows and was made with.

    Attributes:
        mark: The mark of the history.
        store: Identity of the store.
        tokeniser: Version of the tokeniser that made the tokens.
        schema: Version of the fields.
        namespaces: How many namespaces have a clock.
    """

    mark: str
    store: str
    tokeniser: int
    schema: int
    namespaces: int


def read_stamp(searcher: Searcher, tokeniser: int) -> Stamp | None:
    """The stamp of the commit that ``searcher`` sees; ``None`` while nothing was applied.

    Raises:
        Corrupt: The index was made by another version of the tokeniser or of the fields.
    """
    with reading("the stamp can't be read"):
        payload = next(_payloads(searcher, _STAMP, limit=1), None)
    if payload is None:
        return None
    # Compared before anything else is read: another version may have other attributes.
    versions = payload["tokeniser"], payload["schema"]
    if versions != (tokeniser, SCHEMA_VERSION):
        message = (
            f"the index was made with tokeniser {versions[0]} and fields {versions[1]}, "
            f"these are {tokeniser} and {SCHEMA_VERSION}"
        )
        raise Corrupt(message)
    return Stamp(**payload)


def write_stamp(writer: IndexWriter, stamp: Stamp) -> None:
    """Replace the stamp."""
    _replace(writer, [_STAMP], payload=asdict(stamp))


def bundle_of(ns_id: int) -> int:
    """The number of the bundle that holds the clock of ``ns_id``."""
    return ns_id // BUNDLE


def read_clocks(searcher: Searcher, bundle: int) -> dict[int, int]:
    """The clocks of one bundle; empty when the index does not have it."""
    return _merged(_payloads(searcher, f"{_CLOCKS}/{bundle}", limit=1))


def read_all_clocks(searcher: Searcher, stamp: Stamp) -> dict[int, int]:
    """The clock of every namespace."""
    return _merged(_payloads(searcher, _CLOCKS, limit=max(stamp.namespaces, 1)))


def count_controls(searcher: Searcher, stamp: Stamp) -> int:
    """How many documents are control documents."""
    return 1 + sum(1 for _ in _addresses(searcher, _CLOCKS, limit=max(stamp.namespaces, 1)))


def write_clocks(writer: IndexWriter, bundle: int, *, clocks: Mapping[int, int]) -> None:
    """Replace one bundle."""
    _replace(writer, [f"{_CLOCKS}/{bundle}", _CLOCKS], payload=clocks)


def _merged(payloads: Iterator[dict[str, int]]) -> dict[int, int]:
    return {int(ns_id): clock for payload in payloads for ns_id, clock in payload.items()}


def _payloads(searcher: Searcher, term: str, *, limit: int) -> Iterator[dict[str, Any]]:
    for address in _addresses(searcher, term, limit=limit):
        yield json.loads(searcher.doc(address)["payload"][0])


def _addresses(searcher: Searcher, term: str, *, limit: int) -> Iterator[DocAddress]:
    query = Query.term_query(schema(), "control", term, "basic")
    for _, address in searcher.search(query, limit, count=False).hits:
        yield address


def _replace(writer: IndexWriter, terms: list[str], *, payload: Mapping[Any, object]) -> None:
    # The first term is the document's own, a second one finds all of its kind.
    writer.delete_documents_by_term("control", terms[0])
    fields = {"control": terms, "payload": json.dumps(payload).encode()}
    writer.add_document(Document.from_dict(fields, schema()))
