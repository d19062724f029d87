"""Rows that filters are tried on."""

from dataclasses import replace
from datetime import UTC, datetime

from memory_tool.model import Json, Memory, MemoryType, State, StoredRow
from memory_tool.scope import Namespace

NOON = datetime(2025, 7, 1, 12, tzinfo=UTC)

PLAIN = Memory(
    id="0" * 32,
    namespace=Namespace(user="u1"),
    content="客户张先生偏好蓝色系产品",
    type=MemoryType.EVENT,
    version=1,
    created_at=NOON,
    updated_at=NOON,
)
"""A memory that has what every memory has, and nothing else."""


def row_of(memory: Memory) -> StoredRow:
    """A live row that holds ``memory``."""
    return StoredRow(
        memory=memory,
        ns_id=1,
        state=State.LIVE,
        nseq=1,
        vector_nseq=1,
        keyword_nseq=1,
        content_hash=bytes(32),
    )


def row_with(**metadata: Json) -> StoredRow:
    """A live row with this metadata."""
    return row_of(replace(PLAIN, metadata=metadata))
