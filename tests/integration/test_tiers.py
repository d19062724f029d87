"""Moves between tiers: what they change, what they leave, and what a kill leaves behind."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from memory_tool.errors import Unavailable
from memory_tool.model import MemoryId, NewMemory, OnDuplicate, Patch, Status
from memory_tool.port_values import Opening, PageRequest
from memory_tool.query import EVERYTHING
from memory_tool.scope import Scope
from memory_tool.write_changes import Remove, Revise
from tests.factories import ANNA, chunk_of, commit_of, put
from tests.integration.tier_house import CHINESE, ENGLISH, TierHouse, tier_house
from tests.services.postgres import Server

CANARY = "zorblax"
SCOPE = Scope.of(ANNA)


@pytest.fixture
def house(embedded_postgres: Server, tmp_path: Path) -> Iterator[TierHouse]:
    """An empty one."""
    with (
        embedded_postgres.database() as database,
        tier_house(database, tmp_path / "archive") as one,
    ):
        yield one


@pytest.fixture
def texts(house: TierHouse) -> dict[MemoryId, str]:
    """Three that are due to become cold, one of them with an old version; one due to be warm."""
    return house.fill()


def test_age_counts_from_the_latest_of_made_changed_and_used(house: TierHouse) -> None:
    """Not from when it happened: an imported history does not go cold the first night."""
    imported = NewMemory(content="a war ended", occurred_at=datetime(1945, 9, 2, tzinfo=UTC))
    ids = house.add(imported, "made long ago", "changed lately", "used lately", "a month old")
    made, changed, used, month = ids[1:]
    house.age(40, made, changed, used)
    house.age(20, month)
    house.write(Revise(memory_id=changed, patch=Patch(importance=2)))
    house.use(used)
    assert house.move() == 2
    assert house.tiers_of(*ids) == ["hot", "cold", "hot", "hot", "warm"]


def test_pinned_and_important_memories_stay_hot(house: TierHouse) -> None:
    """And come back when they become so."""
    ids = house.add(
        NewMemory(content="one", pinned=True), NewMemory(content="two", importance=4), "three"
    )
    house.age(40, *ids)
    assert house.move() == 1
    house.run("UPDATE threefold.memory SET pinned = true")
    assert house.move() == 1
    assert house.tiers_of(*ids) == ["hot", "hot", "hot"]


def test_a_move_is_no_new_version_and_leaves_the_vectors_alone(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """Its number is one of the log and of the keyword index; the audit says when and what."""
    before = house.rows()
    assert house.move() == 4
    after = house.rows()
    for memory_id in texts:
        old, new = before[memory_id], after[memory_id]
        for kept in ("version", "updated_at", "vector_nseq", "content_hash", "dedup_hash"):
            assert old[kept] == new[kept]
        assert new["nseq"] == new["keyword_nseq"] > old["nseq"]
    audited = house.read(
        "SELECT count(*) FROM threefold.audit"
        " WHERE action = 'tier' AND at > now() - interval '1 minute'"
    )
    assert audited == [(4,)]
    assert house.move() == 0


def test_a_cold_memory_is_a_summary_with_its_text_in_the_archive(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """Old versions too. Reading gives everything back, wherever it is kept."""
    english, chinese, short, _ = texts
    house.move()
    rows = house.rows()
    assert len(rows[english]["content"]) < 300 < len(ENGLISH)
    assert len(rows[chinese]["content"]) < 300 < len(CHINESE)
    assert rows[short]["content"] == "likes green tea"
    assert house.read("SELECT count(*) FROM threefold.memory_version") == [(0,)]
    house.assert_whole(texts)
    old, new = house.reader.history(SCOPE, english)
    assert (old.version, old.tags, old.content) == (1, (), ENGLISH)
    assert (new.version, new.tags, new.content) == (2, ("harbour",), ENGLISH)
    page = house.reader.page(SCOPE, PageRequest(condition=EVERYTHING, limit=10))
    assert {row.memory.id: row.memory.content for row in page} == texts


@pytest.mark.parametrize("lowered", [4, 100_000])
def test_words_of_lower_tiers_are_found_in_few_memories_and_in_many(
    house: TierHouse, texts: dict[MemoryId, str], lowered: int
) -> None:
    """Few are all looked at, of many the index on tokens knows which: the answer is the same."""
    (hot,) = house.add("hot tea")
    house.move()
    house.run("UPDATE threefold.ns_clock SET lowered = %(lowered)s", lowered=lowered)
    english, chinese, tea, coffee = texts
    ((ns_id,),) = house.read("SELECT ns_id FROM threefold.ns_clock")
    with house.records.snapshot(Opening(namespaces={ns_id: ANNA})) as snapshot:

        def found(*terms: str, within: frozenset[MemoryId] | None = None) -> set[MemoryId]:
            chunks = snapshot.lower_chunks_with(terms, 10, within=within)
            return {chunk.memory_id for chunk in chunks}

        assert snapshot.lowered == lowered
        assert found("tea") == {tea}
        assert found("ledger", "账本", "coffe") == {english, chinese, coffee}
        assert found("harbour", within=frozenset({english, hot})) == {english}
        assert found("harbour", within=frozenset({chinese})) == set()


def test_a_change_of_a_cold_memory_loads_it_first(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """What is stored again is whole: text, words and versions; and it is hot."""
    english = next(iter(texts))
    words = house.words(english)
    house.move()
    assert house.words(english) != words
    house.write(Revise(memory_id=english, patch=Patch(importance=3)))
    assert house.tiers_of(english) == ["hot"]
    assert house.words(english) == words
    versions = house.reader.history(SCOPE, english)
    assert [one.version for one in versions] == [1, 2, 3]
    assert {one.content for one in versions} == {ENGLISH}
    assert {one.tier.value for one in versions} == {"hot"}
    house.assert_whole(texts)


def test_a_new_text_for_a_cold_memory_keeps_the_old_one_as_a_version(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """As for any other memory."""
    english = next(iter(texts))
    house.move()
    change = put("a new text")
    house.write(
        Revise(
            memory_id=english,
            patch=Patch(content="a new text"),
            content_hash=change.content_hash,
            chunks=(chunk_of("a new text"),),
        )
    )
    assert [one.content for one in house.reader.history(SCOPE, english)] == [
        ENGLISH,
        ENGLISH,
        "a new text",
    ]


@pytest.mark.parametrize("rule", [OnDuplicate.SKIP, OnDuplicate.UPDATE])
def test_the_same_text_is_known_in_every_tier(
    house: TierHouse, texts: dict[MemoryId, str], rule: OnDuplicate
) -> None:
    """By its hash, which stays."""
    house.move()
    for memory_id, text in texts.items():
        new = put(NewMemory(content=text, on_duplicate=rule, importance=2))
        (result,) = house.records.commit(commit_of([new]))
        assert result.id == memory_id
        wanted = Status.DUPLICATE if rule is OnDuplicate.SKIP else Status.UPDATED
        assert result.status is wanted
    house.assert_whole(texts)


def test_a_key_is_known_in_every_tier(house: TierHouse) -> None:
    """Writing it again changes the memory that has it, cold or not."""
    (memory_id,) = house.add(NewMemory(content=ENGLISH, key="ledger"))
    house.age(40, memory_id)
    house.move()
    (result,) = house.records.commit(commit_of([put(NewMemory(content="new", key="ledger"))]))
    assert (result.id, result.status) == (memory_id, Status.UPDATED)
    assert house.memory(memory_id).content == "new"


def test_use_moves_up_again(house: TierHouse, texts: dict[MemoryId, str]) -> None:
    """By the nightly job, which asks the counts."""
    house.move()
    house.use(*texts)
    words = {memory_id: house.words(memory_id) for memory_id in texts}
    assert house.move() == 4
    assert set(house.tiers_of(*texts)) == {"hot"}
    house.assert_whole(texts)
    english = next(iter(texts))
    assert house.words(english) != words[english]
    assert [one.version for one in house.reader.history(SCOPE, english)] == [1, 2]


def test_what_lacks_a_vector_does_not_become_cold(house: TierHouse) -> None:
    """Its text is still wanted, to make the vector from."""
    (memory_id,) = house.add(ENGLISH)
    house.run("UPDATE threefold.chunk SET embedding = NULL")
    house.age(40, memory_id)
    assert house.move() == 0
    assert house.tiers_of(memory_id) == ["hot"]


def test_a_new_vector_is_made_of_the_text_and_not_of_its_summary(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """A change of model reaches cold memories too."""
    house.move()
    ((ns_id,),) = house.read("SELECT ns_id FROM threefold.ns_clock")
    with house.database.pool(Role.WORKER, size=1) as worker:
        spaces = PostgresSpaces(worker, house.archive)
        assert {one.memory_id: one.content for one in spaces.missing(2, [ns_id])} == texts
        for path in house.folder.iterdir():
            path.unlink()
        # Of those whose text was archived nothing can be made now; the others have theirs.
        left = {one.content for one in spaces.missing(2, [ns_id])}
        assert left - set(texts.values()) == {None}
        assert left != {None}


def test_a_deleted_memory_leaves_the_archive(house: TierHouse) -> None:
    """With the next upkeep: what stays is written to a new file, the old one goes."""
    first, second = house.add(f"{CANARY} {ENGLISH}", CHINESE)
    house.age(40, first, second)
    house.move()
    assert CANARY in house.archived_text()
    house.write(Remove(memory_id=first))
    house.upkeep()
    house.let_time_pass()
    house.upkeep()
    assert CANARY not in house.archived_text()
    assert "港口" in house.archived_text()
    house.assert_whole({second: CHINESE})
    house.write(Remove(memory_id=second))
    house.upkeep()
    house.let_time_pass()
    house.upkeep()
    assert list(house.folder.iterdir()) == []
    assert house.read("SELECT count(*) FROM threefold.archive_file") == [(0,)]


def test_a_reader_that_is_late_still_finds_the_old_file(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """It read the row a moment before the switch."""
    english, chinese, *_ = texts
    house.move()
    row = house.reader.fetch(SCOPE, [chinese])[chinese]
    house.write(Remove(memory_id=english))
    house.upkeep()
    assert row.archive is not None
    assert house.rows()[chinese]["archive"]["file"] != row.archive.file
    assert house.archive.read(row.archive).content == CHINESE


def test_what_a_crash_left_half_done_is_removed_after_a_day(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """A file that no row knows, whole or not; never one that a move is about to name."""
    house.move()
    (known,) = house.folder.iterdir()
    old, young = house.folder / "1-old.jsonl.zst", house.folder / "1-young.jsonl.zst.part"
    for path in (old, young):
        path.write_bytes(b"x")
    for path in (old, known):
        os.utime(path, (1, 1))
    house.upkeep()
    assert set(house.folder.iterdir()) == {known, young}


@pytest.mark.parametrize("damage", ["missing", "flipped", "swapped"])
def test_a_damaged_archive_shows_the_summary_and_says_so(
    house: TierHouse, texts: dict[MemoryId, str], damage: str
) -> None:
    """It is never loaded; a change is refused, a deletion is not."""
    english, chinese, *_ = texts
    house.move()
    (path,) = house.folder.iterdir()
    packed = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "flipped":
        path.write_bytes(packed[:-9] + bytes([packed[-9] ^ 1]) + packed[-8:])
    else:
        house.swap(english, chinese)
    shown = house.memory(english)
    assert shown.flags == ("archive_unavailable",)
    assert shown.content == house.rows()[english]["content"] != ENGLISH
    change = Revise(memory_id=english, patch=Patch(importance=3))
    (result,) = house.records.commit(commit_of([change]))
    assert result.status is Status.FAILED
    assert (result.error or "").startswith("Corrupt: the archive file")
    house.write(Remove(memory_id=chinese))
    house.upkeep()
    assert house.tiers.figures().stale == 1
    for memory_id in texts:
        if house.rows()[memory_id]["archive"]:
            house.write(Remove(memory_id=memory_id))
    house.upkeep()
    assert house.tiers.figures().files == 0


def test_an_archive_that_is_away_keeps_memories_where_they_are(
    house: TierHouse, texts: dict[MemoryId, str]
) -> None:
    """Nothing becomes cold whose text could not be put away."""
    house.folder.write_text("no folder")
    with pytest.raises(Unavailable, match="archive"):
        house.move()
    house.folder.unlink()
    assert house.tiers_of(*texts)[:3] == ["hot", "hot", "hot"]
    house.folder.mkdir()
    house.assert_whole(texts)
