"""The embedding spaces of a store in PostgreSQL, and the vectors of chunks in each of them."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import (
    HALF,
    embedding_bytes,
    json_text,
    space_definition,
)
from memory_tool.archive_ports import Archive
from memory_tool.errors import Corrupt, InputError, Unavailable
from memory_tool.log import logger
from memory_tool.model import ArchivePlace, EmbeddingSpace, Json
from memory_tool.port_values import StoredVectors
from memory_tool.query import Candidate
from memory_tool.space_ports import SpaceKeeper
from memory_tool.space_values import EmbeddedText, FilledChunk, KnownSpace, Unembedded
from memory_tool.text.normalise import content_hash

_PAGE: Final = 64
"""Chunks looked at in one round trip. Each may bring a text of ten megabytes along."""

_SETTLED: Final = 5_000
"""Chunks moved in one transaction."""

_ALL: Final = 100.0
"""The share of pages of a sample that leaves none out, in percent."""

_NOBODY: Final = "0" * 32
"""The id before all others."""


class PostgresSpaces(SpaceKeeper):
    """See :mod:`memory_tool.space_ports`. Connects as ``threefold_worker``."""

    def __init__(self, pool: PostgresPool, archive: Archive | None = None) -> None:
        """Without an ``archive`` cold memories keep the model that they were stored with."""
        self._pool = pool
        self._archive = archive

    # ── Which spaces there are ──

    def spaces(self) -> tuple[KnownSpace, ...]:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.spaces`."""
        with self._pool.connection() as connection:
            return _spaces(connection)

    def begin(self, space: EmbeddingSpace, *, embedder: str) -> KnownSpace:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.begin`."""
        values = {
            "name": space.name,
            "definition": space_definition(space),
            "embedder": embedder,
        }
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(statement("build_kept"), values)
            if space not in (one.space for one in _spaces(connection)):
                connection.execute(statement("new_space"), values)
            known = _spaces(connection)
        for one in known:
            if one.space == space and one.state != "kept":
                return one
        under_way = [one.space.name for one in known if one.state in ("filling", "building")]
        message = (
            f"the change to {', '.join(under_way)} is not finished: finish it, or give it up with"
            " `threefold reembed --forget`"
        )
        raise InputError(message)

    def build(self, number: int) -> None:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.build`."""
        self._execute("build_space", {"space": number})

    def switch(self, number: int) -> None:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.switch`."""
        with self._pool.connection() as connection, connection.transaction():
            connection.execute(statement("leave_active"), {"space": number})
            connection.execute(statement("activate"), {"space": number})
            active = connection.execute(statement("active_number")).fetchone()
            if active != (number,):
                message = f"space {number} is not built, so that nothing can be switched to it"
                raise InputError(message)

    def outlasted(self) -> bool:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.outlasted`."""
        return bool(self._fetch("outlasted", {})[0][0])

    def close_others(self) -> None:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.close_others`."""
        self._execute("close_others", {})

    def forget_others(self) -> int:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.forget_others`."""
        return int(self._fetch("forget_spaces", {})[0][0])

    def unready(self, number: int, *, own: str, most: int) -> tuple[str, ...]:
        """See :meth:`memory_tool.space_ports.SpaceCatalogue.unready`."""
        values = {"space": str(number), "own": own, "bound": most}
        return tuple(target for (target,) in self._fetch("unready_targets", values))

    # ── Vectors that are missing ──

    def clocks(self) -> Mapping[int, int]:
        """See :meth:`memory_tool.space_ports.VectorFiller.clocks`."""
        return dict(self._fetch("all_clocks", {}))

    def count_missing(self, space: int) -> tuple[int, int]:
        """See :meth:`memory_tool.space_ports.VectorFiller.count_missing`."""
        missing, all_chunks = self._fetch("count_missing", {"space": space})[0]
        return missing, all_chunks

    def missing(self, space: int, ns_ids: Sequence[int]) -> Iterator[Unembedded]:
        """See :meth:`memory_tool.space_ports.VectorFiller.missing`."""
        for ns_id in ns_ids:
            yield from self._missing(space, ns_id)

    def _missing(self, space: int, ns_id: int) -> Iterator[Unembedded]:
        place: tuple[str, int] | None = (_NOBODY, -1)
        while place is not None:
            after, ordinal = place
            records = self._fetch(
                "missing_vectors",
                {
                    "space": space,
                    "ns_id": ns_id,
                    "after": after,
                    "ordinal": ordinal,
                    "bound": _PAGE,
                },
            )
            place = records[0][:2] if records else None
            # A page may hold nothing that is missing.
            for record in records:
                if record[2] is not None:
                    yield self._whole(_unembedded(record[2:-1]), record[-1])

    def _whole(self, gap: Unembedded, archived: Mapping[str, Any] | None) -> Unembedded:
        """With the text that its chunks are parts of: of a cold memory a summary is at hand."""
        at_hand = gap.content is not None and content_hash(gap.content) == gap.content_hash
        if archived is None or at_hand:
            return gap
        place = ArchivePlace(**archived)
        try:
            if self._archive is None:
                message = "this store was opened without its archive"
                raise Unavailable(message, store="archive")
            found = self._archive.read(place).content
        except Corrupt as error:
            logger().warning("archive_unreadable", file=place.file, reason=str(error))
            return replace(gap, content=None)
        whole = content_hash(found) == gap.content_hash
        return replace(gap, content=found if whole else None)

    def fill(self, space: int, ns_id: int, *, chunks: Sequence[FilledChunk]) -> int:
        """See :meth:`memory_tool.space_ports.VectorFiller.fill`."""
        made, embeddings = [], bytearray()
        for chunk in chunks:
            raw = embedding_bytes(chunk.vector)
            made.append(
                {
                    "memory_id": chunk.memory_id,
                    "content_hash": chunk.content_hash.hex(),
                    "ordinal": chunk.ordinal,
                    "start": chunk.start,
                    "stop": chunk.stop,
                    "first_byte": len(embeddings) + 1,
                    "bytes": len(raw),
                }
            )
            embeddings += raw
        values = {
            "space": space,
            "ns_id": ns_id,
            "made": json_text(made),
            "embeddings": bytes(embeddings),
            "stamp": secrets.randbits(63),
        }
        return int(self._fetch("fill_vectors", values)[0][0])

    def settle(self, ns_id: int) -> None:
        """See :meth:`memory_tool.space_ports.VectorFiller.settle`."""
        after: str | None = _NOBODY
        while after is not None:
            values = {"ns_id": ns_id, "after": after, "bound": _SETTLED}
            records = self._fetch("settle_vectors", values)
            after = records[0][0] if records else None
        self._execute("drop_beside", {"ns_id": ns_id})

    # ── Samples, and what is made of them ──

    def sample(self, space: int, limit: int) -> StoredVectors:
        """See :meth:`memory_tool.space_ports.VectorSamples.sample`."""
        return _stored(self._sampled("sampled_vectors", space, limit=limit))

    def texts(self, space: int, limit: int) -> tuple[EmbeddedText, ...]:
        """See :meth:`memory_tool.space_ports.VectorSamples.texts`."""
        records = self._sampled("sampled_texts", space, limit=limit)
        return tuple(
            EmbeddedText(text=text, vector=np.frombuffer(raw, HALF).astype(np.float32))
            for text, raw in records
        )

    def namespace(self, space: int, ns_id: int, *, limit: int) -> StoredVectors | None:
        """See :meth:`memory_tool.space_ports.VectorSamples.namespace`."""
        values = {"space": space, "ns_id": ns_id, "bound": limit + 1}
        records = self._fetch("vectors_of_namespace", values)
        return None if len(records) > limit else _stored(records)

    def keep(self, name: str, space: int, *, content: Json) -> None:
        """See :meth:`memory_tool.space_ports.SideShelf.keep`."""
        values = {"name": name, "space": space, "content": json.dumps(content)}
        self._execute("keep_side", values)

    def kept(self, name: str, space: int) -> Json:
        """See :meth:`memory_tool.space_ports.SideShelf.kept`."""
        records = self._fetch("kept_side", {"name": name, "space": space})
        return cast("Json", records[0][0]) if records else None

    def _sampled(self, name: str, space: int, *, limit: int) -> list[Any]:
        """Records from a share of the pages: about ten times as many chunks as are wanted."""
        chunks = int(self._fetch("size_of_chunks", {})[0][0])
        share = min(_ALL, 1_000.0 * limit / chunks) if chunks > 10 * limit else _ALL
        records = self._fetch(name, {"space": space, "share": share, "bound": limit})
        if len(records) < limit and share < _ALL:
            # The size may be one of long ago.
            records = self._fetch(name, {"space": space, "share": _ALL, "bound": limit})
        return records

    def _fetch(self, name: str, values: Mapping[str, object]) -> list[Any]:
        with self._pool.connection() as connection:
            return connection.execute(statement(name), values).fetchall()

    def _execute(self, name: str, values: Mapping[str, object]) -> None:
        with self._pool.connection() as connection:
            connection.execute(statement(name), values)


def _spaces(connection: Connection) -> tuple[KnownSpace, ...]:
    records = cast(
        "list[tuple[int, Any, Any, str | None]]", connection.execute(statement("spaces")).fetchall()
    )
    return tuple(
        KnownSpace(
            number=number,
            space=EmbeddingSpace(**definition),
            state=state,
            embedder=embedder or "",
        )
        for number, definition, state, embedder in records
    )


def _unembedded(record: Sequence[Any]) -> Unembedded:
    ns_id, memory_id, content, content_hash, ordinals, starts, stops = record
    return Unembedded(
        ns_id=ns_id,
        memory_id=memory_id,
        content=content,
        content_hash=content_hash,
        chunks=tuple(zip(ordinals, starts, stops, strict=True)),
    )


def _stored(records: Sequence[Sequence[Any]]) -> StoredVectors:
    """Vectors from (ns_id, memory, ordinal, version, embedding)."""
    places = ((ns_id, hexed, ordinal, number) for ns_id, hexed, ordinal, number, _ in records)
    references = tuple(Candidate(*place, score=0.0) for place in places)
    if not records:
        return StoredVectors(references=(), vectors=np.empty((0, 0), np.float32))
    halves = np.frombuffer(b"".join(record[4] for record in records), HALF)
    return StoredVectors(
        references=references, vectors=halves.reshape(len(records), -1).astype(np.float32)
    )
