"""Plans: what a commit does with what is there, as numbered row images."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from memory_tool.errors import Corrupt
from memory_tool.model import (
    UNSET,
    ArchivePlace,
    Chunk,
    Json,
    Memory,
    MemoryType,
    NewMemory,
    OnDuplicate,
    Patch,
    State,
    Status,
    StoredRow,
    Tier,
)
from memory_tool.port_values import Existing, Loaded, WritePlan
from memory_tool.scope import Namespace
from memory_tool.write_changes import Change, Complete, Move, Put, Remove, Retire, Revise
from memory_tool.write_plan import decide_duplicates, lookup_for, plan_changes

NOW = datetime(2025, 7, 1, tzinfo=UTC)
HERE = Namespace(user="u")
ONE_CHUNK = (Chunk(ordinal=0, start=0, stop=1, language="en", words="x", bigrams=""),)


def put(
    text: str,
    *,
    name: str = "new",
    key: str | None = None,
    on_duplicate: OnDuplicate = OnDuplicate.SKIP,
) -> Put:
    """A prepared memory whose hash is its text."""
    free = key is None and on_duplicate is not OnDuplicate.KEEP
    return Put(
        memory_id=name,
        new=NewMemory(content=text, key=key, on_duplicate=on_duplicate),
        type=MemoryType.SEMANTIC,
        content_hash=text.encode(),
        dedup_hash=text.encode() if free else None,
        extra="",
        chunks=ONE_CHUNK,
    )


def stored(
    name: str, text: str, *, number: int = 1, key: str | None = None, expired: bool = False
) -> StoredRow:
    """A live row, perhaps past its time."""
    memory = Memory(
        id=name,
        namespace=HERE,
        content=text,
        type=MemoryType.SEMANTIC,
        version=1,
        created_at=NOW - timedelta(days=1),
        updated_at=NOW - timedelta(days=1),
        key=key,
        metadata={"a": 1, "b": 2},
        expires_at=NOW - timedelta(seconds=1) if expired else None,
    )
    return StoredRow(
        memory=memory,
        ns_id=1,
        state=State.LIVE,
        nseq=number,
        vector_nseq=number,
        keyword_nseq=number,
        content_hash=text.encode(),
        dedup_hash=text.encode() if key is None else None,
    )


def plan(*changes: Change, rows: tuple[StoredRow, ...] = (), nseq: int = 10) -> WritePlan:
    """What these changes do to these rows."""
    return plan_changes(
        changes,
        Existing(ns_id=1, nseq=nseq, now=NOW, rows=rows),
        namespace=HERE,
        decide=decide_duplicates,
        extra=lambda _memory: "",
    )


def test_new_rows_take_the_next_numbers_without_a_gap() -> None:
    """A hole would look like a lost write to whoever reads the log."""
    made = plan(put("a", name="one"), put("b", name="two"))

    assert [change.row.nseq for change in made.changes] == [11, 12]
    assert [result.status for result in made.results] == [Status.ADDED, Status.ADDED]


def test_the_same_text_is_stored_once_also_within_a_batch() -> None:
    """The second is a duplicate of the first, with its id, and takes no number."""
    made = plan(put("a", name="one"), put("a", name="two"), put("b", name="three"))

    assert [(result.status, result.id) for result in made.results] == [
        (Status.ADDED, "one"),
        (Status.DUPLICATE, "one"),
        (Status.ADDED, "three"),
    ]
    assert [change.row.nseq for change in made.changes] == [11, 12]


@pytest.mark.parametrize(
    ("rule", "status", "numbers"),
    [
        (OnDuplicate.SKIP, Status.DUPLICATE, 0),
        (OnDuplicate.FAIL, Status.FAILED, 0),
        (OnDuplicate.KEEP, Status.ADDED, 1),
    ],
)
def test_a_duplicate_is_handled_as_asked(rule: OnDuplicate, status: Status, numbers: int) -> None:
    """Skip, fail or keep; update has a test of its own."""
    made = plan(put("a", on_duplicate=rule), rows=(stored("old", "a"),))

    assert made.results[0].status is status
    assert len(made.changes) == numbers


def test_a_key_is_an_upsert_that_keeps_the_old_version() -> None:
    """The new image has the next version and the old one is handed over to be kept."""
    old = stored("old", "before", key="k")
    made = plan(put("after", key="k"), rows=(old,))

    assert (made.results[0].status, made.results[0].version) == (Status.UPDATED, 2)
    assert made.changes[0].previous == old
    assert made.changes[0].row.memory.content == "after"


def test_an_expired_twin_makes_room_first() -> None:
    """Its hash would stand in the new row's way: it goes in the same commit, one number before."""
    made = plan(put("a"), rows=(stored("old", "a", expired=True),))

    assert [(change.action, change.row.memory.id, change.row.nseq) for change in made.changes] == [
        ("expire", "old", 11),
        ("add", "new", 12),
    ]


def test_a_patch_changes_what_it_names_and_nothing_else() -> None:
    """Metadata is merged one level deep, and None removes a name."""
    metadata: dict[str, Json] = {"b": None, "c": 3}
    made = plan(
        Revise(memory_id="old", patch=Patch(metadata=metadata, importance=4)),
        rows=(stored("old", "text"),),
    )

    memory = made.changes[0].row.memory
    assert memory.metadata == {"a": 1, "c": 3}
    assert memory.importance == 4
    assert memory.content == "text"
    assert made.changes[0].chunks is None


def test_each_index_hears_only_of_what_it_holds() -> None:
    """Importance is in no index; metadata in the keyword index; text in both."""
    rows = (stored("old", "text"),)
    importance = plan(Revise(memory_id="old", patch=Patch(importance=4)), rows=rows)
    metadata = plan(Revise(memory_id="old", patch=Patch(metadata={"c": 3})), rows=rows)
    text = plan(
        Revise(memory_id="old", patch=Patch(content="new"), content_hash=b"new", chunks=ONE_CHUNK),
        rows=rows,
    )

    numbers = [
        (one.changes[0].row.vector_nseq, one.changes[0].row.keyword_nseq)
        for one in (importance, metadata, text)
    ]
    assert numbers == [(1, 1), (1, 11), (11, 11)]


def test_a_patch_that_changes_nothing_is_not_written() -> None:
    """No number, no version."""
    made = plan(Revise(memory_id="old", patch=Patch(content="text")), rows=(stored("old", "text"),))

    assert made.changes == ()
    assert made.results[0].version == 1


def test_an_unexpected_version_is_refused() -> None:
    """Somebody else was first."""
    made = plan(
        Revise(memory_id="old", patch=Patch(importance=1), expected_version=7),
        rows=(stored("old", "text"),),
    )

    assert made.results[0].status is Status.FAILED
    assert made.results[0].error is not None
    assert made.results[0].error.startswith("VersionConflict")


def test_another_memory_with_the_new_text_is_in_the_way() -> None:
    """A text is stored once in a namespace, however it comes there."""
    made = plan(
        Revise(memory_id="old", patch=Patch(content="b"), content_hash=b"b", chunks=ONE_CHUNK),
        rows=(stored("old", "a"), stored("other", "b", number=2)),
    )

    assert made.changes == ()
    assert made.results[0].error is not None
    assert made.results[0].error.startswith("DuplicateMemory")


def test_a_deletion_keeps_numbers_and_no_content() -> None:
    """The row stays until every index has passed it, and says nothing any more."""
    made = plan(Remove(memory_id="old"), rows=(stored("old", "secret"),))

    row = made.changes[0].row
    assert row.state is State.DELETED
    assert (row.nseq, row.vector_nseq, row.keyword_nseq) == (11, 11, 11)
    assert "secret" not in repr(row)
    assert made.changes[0].chunks == ()


def test_a_repeated_deletion_says_so() -> None:
    """And an unknown id is not found."""
    first = plan(Remove(memory_id="old"), rows=(stored("old", "x"),))
    again = plan(Remove(memory_id="old"), rows=(first.changes[0].row,))
    unknown = plan(Remove(memory_id="never"))

    assert again.results[0].status is Status.ALREADY_DELETED
    assert unknown.results[0].status is Status.FAILED


def test_a_failed_change_leaves_its_neighbours_alone() -> None:
    """One bad item must not cost a batch."""
    made = plan(put("a", name="one"), Remove(memory_id="never"), put("b", name="two"))

    assert [result.status for result in made.results] == [
        Status.ADDED,
        Status.FAILED,
        Status.ADDED,
    ]
    assert [change.row.nseq for change in made.changes] == [11, 12]


def test_a_plan_looks_up_what_its_changes_may_meet() -> None:
    """Hashes of free texts, keys of keyed ones, ids of the rest."""
    lookup = lookup_for([put("a"), put("b", key="k"), Remove(memory_id="r")])

    assert (lookup.dedup_hashes, lookup.keys, lookup.ids) == ((b"a",), ("k",), ("r",))


def test_unset_is_not_none() -> None:
    """Clearing an expiry and leaving it alone are two things."""
    assert Patch().expires_at is UNSET
    assert Patch(expires_at=None).expires_at is None


def test_an_upsert_keeps_what_it_does_not_name() -> None:
    """Pinned and rated by a person, then written again by an agent that knows of neither."""
    old = stored("old", "before", key="k")
    memory = dataclasses.replace(old.memory, pinned=True, importance=5, tags=("kept",))
    rated = dataclasses.replace(old, memory=memory)
    made = plan(put("after", key="k"), rows=(rated,))

    after = made.changes[0].row.memory
    assert (after.content, after.pinned, after.importance) == ("after", True, 5)
    assert (after.tags, after.metadata) == (("kept",), {"a": 1, "b": 2})


def test_a_time_to_live_begins_by_the_stores_clock() -> None:
    """The client's clock may be wrong by hours: then the memory would go too early or too late."""
    short = dataclasses.replace(
        put("a code", key="k"), new=NewMemory(content="a code", key="k", ttl=timedelta(hours=1))
    )
    (added,) = plan(short).changes
    assert added.row.memory.expires_at == NOW + timedelta(hours=1)
    again = plan(short, rows=(stored("old", "another code", key="k"),))
    assert again.changes[0].row.memory.expires_at == NOW + timedelta(hours=1)


def archived(name: str, text: str) -> StoredRow:
    """A cold row whose text the archive keeps."""
    row = stored(name, "a summary")
    return dataclasses.replace(
        row,
        memory=dataclasses.replace(row.memory, tier=Tier.COLD),
        content_hash=text.encode(),
        dedup_hash=text.encode(),
        archive=ArchivePlace(file="f", at=0, line=0, sha256="0"),
    )


def test_a_move_takes_a_number_that_only_the_keyword_index_hears_of() -> None:
    """It is no new version, and the old image is none."""
    made = plan(Move(memory_id="old", tier=Tier.WARM, nseq=1), rows=(stored("old", "a"),))

    (change,) = made.changes
    row = change.row
    assert (row.nseq, row.vector_nseq, row.keyword_nseq) == (11, 1, 11)
    assert (row.memory.tier, row.memory.version) == (Tier.WARM, 1)
    assert row.memory.updated_at == NOW - timedelta(days=1)
    assert (change.action, change.previous, change.chunks) == ("tier", None, None)


@pytest.mark.parametrize(
    "move",
    [Move(memory_id="old", tier=Tier.WARM, nseq=7), Move(memory_id="old", tier=Tier.HOT, nseq=1)],
)
def test_a_move_of_what_changed_meanwhile_does_nothing(move: Move) -> None:
    """It was decided on another image; or somebody else did it."""
    made = plan(move, rows=(stored("old", "a"),))

    assert made.changes == ()
    assert made.results[0].status is Status.DUPLICATE


def test_a_change_of_a_cold_memory_starts_from_its_whole_text() -> None:
    """What the archive keeps comes back, and the memory is hot."""
    cold = archived("old", "the whole text")
    whole = dataclasses.replace(
        cold, memory=dataclasses.replace(cold.memory, content="the whole text")
    )
    existing = Existing(
        ns_id=1, nseq=10, now=NOW, rows=(cold,), whole=lambda _row: Loaded(row=whole)
    )
    made = plan_changes(
        [Revise(memory_id="old", patch=Patch(importance=2))],
        existing,
        namespace=HERE,
        decide=decide_duplicates,
        extra=lambda _memory: "",
    )

    (change,) = made.changes
    assert change.loaded == Loaded(row=whole)
    assert change.row.memory.content == "the whole text"
    assert (change.row.memory.tier, change.row.archive) == (Tier.HOT, None)
    assert (change.row.vector_nseq, change.row.keyword_nseq) == (1, 11)


def test_what_the_archive_does_not_give_out_is_not_changed() -> None:
    """And its neighbours are; a deletion needs no text."""

    def refuse(_row: StoredRow) -> Loaded:
        message = "damaged"
        raise Corrupt(message)

    rows = (archived("one", "a"), archived("two", "b"), stored("three", "c"))
    made = plan_changes(
        [
            Revise(memory_id="one", patch=Patch(importance=2)),
            Remove(memory_id="two"),
            Revise(memory_id="three", patch=Patch(importance=2)),
        ],
        Existing(ns_id=1, nseq=10, now=NOW, rows=rows, whole=refuse),
        namespace=HERE,
        decide=decide_duplicates,
        extra=lambda _memory: "",
    )

    assert [result.status for result in made.results] == [
        Status.FAILED,
        Status.DELETED,
        Status.UPDATED,
    ]
    assert made.results[0].error == "Corrupt: damaged"
    assert made.changes[0].row.archive is None


def test_only_what_has_expired_is_retired() -> None:
    """It may have been given more time since it was looked for."""
    made = plan(
        Retire(memory_id="late"),
        Retire(memory_id="live"),
        rows=(stored("late", "a", expired=True), stored("live", "b")),
    )

    assert [change.action for change in made.changes] == ["expire"]
    assert [result.status for result in made.results] == [Status.DELETED, Status.DUPLICATE]


def test_vectors_are_not_made_of_a_summary() -> None:
    """They would take the place of those of the text."""
    change = Complete(memory_id="old", content_hash=b"a", chunks=ONE_CHUNK)
    assert plan(change, rows=(archived("old", "a"),)).changes == ()
