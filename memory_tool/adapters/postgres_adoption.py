"""What comes with a memory that was kept elsewhere: its old versions, relations and reviews."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from memory_tool.adapters.postgres_rows import id_array, json_text, row_image
from memory_tool.model import Memory, State, StoredRow
from memory_tool.port_values import Attached, RowChange
from memory_tool.text.normalise import content_hash

Step: TypeAlias = tuple[str, Mapping[str, object]]
"""The name of a statement, and its parameters."""


def attached_steps(ns_id: int, changes: Sequence[RowChange], *, versions: int) -> Iterator[Step]:
    """What to put down behind the rows; at most so many old versions of each."""
    adopted = [(change.row, change.attached) for change in changes if change.attached is not None]
    if not adopted:
        return
    yield "note_arrival", {"ns_id": ns_id, "ids": id_array(row.memory.id for row, _ in adopted)}
    images = [
        image for row, beside in adopted for image in _version_images(row, beside, kept=versions)
    ]
    relations = [
        {"id": row.memory.id, **one} for row, beside in adopted for one in beside.relations
    ]
    reviews = [{"id": row.memory.id, **one} for row, beside in adopted for one in beside.reviews]
    for name, found in (
        ("put_versions", images),
        ("put_relations", relations),
        ("put_reviews", reviews),
    ):
        if found:
            yield name, {"ns_id": ns_id, "found": json_text(found)}


def _version_images(
    row: StoredRow, beside: Attached, *, kept: int
) -> Iterator[Mapping[str, object]]:
    for memory, following in pairwise((*beside.versions[-kept:], row.memory)):
        yield {
            "id": row.memory.id,
            "version": memory.version,
            "image": version_image(memory, row.ns_id),
            "replaced_at": following.updated_at.isoformat(),
        }


def version_image(memory: Memory, ns_id: int) -> Mapping[str, object]:
    """An old version as ``to_jsonb`` of its row would have been."""
    hashed = content_hash(memory.content)
    row = StoredRow(
        memory=memory,
        ns_id=ns_id,
        state=State.LIVE,
        nseq=0,
        vector_nseq=0,
        keyword_nseq=0,
        content_hash=hashed,
    )
    image = {**row_image(RowChange(action="add", row=row, chunks=None)), "ns_id": ns_id}
    del image["action"]
    return {**image, "content_hash": f"\\x{hashed.hex()}"}
