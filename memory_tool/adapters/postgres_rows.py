"""Rows of PostgreSQL to nouns of the house and back."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import numpy as np

from memory_tool.model import (
    ArchivePlace,
    Chunk,
    EmbeddingSpace,
    Memory,
    MemoryId,
    MemoryType,
    State,
    Status,
    StoredRow,
    Tier,
    Turn,
    Vector,
    WriteResult,
)
from memory_tool.port_values import RowChange, RowKey
from memory_tool.scope import Namespace

Record: TypeAlias = Sequence[Any]
"""A fetched row. The driver can't know its types; the functions here can."""

Image: TypeAlias = Mapping[str, Any]
"""A row of the memory table as JSON, with every column under its name."""

HALF: Final = np.dtype("<f2")


json_text: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
"""A value as JSON, which PostgreSQL reads as UTF-8."""


_ID: Final = re.compile("[0-9a-f]{32}")


def id_array(ids: Iterable[MemoryId]) -> str:
    """Ids as PostgreSQL writes an array; what is no id can't be stored under it and is left out.

    The driver would look at each element by itself, which takes ten times as long.
    """
    return "{" + ",".join(filter(_ID.fullmatch, ids)) + "}"


def key_arrays(keys: Iterable[RowKey]) -> Mapping[str, str]:
    """Keys as two arrays side by side: namespaces, and the ids wanted of each as an array's text.

    What is no id is left out, as by :func:`id_array`.
    """
    wanted: dict[int, list[MemoryId]] = {}
    for ns_id, memory_id in keys:
        wanted.setdefault(ns_id, []).append(memory_id)
    lists = (f'"{id_array(ids)}"' for ids in wanted.values())
    return {"ns_ids": number_array(wanted), "ids": "{" + ",".join(lists) + "}"}


def number_array(numbers: Iterable[int]) -> str:
    """Numbers as PostgreSQL writes an array."""
    return "{" + ",".join(map(str, numbers)) + "}"


def digest(text: str) -> bytes:
    """SHA-256 of a text: what stands for it in an index."""
    return hashlib.sha256(text.encode()).digest()


def row_of_image(
    image: Image, namespaces: Mapping[int, Namespace], *, use: Record = (None, None)
) -> StoredRow:
    """The row that an image, ``to_jsonb`` of a whole row, describes.

    ``use`` is how often it was returned, and when last.
    """
    archive = image.get("archive")
    return StoredRow(
        memory=memory_of_image(image, namespaces, use=use),
        ns_id=image["ns_id"],
        state=State(image["state"]),
        nseq=image["nseq"],
        vector_nseq=image["vector_nseq"],
        keyword_nseq=image["keyword_nseq"],
        content_hash=_bytes(image["content_hash"]),
        dedup_hash=None if image["dedup_hash"] is None else _bytes(image["dedup_hash"]),
        extra=image["extra"],
        chunk_high=image["chunk_high"],
        archive=None if archive is None else ArchivePlace(**archive),
    )


def memory_of_image(
    image: Image, namespaces: Mapping[int, Namespace], *, use: Record = (None, None)
) -> Memory:
    """The memory of the same, which may be an old version."""
    uses, used_at = use
    return Memory(
        id=image["id"].replace("-", ""),
        namespace=namespaces[image["ns_id"]],
        content=image["content"],
        type=MemoryType(image["type"]),
        version=image["version"],
        created_at=_time(image["created_at"]),
        updated_at=_time(image["updated_at"]),
        importance=image["importance"],
        pinned=image["pinned"],
        confidence=image["confidence"],
        source=image["source"],
        tags=tuple(image["tags"]),
        metadata=image["metadata"],
        occurred_at=_time_if_any(image["occurred_at"]),
        expires_at=_time_if_any(image["expires_at"]),
        verified_at=_time_if_any(image["verified_at"]),
        key=image["key"],
        run_id=image["run_id"],
        turn=_turn(image),
        tier=Tier(image["tier"]),
        access_count=uses or 0,
        last_accessed_at=None if used_at is None else used_at.astimezone(UTC),
    )


def _time(text: str) -> datetime:
    # The server writes its own zone, which is of no interest.
    return datetime.fromisoformat(text).astimezone(UTC)


def _time_if_any(text: str | None) -> datetime | None:
    return None if text is None else _time(text)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))


def _turn(image: Image) -> Turn | None:
    if image["conversation_id"] is None:
        return None
    return Turn(
        conversation_id=image["conversation_id"],
        position=image["turn_position"],
        role=image["turn_role"],
        name=image["turn_name"],
    )


def row_image(change: RowChange) -> Mapping[str, object]:
    """A planned row as ``threefold.write_changes`` takes it."""
    row, memory = change.row, change.row.memory
    place = memory.turn
    return {
        "action": change.action,
        "id": memory.id,
        "nseq": row.nseq,
        "vector_nseq": row.vector_nseq,
        "keyword_nseq": row.keyword_nseq,
        "state": row.state,
        "version": memory.version,
        "content": memory.content,
        "content_hash": row.content_hash.hex(),
        "dedup_hash": None if row.dedup_hash is None else row.dedup_hash.hex(),
        "key": memory.key,
        "key_hash": None if memory.key is None else digest(memory.key).hex(),
        "type": memory.type,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "pinned": memory.pinned,
        "tags": memory.tags,
        "source": memory.source,
        "metadata": memory.metadata,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "occurred_at": _text(memory.occurred_at),
        "expires_at": _text(memory.expires_at),
        "verified_at": _text(memory.verified_at),
        "run_id": memory.run_id,
        "conversation_id": place and place.conversation_id,
        "turn_position": place and place.position,
        "turn_role": place and place.role,
        "turn_name": place and place.name,
        "tier": memory.tier,
        "extra": row.extra,
        "chunk_high": row.chunk_high,
        "archive": None if row.archive is None else dataclasses.asdict(row.archive),
    }


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def chunk_images(changes: Sequence[RowChange]) -> tuple[list[Mapping[str, object]], bytes]:
    """Chunks as ``threefold.write_changes`` takes them: for JSON, and the embeddings beside it."""
    images: list[Mapping[str, object]] = []
    embeddings = bytearray()
    for change in changes:
        for chunk in change.chunks or ():
            embedding = None if chunk.embedding is None else embedding_bytes(chunk.embedding)
            images.append(
                {
                    "memory_id": change.row.memory.id,
                    "ordinal": chunk.ordinal,
                    "start": chunk.start,
                    "stop": chunk.stop,
                    "language": chunk.language,
                    "words": chunk.words,
                    "bigrams": chunk.bigrams,
                    "first_byte": None if embedding is None else len(embeddings) + 1,
                    "bytes": None if embedding is None else len(embedding),
                }
            )
            embeddings += embedding or b""
    return images, bytes(embeddings)


def embedding_bytes(embedding: Vector) -> bytes:
    """One embedding as half floats, little endian."""
    return embedding.astype(HALF).tobytes()


def embedding_of(stored: bytes | None) -> Vector | None:
    """The embedding that :func:`embedding_bytes` stored, shape (dimension,)."""
    return None if stored is None else np.frombuffer(stored, HALF).astype(np.float32)


def chunk_of(record: Record) -> Chunk:
    """A chunk from (ordinal, start, stop, language, words, bigrams, embedding)."""
    ordinal, start, stop, language, words, bigrams, embedding = record
    return Chunk(
        ordinal=ordinal,
        start=start,
        stop=stop,
        language=language,
        words=words,
        bigrams=bigrams,
        embedding=embedding_of(embedding),
    )


def receipt_json(results: Sequence[WriteResult]) -> str:
    """Write results as they are kept under an idempotency key."""
    return json_text(
        [
            {
                "status": result.status,
                "id": result.id,
                "version": result.version,
                "error": result.error,
                "stores": dict(result.stores),
            }
            for result in results
        ]
    )


def results_of(receipt: Sequence[Mapping[str, Any]]) -> tuple[WriteResult, ...]:
    """The results that :func:`receipt_json` kept."""
    return tuple(
        WriteResult(
            status=Status(item["status"]),
            id=item["id"],
            version=item["version"],
            error=item["error"],
            stores=item["stores"],
        )
        for item in receipt
    )


def space_definition(space: EmbeddingSpace) -> str:
    """A space as it is recorded."""
    return json_text(dataclasses.asdict(space))


def space_of(record: Record | None) -> EmbeddingSpace | None:
    """The space that a record (definition) describes; ``None`` for no record."""
    return None if record is None else EmbeddingSpace(**record[0])
