"""Rows whose text the archive keeps: made whole for whoever reads or changes them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from memory_tool.adapters.postgres_rows import (
    Image,
    Record,
    json_text,
    memory_of_image,
    row_of_image,
)
from memory_tool.archive_ports import Archive, ArchiveRecord
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.log import logger
from memory_tool.model import ArchivePlace, Memory, StoredRow
from memory_tool.port_values import ChunkWords, Loaded, RowChange
from memory_tool.scope import Namespace
from memory_tool.text.normalise import content_hash
from memory_tool.text.tokenise import tokenise

ARCHIVE_UNAVAILABLE: Final = "archive_unavailable"
"""The flag of a memory whose summary is all that can be read just now."""


class WholeRows:
    """Makes rows whole. Without an archive every row is shown as the store has it."""

    def __init__(self, archive: Archive | None = None) -> None:
        self._archive = archive

    def shown(
        self, records: Iterable[Record], namespaces: Mapping[int, Namespace]
    ) -> list[StoredRow]:
        """The rows of records (image, uses, when last), each with its whole text.

        Where the archive can't be read the summary stays, and a flag says so.
        """
        rows = (row_of_image(image, namespaces, use=use) for image, *use in records)
        return [self._shown(row) for row in rows]

    def history(
        self, old: Sequence[Record], current: Record, *, namespaces: Mapping[int, Namespace]
    ) -> tuple[Memory, ...]:
        """The old versions and the current one, wherever they are kept."""
        image, *use = current
        row = row_of_image(image, namespaces, use=use)
        kept = [memory_of_image(image, namespaces) for (image,) in old]
        if row.archive is None:
            return (*kept, row.memory)
        record = self._read_if_possible(row, row.archive)
        if record is None:
            return (*kept, _flagged(row).memory)
        images = (cast("Image", version["image"]) for version in record.versions)
        archived = [memory_of_image(image, namespaces) for image in images]
        return (*archived, *kept, _with_content(row, record.content).memory)

    def loaded(self, row: StoredRow) -> Loaded:
        """What the archive keeps of a row, for whoever stores it again.

        Raises:
            Corrupt: What lies there is missing, damaged or of another memory.
            Unavailable: The archive can't be reached.
        """
        if row.archive is None:
            return Loaded(row=row)
        record = self._read(row, row.archive)
        return Loaded(
            row=_with_content(row, record.content),
            tokens=tuple(
                _chunk_words(chunk.ordinal, record.content[chunk.start : chunk.stop])
                for chunk in record.chunks
            ),
            versions=record.versions,
        )

    def _shown(self, row: StoredRow) -> StoredRow:
        # A short text is its own summary, and nothing has to be read for it.
        if row.archive is None or content_hash(row.memory.content) == row.content_hash:
            return row
        record = self._read_if_possible(row, row.archive)
        return _flagged(row) if record is None else _with_content(row, record.content)

    def _read_if_possible(self, row: StoredRow, place: ArchivePlace) -> ArchiveRecord | None:
        try:
            return self._read(row, place)
        except (Corrupt, Unavailable) as error:
            logger().warning("archive_unreadable", file=place.file, reason=str(error))
            return None

    def _read(self, row: StoredRow, place: ArchivePlace) -> ArchiveRecord:
        if self._archive is None:
            message = "this store was opened without its archive"
            raise Unavailable(message, store="archive")
        record = self._archive.read(place)
        if record.id != row.memory.id or content_hash(record.content) != row.content_hash:
            message = f"the archive file {place.file} holds another memory in the place of this one"
            raise Corrupt(message, command="threefold tiers")
        return record


def _with_content(row: StoredRow, content: str) -> StoredRow:
    return dataclasses.replace(row, memory=dataclasses.replace(row.memory, content=content))


def _flagged(row: StoredRow) -> StoredRow:
    flags = (*row.memory.flags, ARCHIVE_UNAVAILABLE)
    return dataclasses.replace(row, memory=dataclasses.replace(row.memory, flags=flags))


def _chunk_words(ordinal: int, text: str) -> ChunkWords:
    tokens = tokenise(text)
    return ChunkWords(
        ordinal=ordinal, words=" ".join(tokens.words), bigrams=" ".join(tokens.bigrams)
    )


def loaded_json(changes: Sequence[RowChange]) -> str | None:
    """What comes back from the archive, as ``threefold.bring_back`` takes it."""
    back = [
        {
            "id": change.row.memory.id,
            "content": change.loaded.row.memory.content,
            "versions": change.loaded.versions,
        }
        for change in changes
        if change.loaded is not None
    ]
    return json_text(back) if back else None


def tokens_json(changes: Sequence[RowChange]) -> str | None:
    """Tokens that replace others, as ``threefold.put_tokens`` takes them."""
    tokens = [
        {
            "memory_id": change.row.memory.id,
            "ordinal": one.ordinal,
            "words": one.words,
            "bigrams": one.bigrams,
        }
        for change in changes
        # Chunks that are replaced bring their own.
        if change.chunks is None
        for one in (*change.tokens, *(change.loaded.tokens if change.loaded else ()))
    ]
    return json_text(tokens) if tokens else None
