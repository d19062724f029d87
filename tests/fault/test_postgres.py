"""The truth itself is away, or goes back to an older state."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Unavailable
from tests.acceptance.asking import MODES, texts
from tests.fault.outage import LONG, outage_of
from tests.fault.traffic import QUESTION, USER
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.own_postgres import OwnPostgres, own_postgres
from tests.services.secure_postgres import system_binaries

Report = Callable[[str, object], None]


@pytest.fixture
def postgres_of_test() -> Iterator[OwnPostgres]:
    """A server that the test may stop."""
    binaries = system_binaries()
    if binaries is None:
        pytest.skip("the system has no PostgreSQL from 15 on")
    with own_postgres(binaries) as server:
        yield server


def test_a_crash_in_the_middle_of_writes(
    postgres_of_test: OwnPostgres, folder: Path, record_property: Report
) -> None:
    """A write that was under way is tried again under its key: none is lost, none is doubled."""
    with outage_of(
        "PostgreSQL crashes and starts, three times",
        record_property,
        data_dir=folder,
        database_url=postgres_of_test.database.conninfo(Role.APP),
        errors_allowed=True,
    ) as outage:
        for _ in range(3):
            outage.traffic.let_pass(1.5)
            postgres_of_test.stop("immediate")
            postgres_of_test.start()
        outage.traffic.let_pass(1.0)
        outage.end()
        assert set(outage.journal.notes) == {""}


@LONG
def test_while_it_is_down_everything_is_refused(
    postgres_of_test: OwnPostgres, folder: Path, record_property: Report
) -> None:
    """A typed error that says to try later, and nothing half-written; then all goes on."""
    with outage_of(
        "PostgreSQL down",
        record_property,
        data_dir=folder,
        database_url=postgres_of_test.database.conninfo(Role.APP),
        errors_allowed=True,
    ) as outage:
        outage.traffic.let_pass(1.0)
        postgres_of_test.stop("immediate")
        memory = outage.memory
        with pytest.raises(Unavailable) as caught:
            memory.add("into nothing", user_id="another")
        assert caught.value.store == "postgres"
        with pytest.raises(Unavailable):
            memory.search(QUESTION, user_id=USER)
        health = memory.health()
        assert not health.ok
        assert health.stores["records"].startswith("Unavailable")
        postgres_of_test.start()
        outage.traffic.let_pass(1.0)
        outage.end()
        assert set(outage.journal.refused) <= {
            "add: Unavailable",
            "delete: Unavailable",
            "search: Unavailable",
        }
        assert texts(memory.get_all(user_id="another")) == []


def test_an_older_state_under_newer_indexes(
    postgres_of_test: OwnPostgres,
    elasticsearch: ElasticsearchServer,
    index_prefix: str,
    folder: Path,
    record_property: Report,
) -> None:
    """What the lost history held is never shown, and the indexes are built again by themselves.

    Both kinds of index: words on Elasticsearch, vectors in FAISS. Nobody opens the memory again.
    """
    with outage_of(
        "PostgreSQL restored to an older state",
        record_property,
        data_dir=folder,
        database_url=postgres_of_test.database.conninfo(Role.APP),
        elasticsearch_url=elasticsearch.url,
        elasticsearch_prefix=index_prefix,
        errors_allowed=True,
    ) as outage:
        memory = outage.memory
        outage.traffic.let_pass(1.0)
        outage.settle()
        postgres_of_test.stop()
        postgres_of_test.save()
        postgres_of_test.start()
        lost = [f"a lost note {number} about the harbour" for number in range(30)]
        memory.add_many(lost, user_id="lost")
        memory.add_many(lost, user_id=USER)
        outage.journal.begin(lost)
        outage.settle()
        postgres_of_test.stop()
        postgres_of_test.go_back()
        postgres_of_test.start()
        outage.journal.forget(lost)
        outage.traffic.resume()
        outage.traffic.let_pass(1.0)
        for mode in MODES:
            assert texts(memory.search(QUESTION, user_id="lost", mode=mode)) == []
        outage.end()
        # FAISS may still have had the generation that the older state names; Elasticsearch has not.
        assert outage.events.counts["target_reset"] in {1, 2}
        assert memory.search(QUESTION, user_id=USER).degraded == ()
