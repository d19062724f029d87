"""Time: days, zones, ends, versions, and facts that change."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import InvalidTime, NotFound, VersionConflict
from tests.acceptance.asking import found, ids, seen, statuses, texts

SHANGHAI = timezone(timedelta(hours=8))


def test_a_bare_date_is_a_day_of_the_zone(mine: MemoryManage) -> None:
    """Complaint 51, mem0ai/mem0 issue 4402: zone hard-coded to US/Pacific, filters off by a day."""
    mine.add("breakfast", occurred_at=datetime(2025, 7, 2, 7, 30, tzinfo=SHANGHAI))
    mine.add("midnight snack", occurred_at=datetime(2025, 7, 1, 23, 59, tzinfo=SHANGHAI))
    second = date(2025, 7, 2)
    at_home = mine.get_all(since=second, until=second, tz="Asia/Shanghai")
    assert texts(at_home) == ["breakfast"]
    # In Greenwich it was half past eleven of the evening before.
    assert texts(mine.get_all(since=second, tz="UTC")) == []
    assert len(mine.get_all(filters={"occurred_at": "2025-07-01"}, tz="UTC")) == 2
    both = {"event_time": {"gte": "2025-07-01", "lte": "2025-07-02"}}
    assert len(mine.get_all(filters=both, tz="Asia/Shanghai")) == 2


def test_a_time_comes_back_as_the_same_instant(mine: MemoryManage) -> None:
    """Complaint 53, MemTensor/MemOS issue 2369: UTC is told as local time, eight hours off."""
    instant = datetime(2025, 7, 2, 7, 30, tzinfo=SHANGHAI)
    for given in (instant, instant.isoformat(), instant.timestamp()):
        id_ = mine.add("the same moment", occurred_at=given, on_duplicate="keep").id  # type: ignore[arg-type] # seconds are taken too
        told = mine.get(id_).occurred_at
        assert told == instant
        assert told is not None
        assert told.utcoffset() == timedelta(0)
    for item in mine.get_all():
        assert abs(item.created_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_new_fact_replaces_the_old_one_of_its_key(mine: MemoryManage) -> None:
    """Complaint 54, mem0ai/mem0 issues 5867, 4896 and 5576: old and new fact both returned."""
    first = mine.add("Anna lives in Berlin", key="anna/home", metadata={"by": "letter"})
    second = mine.add("Anna lives in Madrid", key="anna/home", metadata={"sure": True})
    assert statuses([*first, *second]) == ["added", "updated"]
    assert first.id == second.id
    assert seen(mine, "where does Anna live: Berlin or Madrid") == {"Anna lives in Madrid"}
    assert mine.get(first.id).metadata == {"by": "letter", "sure": True}


def test_a_key_retires_nothing_but_its_own_fact(memory: MemoryManage, user: str) -> None:
    """Complaint 55, getzep/graphiti issue 1728: unrelated facts retire each other."""
    memory.add("Anna lives in Berlin", key="anna/home", user_id=user)
    memory.add("Anna lives in Berlin, says Ben", user_id=user)
    memory.add("Anna lives in Berlin", key="anna/home", user_id=f"{user}-b")
    memory.add("Anna lives in Madrid", key="anna/home", user_id=user)
    stays = {"Anna lives in Berlin, says Ben", "Anna lives in Madrid"}
    assert seen(memory, "Anna lives", user_id=user) == stays
    assert seen(memory, "Anna lives", user_id=f"{user}-b") == {"Anna lives in Berlin"}


def test_two_periods_of_one_fact_stay_two(mine: MemoryManage) -> None:
    """Complaint 56, getzep/graphiti issue 1865: two periods of the same fact collapse into one."""
    early, late = datetime(2021, 3, 1, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC)
    for start in (early, late):
        mine.add("Anna works for Acme", occurred_at=start, on_duplicate="keep")
    assert [item.occurred_at for item in mine.get_all()] == [late, early]
    then = mine.search("works for Acme", until="2022-01-01T00:00:00Z")
    assert [item.occurred_at for item in then] == [early]
    now = mine.search("works for Acme", since="2022-01-01T00:00:00Z")
    assert [item.occurred_at for item in now] == [late]


def test_an_expired_memory_is_gone_at_once(mine: MemoryManage) -> None:
    """Complaint 57, mem0ai/mem0 issue 5588, OpenViking pull 1109, MemWal issue 297: a TTL."""
    id_ = mine.add("the code for today is 1234", ttl=3600).id
    mine.apply_now()
    assert seen(mine, "code for today") == {"the code for today is 1234"}
    mine.update(id_, expires_at=datetime.now(UTC))
    assert seen(mine, "code for today") == set()
    for read in (mine.get, mine.history, mine.delete):
        with pytest.raises(NotFound):
            read(id_)
    assert statuses(mine.add("the code for today is 1234")) == ["added"]


def test_a_memory_may_be_stored_with_its_end_behind_it(mine: MemoryManage) -> None:
    """An import of old memories must not bring expired ones back to life."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert statuses(mine.add("long gone", expires_at=past)) == ["added"]
    assert seen(mine, "long gone") == set()
    far = mine.add("still here", ttl=timedelta(days=1)).id
    end = mine.get(far).expires_at
    assert end is not None
    assert abs(end - datetime.now(UTC) - timedelta(days=1)) < timedelta(minutes=5)


def test_a_fact_is_corrected_and_what_was_believed_stays_known(mine: MemoryManage) -> None:
    """Complaint 58, vectorize-io/hindsight pull 1395 and issue 2696: correct and forget."""
    id_ = mine.add("the bridge opens in May").id
    believed = mine.get(id_).updated_at
    mine.update(id_, content="the bridge opens in June")
    assert found(mine, "bridge opens") == {"the bridge opens in June"}
    assert mine.get(id_, as_of=believed).memory == "the bridge opens in May"
    assert mine.get(id_, as_of=datetime.now(UTC).isoformat()).memory == "the bridge opens in June"
    with pytest.raises(NotFound):
        mine.get(id_, as_of=believed - timedelta(days=1))
    with pytest.raises(InvalidTime):
        mine.get(id_, as_of=datetime(2025, 7, 1))  # noqa: DTZ001 - the mistake to be refused


def test_every_version_can_be_read_again(mine: MemoryManage) -> None:
    """Complaint 59, MystenLabs/MemWal issue 509, KiroCrew issue 7241: version history, please."""
    id_ = mine.add("draft one", metadata={"by": "Anna"}).id
    mine.update(id_, content="draft two", expected_version=1)
    mine.update(id_, metadata={"by": "Ben"}, expected_version=2)
    history = mine.history(id_)
    assert [item.version for item in history] == [1, 2, 3]
    assert texts(history) == ["draft one", "draft two", "draft two"]
    assert [item.metadata["by"] for item in history] == ["Anna", "Anna", "Ben"]
    assert mine.get(id_, version=2).memory == "draft two"
    with pytest.raises(VersionConflict):
        mine.update(id_, content="draft three", expected_version=2)
    with pytest.raises(NotFound):
        mine.get(id_, version=4)


def test_ten_old_versions_are_kept(mine: MemoryManage) -> None:
    """History has a bound, and losing its oldest end never touches the newest."""
    id_ = mine.add("count 1").id
    for number in range(2, 15):
        mine.update(id_, content=f"count {number}")
    assert texts(mine.history(id_)) == [f"count {number}" for number in range(4, 15)]


def test_a_listing_goes_by_event_time(mine: MemoryManage) -> None:
    """A diary that is typed in later still reads in the order of its days."""
    noon = datetime(2024, 5, 5, 12, tzinfo=UTC)
    for hours in (2, 0, 1):
        mine.add(f"at {hours}", occurred_at=noon + timedelta(hours=hours))
    mine.add("just now")
    assert texts(mine.get_all()) == ["just now", "at 2", "at 1", "at 0"]
    assert ids(mine.get_all(since=noon + timedelta(hours=1), until=noon + timedelta(hours=1))) == [
        mine.get_all().results[2].id
    ]
