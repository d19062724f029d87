"""Images of rows: what a memory looks like after it was added, changed or deleted. Pure."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from memory_tool.model import Json, Memory, NewMemory, Patch, State, StoredRow, Tier, Unset
from memory_tool.port_values import Existing
from memory_tool.scope import Namespace
from memory_tool.write_changes import Adopt, Extra, Kept, Move, Put


def is_expired(memory: Memory, now: datetime) -> bool:
    """Whether the memory may no longer be seen at ``now``."""
    return memory.expires_at is not None and memory.expires_at <= now


def expiry_of(new: NewMemory, now: datetime) -> datetime | None:
    """When a memory that is stored at ``now`` may be seen no more."""
    return new.expires_at if new.ttl is None else now + new.ttl


def new_row(put: Put, existing: Existing, *, namespace: Namespace, nseq: int) -> StoredRow:
    """The first image of a new memory."""
    new = put.new
    kept = _kept(put, existing.now)
    memory = Memory(
        id=put.memory_id,
        namespace=namespace,
        content=new.content,
        type=put.type,
        version=kept.version,
        created_at=kept.created_at,
        updated_at=kept.updated_at,
        verified_at=kept.verified_at,
        importance=new.importance,
        pinned=new.pinned,
        confidence=new.confidence,
        source=new.source,
        tags=new.tags,
        metadata=new.metadata,
        occurred_at=new.occurred_at,
        expires_at=expiry_of(new, existing.now),
        key=new.key,
        run_id=new.run_id,
        turn=new.turn,
    )
    return StoredRow(
        memory=memory,
        ns_id=existing.ns_id,
        state=kept.state,
        nseq=nseq,
        vector_nseq=nseq,
        keyword_nseq=nseq,
        content_hash=put.content_hash,
        dedup_hash=put.dedup_hash,
        extra=put.extra,
        chunk_high=max(1, len(put.chunks)),
    )


def _kept(put: Put, now: datetime) -> Kept:
    if isinstance(put, Adopt):
        return put.kept
    return Kept(memory_id=put.memory_id, created_at=now, updated_at=now)


_UPSERTED: Final = (
    "importance",
    "pinned",
    "confidence",
    "source",
    "tags",
    "metadata",
    "occurred_at",
    "expires_at",
)
_UNNAMED: Final = NewMemory(content="")


def patch_of(put: Put, now: datetime) -> Patch:
    """The patch that an upsert is: the text, and of the rest only what was named.

    A memory that was pinned or rated since must not lose that when its key is written again.
    """
    named = {
        name: getattr(put.new, name)
        for name in _UPSERTED
        if getattr(put.new, name) != getattr(_UNNAMED, name)
    }
    if put.new.ttl is not None:
        named["expires_at"] = expiry_of(put.new, now)
    return Patch(content=put.new.content, type=put.type, **named)


_IN_BOTH_INDEXES: Final = ("content", "type", "tags", "occurred_at", "expires_at")
_IN_KEYWORD_INDEX: Final = (*_IN_BOTH_INDEXES, "source", "metadata")


def revised_row(
    row: StoredRow, patch: Patch, *, nseq: int, now: datetime, extra: Extra
) -> StoredRow | None:
    """The next image of a row, or ``None`` when the patch changes nothing.

    What was changed just now is hot, wherever it was.
    """
    old = row.memory
    values: dict[str, Any] = {}
    for field in dataclasses.fields(patch):
        value = getattr(patch, field.name)
        if isinstance(value, Unset):
            continue
        values[field.name] = _merged(old.metadata, value) if field.name == "metadata" else value
    changed = {name for name, value in values.items() if value != getattr(old, name)}
    if not changed:
        return None
    memory = dataclasses.replace(
        old, **values, version=old.version + 1, updated_at=now, tier=Tier.HOT
    )
    by_words = changed.intersection(_IN_KEYWORD_INDEX) or old.tier is not Tier.HOT
    return dataclasses.replace(
        row,
        memory=memory,
        nseq=nseq,
        vector_nseq=nseq if changed.intersection(_IN_BOTH_INDEXES) else row.vector_nseq,
        keyword_nseq=nseq if by_words else row.keyword_nseq,
        extra=extra(memory),
        archive=None,
    )


def moved_row(row: StoredRow, move: Move, *, nseq: int) -> StoredRow:
    """The image of a row in another tier. No new version: it says what it said.

    Words are searched elsewhere from now on; of vectors nothing changes.
    """
    content = row.memory.content if move.summary is None else move.summary
    return dataclasses.replace(
        row,
        memory=dataclasses.replace(row.memory, tier=move.tier, content=content),
        nseq=nseq,
        keyword_nseq=nseq,
        archive=move.archive,
    )


def _merged(old: Mapping[str, Json], new: Mapping[str, Json]) -> Mapping[str, Json]:
    kept = {name: value for name, value in old.items() if name not in new}
    return kept | {name: value for name, value in new.items() if value is not None}


def tombstone(row: StoredRow, *, nseq: int, now: datetime) -> StoredRow:
    """The row that stays of a deleted memory: its numbers, and nothing that it said."""
    memory = Memory(
        id=row.memory.id,
        namespace=row.memory.namespace,
        content="",
        type=row.memory.type,
        version=row.memory.version,
        created_at=row.memory.created_at,
        updated_at=now,
    )
    return StoredRow(
        memory=memory,
        ns_id=row.ns_id,
        state=State.DELETED,
        nseq=nseq,
        vector_nseq=nseq,
        keyword_nseq=nseq,
        content_hash=b"",
        chunk_high=row.chunk_high,
    )
