"""Embedding spaces of a store whose cold memories have their texts in an archive."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from memory_tool.adapters.postgres_archive import WholeRows
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from memory_tool.archive_ports import Archive
from memory_tool.model import ArchivePlace
from memory_tool.space_values import Unembedded
from memory_tool.text.normalise import content_hash


class PostgresWholeSpaces(PostgresSpaces):
    """See :mod:`memory_tool.space_ports`. A vector is made of the text, never of its summary."""

    def __init__(self, pool: PostgresPool, archive: Archive) -> None:
        super().__init__(pool)
        self._whole = WholeRows(archive)

    def missing(self, space: int, ns_ids: Sequence[int]) -> Iterator[Unembedded]:
        """See :meth:`memory_tool.space_ports.VectorFiller.missing`.

        Raises:
            Corrupt: A text can't be read from the archive, so that no vector can be made of it.
        """
        for one in super().missing(space, ns_ids):
            if content_hash(one.content) == one.content_hash:
                yield one
            elif (place := self._place(one)) is not None:
                record = self._whole.record(place, one.memory_id, text_hash=one.content_hash)
                yield replace(one, content=record.content)
            # Else it came back from the archive meanwhile, and the next pass sees it.

    def _place(self, one: Unembedded) -> ArchivePlace | None:
        values = {"ns_id": one.ns_id, "id": one.memory_id}
        with self._pool.connection() as connection:
            record = connection.execute(statement("archive_place"), values).fetchone()
        place = cast("tuple[dict[str, str] | None] | None", record)
        return None if place is None or place[0] is None else ArchivePlace(**place[0])  # type: ignore[arg-type] # as it was written
