"""Makers of nouns with sane defaults, for tests of every kind."""

import dataclasses
import hashlib
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from memory_tool.model import (
    Chunk,
    Memory,
    MemoryId,
    MemoryType,
    NewMemory,
    State,
    StoredRow,
    Vector,
)
from memory_tool.port_values import Commit, Existing, WritePlan
from memory_tool.prepare import put_of
from memory_tool.scope import Namespace
from memory_tool.text.extra import extra_tokens
from memory_tool.text.normalise import content_hash
from memory_tool.text.tokenise import tokenise
from memory_tool.write_changes import Change, Put
from memory_tool.write_plan import decide_duplicates, lookup_for, plan_changes

DIMENSION: Final = 8
"""Of made-up vectors: small, for most tests don't look at them."""

NOON: Final = datetime(2025, 7, 1, 12, tzinfo=UTC)
ANNA: Final = Namespace(user="anna")
BEN: Final = Namespace(user="ben")


def new_id() -> MemoryId:
    """A memory id that nobody used before."""
    return uuid.uuid4().hex


def unit_vector(seed: int | str, dimension: int = DIMENSION) -> Vector:
    """A unit vector, the same for the same seed."""
    digest = hashlib.sha256(str(seed).encode()).digest()
    values = np.random.default_rng(int.from_bytes(digest[:8])).normal(size=dimension)
    return np.asarray(values / np.linalg.norm(values), np.float32)


def chunk_of(text: str, *, ordinal: int = 0, dimension: int = DIMENSION) -> Chunk:
    """A chunk with the tokens of ``text``, and a vector that depends on it."""
    tokens = tokenise(text)
    return Chunk(
        ordinal=ordinal,
        start=0,
        stop=len(text),
        language="en",
        words=" ".join(tokens.words),
        bigrams=" ".join(tokens.bigrams),
        embedding=unit_vector(text, dimension),
    )


def put(new: NewMemory | str, *chunks: Chunk) -> Put:
    """A prepared memory; of one chunk when none is given."""
    memory = NewMemory(content=new) if isinstance(new, str) else new
    return put_of(memory, chunks or (chunk_of(memory.content),))


def commit_of(
    changes: Sequence[Change],
    namespace: Namespace = ANNA,
    *,
    key: str | None = None,
    request: bytes = b"the same request",
) -> Commit:
    """A commit that does these changes by the rules of the house."""

    def plan(existing: Existing) -> WritePlan:
        return plan_changes(
            changes,
            existing,
            namespace=namespace,
            decide=decide_duplicates,
            extra=lambda memory: extra_tokens(memory.tags, memory.source, metadata=memory.metadata),
        )

    return Commit(
        namespace=namespace,
        lookup=lookup_for(changes),
        plan=plan,
        idempotency_key=key or new_id(),
        request_hash=hashlib.sha256(request).digest(),
    )


def memory_of(content: str = "the ledger is blue", namespace: Namespace = ANNA) -> Memory:
    """A memory of version 1; change its fields with ``dataclasses.replace``."""
    return Memory(
        id=new_id(),
        namespace=namespace,
        content=content,
        type=MemoryType.SEMANTIC,
        version=1,
        created_at=NOON,
        updated_at=NOON,
    )


def row_of(memory: Memory, *, ns_id: int = 1, nseq: int = 1) -> StoredRow:
    """A live row of ``memory``."""
    return StoredRow(
        memory=memory,
        ns_id=ns_id,
        state=State.LIVE,
        nseq=nseq,
        vector_nseq=nseq,
        keyword_nseq=nseq,
        content_hash=content_hash(memory.content),
    )


def quarantined(row: StoredRow, *, nseq: int) -> StoredRow:
    """The same row, hidden from every search."""
    return dataclasses.replace(
        row, state=State.QUARANTINED, nseq=nseq, vector_nseq=nseq, keyword_nseq=nseq
    )
