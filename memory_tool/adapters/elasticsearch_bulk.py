"""Documents into an index: many in one request, and every item of the answer looked at."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from elasticsearch import ApiError

from memory_tool.adapters.elasticsearch_connection import (
    PASSING,
    REFUSED,
    STORE,
    Body,
    ElasticsearchConnection,
    kind_of_error,
    translated,
)
from memory_tool.adapters.elasticsearch_layout import Document
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.port_values import DeadLetter

BULK_BYTES: Final = 5_000_000
"""Of one request. 15 MB were no faster with texts, and hold a node's memory three times as long."""

BULK_DOCUMENTS: Final = 2_000

_TOO_LARGE: Final = 413
_MISSING: Final = 404
_KNOWN: Final = 409
"""The index has this version or a newer one: a repetition, or a late writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A document with what is sent for it, written out: sizes are known before a request is."""

    document: Document
    action: bytes
    fields: bytes

    @property
    def size(self) -> int:
        return len(self.action) + len(self.fields)


def write_documents(
    connection: ElasticsearchConnection, alias: str, *, documents: Iterable[Document]
) -> tuple[DeadLetter, ...]:
    """Write documents by version; those that the index can never take are returned.

    While the server takes one request, the documents of the next are read and written out.

    Raises:
        Unavailable: The server took not all of them: the whole target has to wait.
        Corrupt: The alias is gone: somebody else builds the index.
    """
    letters: list[DeadLetter] = []
    with ThreadPoolExecutor(1) as sender:
        under_way: Future[list[DeadLetter]] | None = None
        for lines in _requests(documents):
            if under_way is not None:
                letters += under_way.result()
            under_way = sender.submit(_send, connection, alias, lines=lines)
        if under_way is not None:
            letters += under_way.result()
    return tuple(letters)


def _requests(documents: Iterable[Document]) -> Iterator[list[_Line]]:
    lines: list[_Line] = []
    size = 0
    for document in documents:
        line = _line(document)
        if lines and (size + line.size > BULK_BYTES or len(lines) >= BULK_DOCUMENTS):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += line.size
    if lines:
        yield lines


def _line(document: Document) -> _Line:
    action = {
        "_id": document.id,
        "routing": document.routing,
        "version": document.version,
        "version_type": "external",
    }
    return _Line(
        document=document, action=_written({"index": action}), fields=_written(document.fields)
    )


_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _written(body: Body) -> bytes:
    return _encoder.encode(body).encode()


def _send(
    connection: ElasticsearchConnection, alias: str, *, lines: list[_Line]
) -> list[DeadLetter]:
    operations: list[Any] = [part for line in lines for part in (line.action, line.fields)]
    try:
        with translated():
            try:
                answer = connection.patient().bulk(
                    operations=operations, index=alias, require_alias=True
                )
            except ApiError as error:
                if error.meta.status != _TOO_LARGE:
                    raise
                return _halves(connection, alias, lines=lines)
    except Corrupt as error:
        message = f"a bulk was refused as a whole: {error}"
        raise Corrupt(message) from error
    return _refused(answer["items"], lines)


def _halves(
    connection: ElasticsearchConnection, alias: str, *, lines: list[_Line]
) -> list[DeadLetter]:
    """A request that is too large goes in two; a single document that is can't be taken."""
    if len(lines) == 1:
        return [_letter(lines[0].document, "413 request too large")]
    middle = len(lines) // 2
    return [
        *_send(connection, alias, lines=lines[:middle]),
        *_send(connection, alias, lines=lines[middle:]),
    ]


def _refused(items: Iterable[Mapping[str, Any]], lines: list[_Line]) -> list[DeadLetter]:
    """Which documents were refused for good. A bulk is a success even if every item failed."""
    refused: list[DeadLetter] = []
    for item, line in zip(items, lines, strict=True):
        (outcome,) = item.values()
        status = outcome["status"]
        if status in PASSING | REFUSED:
            # What was written stays written: the same versions are known when they come again.
            message = f"Elasticsearch takes no more ({status}, {kind_of_error(outcome)})"
            raise Unavailable(message, store=STORE)
        if status == _MISSING:
            message = "the index is no longer written here: its alias is gone"
            raise Corrupt(message)
        if status >= HTTPStatus.MULTIPLE_CHOICES and status != _KNOWN:
            refused.append(_letter(line.document, f"{status} {kind_of_error(outcome)}"))
    return refused


def _letter(document: Document, reason: str) -> DeadLetter:
    row = document.row
    return DeadLetter(ns_id=row.ns_id, memory_id=row.memory_id, version=row.version, reason=reason)
