"""Rows travel to a real Elasticsearch, and nothing that goes wrong there stays unnoticed."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from memory_tool.adapters.elasticsearch_bulk import write_documents
from memory_tool.adapters.elasticsearch_connection import Access, ElasticsearchConnection
from memory_tool.adapters.elasticsearch_layout import Document, KeywordLayout, documents
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Corrupt, InputError, SettingsError, ThreefoldError, Unavailable
from memory_tool.model import Patch
from memory_tool.port_values import NO_POINTER, ChangeRow, KeywordQuery
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import present
from tests.factories import chunk_of, new_id, unit_vector
from tests.integration.elasticsearch_house import House, house_at
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.postgres import Database
from tests.services.proxy import ElasticsearchProxy
from tests.services.proxy_modes import Answer


@pytest.fixture
def house(
    elasticsearch: ElasticsearchServer, database: Database, index_prefix: str
) -> Iterator[House]:
    """An empty store with empty indexes."""
    with house_at(elasticsearch, database, prefix=index_prefix) as house:
        yield house


def change_row(memory_id: str, text: str, *, version: int, live: bool = True) -> ChangeRow:
    """A row as a target gets it."""
    return ChangeRow(
        ns_id=1,
        memory_id=memory_id,
        nseq=version,
        version=version,
        live=live,
        extra="",
        chunk_high=1,
        chunks=(chunk_of(text),) if live else (),
    )


def documents_of(row: ChangeRow) -> list[Document]:
    """Its documents in a keyword index."""
    return list(documents(row, KeywordLayout(tokeniser=1), space=None))


def test_rows_travel_and_the_clock_says_so(house: House) -> None:
    """Add, change and delete reach both indexes, with the mark that the truth knows."""
    first, second = house.truth.add("green tea", "black coffee")
    house.apply()
    assert house.found("tea") == [first]
    (nearest, *_) = house.vectors().search(
        unit_vector("black coffee"), [house.truth.number()], depth=5
    )
    assert (nearest.memory_id, nearest.version) == (second, 2)
    house.truth.write(Revise(memory_id=first, patch=Patch(tags=("drinks",))))
    house.truth.write(Remove(memory_id=second))
    house.apply()
    assert house.found("tea drinks coffee") == [first]
    assert house.keywords().clock(house.truth.number()) == house.truth.clock() == 4
    assert house.log.knows(house.pointer().target, str(house.keywords().mark))
    assert house.figures.lag(house.pointer().target).rows == 0


def test_lag_is_told_in_rows_and_seconds(house: House) -> None:
    """Health shows how far an index is behind."""
    house.truth.add("one")
    house.apply()
    house.truth.add("two", "three")
    lag = house.figures.lag(house.pointer().target)
    assert lag.rows == 2
    assert 0 <= lag.seconds < 60


def test_a_deletion_outlives_a_late_write_of_an_older_version(
    house: House, elasticsearch: ElasticsearchServer
) -> None:
    """Elasticsearch forgets deletions after a minute; a document without fields it keeps."""
    (memory_id,) = house.truth.add("green tea")
    house.apply()
    house.truth.write(Remove(memory_id=memory_id))
    house.apply()
    old = change_row(memory_id, "green tea", version=1)
    connection = house.indexes.keyword_index().generations.connection
    alias = f"{house.pointer().locator}-write"
    assert write_documents(connection, alias, documents=documents_of(old)) == ()
    with elasticsearch.client() as client:
        client.indices.refresh(index=house.pointer().locator)
    assert house.found("tea") == []


def test_a_late_bulk_to_an_old_generation_fails(house: House) -> None:
    """It must neither revive a memory nor make a new index with guessed fields."""
    house.truth.add("green tea")
    house.apply()
    old = house.pointer()
    applier = house.applier()
    applier.distrust(old.target, "a test")
    applier.run(force=True)
    assert house.pointer().generation == old.generation + 1
    connection = house.indexes.keyword_index().generations.connection
    row = change_row(new_id(), "late", version=9)
    with pytest.raises(Corrupt, match="alias"):
        write_documents(connection, f"{old.locator}-write", documents=documents_of(row))
    names = [there.index for there in house.indexes.keyword_index().generations.all()]
    assert names == [old.locator, house.pointer().locator]


def test_only_the_generation_before_is_kept(house: House) -> None:
    """For a way back; more would fill the disks."""
    house.truth.add("green tea")
    house.apply()
    for _ in range(3):
        applier = house.applier()
        applier.distrust(house.pointer().target, "a test")
        applier.run(force=True)
    numbers = [there.number for there in house.indexes.keyword_index().generations.all()]
    assert numbers == [3, 4]


def test_two_writers_at_once_leave_what_the_truth_has(house: House) -> None:
    """Leases are for efficiency: without any, one writer goes on and the other tries again."""
    ids = house.truth.add(*(f"tea number {number}" for number in range(30)))
    done = threading.Event()
    wrong: list[Exception] = []

    def bring_forward() -> None:
        applier = house.applier()
        while not done.is_set():
            try:
                applier.run(force=True)
            except Unavailable:
                continue
            except ThreefoldError as error:
                wrong.append(error)

    threads = [threading.Thread(target=bring_forward) for _ in range(2)]
    for thread in threads:
        thread.start()
    for memory_id in ids[::3]:
        house.truth.write(Remove(memory_id=memory_id))
        house.truth.add(f"more tea {memory_id}")
    done.set()
    for thread in threads:
        thread.join()
    house.apply()
    assert wrong == []
    assert len(house.found("tea")) == 30
    assert not {*ids[::3]} & {*house.found("tea")}
    assert house.keywords().clock(house.truth.number()) == house.truth.clock()


def test_a_lost_index_is_built_again(house: House, elasticsearch: ElasticsearchServer) -> None:
    """Somebody deleted it: a search says so, the next run heals it."""
    house.truth.add("green tea")
    house.apply()
    lost = house.pointer()
    with elasticsearch.client() as client:
        client.indices.delete(index=lost.locator)
    with pytest.raises(Corrupt, match="missing"):
        house.found("tea")
    house.apply()
    assert house.pointer().generation > lost.generation
    assert len(house.found("tea")) == 1


def test_a_question_of_too_many_words_is_refused_as_such(house: House) -> None:
    """It is no damage: nothing has to be built again for it."""
    house.truth.add("green tea")
    house.apply()
    with pytest.raises(InputError, match="such a question"):
        house.found(" ".join(f"word{number}" for number in range(12_000)))
    assert len(house.found("tea")) == 1


def test_a_changed_mapping_is_an_error_that_names_the_command(
    house: House, elasticsearch: ElasticsearchServer
) -> None:
    """A field that somebody opened would take guesses; a copy is built anew, never patched."""
    house.truth.add("green tea")
    house.apply()
    spoilt = house.pointer()
    with elasticsearch.client() as client:
        client.indices.put_mapping(index=spoilt.locator, dynamic="true")
    with pytest.raises(Corrupt, match=r"mappings\.dynamic is true, not strict") as caught:
        house.found("tea")
    assert caught.value.command == "threefold rebuild --full"
    house.apply()
    assert house.pointer() == spoilt, "an applier that wrote there before has no need to look"
    applier = house.applier()
    applier.distrust(spoilt.target, str(caught.value))
    applier.run(force=True)
    assert len(house.found("tea")) == 1


def test_a_template_of_the_server_may_not_change_our_fields(
    house: House, elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """Every index that is built would be wrong again: that is for people to mend."""
    template = {
        "settings": {"index": {"similarity": {"words": {"type": "BM25", "k1": 0.5, "b": 0.75}}}},
        "mappings": {"properties": {"surprise": {"type": "keyword"}}, "dynamic_templates": []},
    }
    with elasticsearch.client() as client:
        client.indices.put_index_template(
            name=index_prefix,
            index_patterns=[f"{index_prefix}-*"],
            priority=999,
            template={**template, "aliases": {}},
        )
        try:
            house.truth.add("green tea")
            house.apply()
            assert len(house.found("tea")) == 1, "what a template adds beside ours is harmless"
        finally:
            client.indices.delete_index_template(name=index_prefix)


def test_copies_follow_their_settings(
    elasticsearch: ElasticsearchServer, database: Database, index_prefix: str
) -> None:
    """Replicas and refresh are changed in place; nobody rebuilds an index for that."""
    with house_at(elasticsearch, database, prefix=index_prefix) as house:
        house.truth.add("green tea")
        house.apply()
        before = house.pointer()
    changes = {"elasticsearch_replicas": 1, "elasticsearch_refresh_seconds": 7.0}
    with house_at(elasticsearch, database, prefix=index_prefix, changes=changes) as house:
        house.apply()
        assert house.pointer() == before
        with elasticsearch.client() as client:
            answer = client.indices.get_settings(index=before.locator)
        settings = answer[before.locator]["settings"]["index"]
        assert (settings["number_of_replicas"], settings["refresh_interval"]) == ("1", "7000ms")


def test_other_knobs_of_bm25_build_the_index_anew(
    elasticsearch: ElasticsearchServer, database: Database, index_prefix: str
) -> None:
    """Half an index with old knobs and half with new ones would rank by age."""
    with house_at(elasticsearch, database, prefix=index_prefix) as house:
        house.truth.add("green tea", "tea tea tea tea tea tea")
        house.apply()
        before = house.pointer()
    changes = {"elasticsearch_bm25": ("words:0:0.75",)}
    with house_at(elasticsearch, database, prefix=index_prefix, changes=changes) as house:
        with pytest.raises(Unavailable, match="other settings"):
            house.found("tea")
        house.apply()
        assert house.pointer().generation > before.generation
        query = KeywordQuery(words=("tea",), bigrams=())
        hits = house.keywords().search(query, [house.truth.number()], depth=9)
        scores = {hit.score for hit in hits}
        assert len(scores) == 1, "with k1 = 0 repetitions count for nothing"


def test_an_index_restored_from_a_snapshot_is_noticed(
    house: House, elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """It may have been taken in the middle of a batch: its clocks prove nothing."""
    (kept,) = house.truth.add("green tea")
    house.apply()
    name = house.pointer().locator
    with elasticsearch.client() as client:
        client.snapshot.create_repository(
            name=index_prefix,
            repository={"type": "fs", "settings": {"location": index_prefix}},
        )
        client.snapshot.create(
            repository=index_prefix, snapshot="one", indices=name, wait_for_completion=True
        )
        (later,) = house.truth.add("black tea")
        house.apply()
        client.indices.delete(index=name)
        client.snapshot.restore(
            repository=index_prefix, snapshot="one", indices=name, wait_for_completion=True
        )
        client.snapshot.delete(repository=index_prefix, snapshot="one")
        client.snapshot.delete_repository(name=index_prefix)
    # Before anybody notices it is merely behind, by its own clock, and the truth adds the rest.
    assert house.keywords().clock(house.truth.number()) == 1
    house.apply()
    assert house.pointer().locator != name
    assert {*house.found("tea")} == {kept, later}


def test_a_truth_of_another_history_is_noticed(house: House) -> None:
    """PostgreSQL was restored: the same numbers may stand for other rows."""
    house.truth.add("green tea")
    house.apply()
    before = house.pointer()
    with house.database.admin() as connection:
        connection.execute("DELETE FROM threefold.index_mark")
    house.apply()
    assert house.pointer().generation > before.generation
    assert len(house.found("tea")) == 1


def test_a_rebuild_that_fails_goes_on_with_the_same_index(
    house: House, elasticsearch_proxy: ElasticsearchProxy, index_prefix: str
) -> None:
    """A night of refused bulks must not leave a hundred indices behind."""
    with house_at(elasticsearch_proxy.server, house.database, prefix=index_prefix) as slow:
        slow.truth.add("green tea", "black tea")
        slow.apply()
        applier = slow.applier()
        applier.distrust(slow.pointer().target, "a test")
        with elasticsearch_proxy.doing(Answer(429, only="_bulk")):
            for _ in range(3):
                with pytest.raises(Unavailable):
                    applier.run(force=True)
        generations = slow.indexes.keyword_index().generations
        assert len(generations.all()) <= 2
        applier.run(force=True)
        assert len(generations.all()) == 2
        assert len(slow.found("tea")) == 2


def test_the_generation_before_goes_when_it_is_no_longer_needed(house: House) -> None:
    """Memories that were deleted since would stay in it."""
    house.truth.add("green tea")
    house.apply()
    applier = house.applier()
    applier.distrust(house.pointer().target, "a test")
    applier.run(force=True)
    generations = house.indexes.keyword_index().generations
    read = generations.named(house.pointer().locator)
    assert read is not None
    renewal = house.renewal(house.target())
    renewal.keep()
    assert len(generations.all()) == 2
    with house.database.connection(Role.WORKER) as connection:
        connection.execute(
            "UPDATE threefold.index_generation SET left_at = left_at - interval '40 hours'"
        )
    renewal.keep()
    assert generations.all() == [read]
    assert len(house.found("tea")) == 1


def test_whoever_publishes_first_is_not_overwritten(house: House) -> None:
    """Two hosts build the first index at once: the loser tries again, on the winner's."""
    house.truth.add("green tea")
    house.apply()
    before = house.pointer()
    late = replace(before, generation=9, locator="another")
    assert not house.log.publish(late, base_mark=NO_POINTER)
    assert house.pointer() == before


def test_a_batch_tells_only_what_its_own_settings_made(
    elasticsearch: ElasticsearchServer, database: Database, index_prefix: str
) -> None:
    """A process with other settings, or an older version, may not have a good index rebuilt."""
    with house_at(elasticsearch, database, prefix=index_prefix) as house:
        house.truth.add("green tea")
        house.apply()
        changes = {"elasticsearch_bm25": ("words:0.5:0.5",)}
        with (
            house_at(elasticsearch, database, prefix=index_prefix, changes=changes) as other,
            pytest.raises(Unavailable, match="give all processes the same"),
        ):
            other.found("tea")
        assert len(house.found("tea")) == 1


def test_an_index_that_lacks_a_chunk_is_not_read(house: House) -> None:
    """No index replaces another unverified: it is compared with the truth, item by item."""
    house.truth.add("green tea", "black tea")
    house.apply()
    before = house.pointer()
    renewal = house.renewal(house.target())
    renewal.begin()
    successor = present(renewal.successor())
    base = successor.base()
    with house.log.changes(successor.name, "keyword", base=base, limit=100) as batch:
        successor.apply(replace(batch, rows=iter(list(batch.rows)[:1])), house.log)
    applier = house.applier()
    applier.renew(before.target, "a test")
    with pytest.raises(Corrupt, match="differs from the truth"):
        applier.run(force=True)
    assert house.pointer() == before
    applier.run(force=True)
    assert house.pointer().generation > before.generation
    assert len(house.found("tea")) == 2


def test_an_address_that_is_none_is_a_clear_error() -> None:
    """Told when the store is opened, without the password that the address may hold."""
    with pytest.raises(SettingsError, match="elasticsearch_url"):
        ElasticsearchConnection(Access(hosts=("nonsense",)))
    assert "secret" not in repr(Access(hosts=("https://u:secret@host:9200",), password="secret"))
