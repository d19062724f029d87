"""Plans that adopt: memories that were kept elsewhere, and what they meet here."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from memory_tool.model import (
    Chunk,
    Memory,
    MemoryType,
    NewMemory,
    OnDuplicate,
    State,
    Status,
    StoredRow,
)
from memory_tool.port_values import Attached, Existing, WritePlan
from memory_tool.prepare import adopted
from memory_tool.scope import Namespace
from memory_tool.write_changes import Adopt, Change, Kept, Put, Remove
from memory_tool.write_plan import decide_duplicates, lookup_for, plan_changes

NOW: Final = datetime(2025, 7, 1, tzinfo=UTC)
YEARS_AGO: Final = NOW - timedelta(days=900)
HERE: Final = Namespace(user="u")
ONE_CHUNK: Final = (Chunk(ordinal=0, start=0, stop=1, language="en", words="x", bigrams=""),)


def put(text: str, *, name: str = "new", on_duplicate: OnDuplicate = OnDuplicate.SKIP) -> Put:
    """A prepared memory whose hash is its text."""
    return Put(
        memory_id=name,
        new=NewMemory(content=text, on_duplicate=on_duplicate),
        type=MemoryType.SEMANTIC,
        content_hash=text.encode(),
        dedup_hash=None if on_duplicate is OnDuplicate.KEEP else text.encode(),
        extra="",
        chunks=ONE_CHUNK,
    )


def stored(name: str, text: str) -> StoredRow:
    """A live row in its first version."""
    memory = Memory(
        id=name,
        namespace=HERE,
        content=text,
        type=MemoryType.SEMANTIC,
        version=1,
        created_at=YEARS_AGO,
        updated_at=YEARS_AGO,
    )
    return StoredRow(
        memory=memory,
        ns_id=1,
        state=State.LIVE,
        nseq=1,
        vector_nseq=1,
        keyword_nseq=1,
        content_hash=text.encode(),
        dedup_hash=text.encode(),
    )


def plan(*changes: Change, rows: tuple[StoredRow, ...] = ()) -> WritePlan:
    """What these changes do to these rows."""
    return plan_changes(
        changes,
        Existing(ns_id=1, nseq=10, now=NOW, rows=rows),
        namespace=HERE,
        decide=decide_duplicates,
        extra=lambda _memory: "",
    )


def adopt(text: str, *, version: int = 3, on_duplicate: OnDuplicate = OnDuplicate.SKIP) -> Adopt:
    """A memory "old" that was kept elsewhere for years."""
    kept = Kept(
        memory_id="old",
        created_at=YEARS_AGO,
        updated_at=NOW - timedelta(days=2),
        version=version,
        verified_at=YEARS_AGO,
        state=State.QUARANTINED,
        attached=Attached(relations=({"kind": "same", "to": "x"},)),
    )
    return adopted(put(text, on_duplicate=on_duplicate), kept)


def test_what_was_kept_elsewhere_stays_what_it_was() -> None:
    """Id, version, times and state; the number is the next one here."""
    made = plan(adopt("a"), put("b", name="new"))

    row = made.changes[0].row
    assert (row.memory.id, row.memory.version, row.nseq) == ("old", 3, 11)
    assert (row.memory.created_at, row.memory.verified_at) == (YEARS_AGO, YEARS_AGO)
    assert row.memory.updated_at == NOW - timedelta(days=2)
    assert row.state is State.QUARANTINED
    assert made.changes[0].attached == Attached(relations=({"kind": "same", "to": "x"},))
    assert made.changes[1].attached is None
    assert (made.results[0].status, made.results[0].version) == (Status.ADDED, 3)
    assert lookup_for([adopt("a")]).ids == ("old",)


@pytest.mark.parametrize(
    ("text", "version", "rule", "status"),
    [
        ("a", 1, OnDuplicate.SKIP, Status.SKIPPED),
        ("a", 1, OnDuplicate.UPDATE, Status.SKIPPED),
        ("b", 1, OnDuplicate.SKIP, Status.FAILED),
        ("a", 2, OnDuplicate.SKIP, Status.FAILED),
        ("b", 1, OnDuplicate.KEEP, Status.FAILED),
        ("b", 1, OnDuplicate.UPDATE, Status.UPDATED),
    ],
)
def test_it_meets_the_one_with_its_id(
    text: str, version: int, rule: OnDuplicate, status: Status
) -> None:
    """The same is left alone; another one is never overwritten unless somebody asks for it."""
    made = plan(adopt(text, version=version, on_duplicate=rule), rows=(stored("old", "a"),))

    assert made.results[0].status is status
    assert len(made.changes) == (status is Status.UPDATED)


def test_it_meets_its_own_tombstone() -> None:
    """What was deleted here does not come back through a door at the side."""
    (gone,) = plan(Remove(memory_id="old"), rows=(stored("old", "a"),)).changes
    made = plan(adopt("a"), rows=(gone.row,))

    assert made.results[0].status is Status.FAILED
    assert made.results[0].error == "WriteConflict: memory old was deleted here"
    assert made.changes == ()


def test_it_meets_its_text_under_another_id() -> None:
    """A duplicate is a duplicate wherever it was kept."""
    made = plan(adopt("a"), rows=(stored("other", "a"),))

    assert (made.results[0].status, made.results[0].id) == (Status.DUPLICATE, "other")


def test_the_same_one_twice_in_a_batch_is_stored_once() -> None:
    """Two files may have been joined."""
    made = plan(adopt("a"), adopt("a"))

    assert [result.status for result in made.results] == [Status.ADDED, Status.SKIPPED]
    assert len(made.changes) == 1
