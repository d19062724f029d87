"""An Elasticsearch behind a network that misbehaves: both arms of searches and two targets."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

import pytest

from memory_tool.errors import Degraded
from memory_tool.query import Arm
from tests.acceptance.asking import ids
from tests.acceptance.opening import CANARY
from tests.fault.outage import LONG, Outage, outage_of
from tests.fault.traffic import QUESTION, USER
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.postgres import Database
from tests.services.proxy import ElasticsearchProxy
from tests.services.proxy_modes import (
    Answer,
    BlackHole,
    Cut,
    Delay,
    PartialBulk,
    Pass,
    Refuse,
    Reset,
)

Opener: TypeAlias = Callable[..., AbstractContextManager[Outage]]

OUTAGES: Final = (
    pytest.param("every answer 3 s late", Delay(3.0), marks=LONG),
    pytest.param("a black hole", BlackHole()),
    pytest.param("every connection cut", Cut()),
    pytest.param("nobody listens", Refuse(), marks=LONG),
    pytest.param("a reset amid each answer", Reset(200)),
    pytest.param("429 to everything", Answer(429)),
    pytest.param("503 to everything", Answer(503), marks=LONG),
)


@pytest.fixture
def opened(
    folder: Path,
    database_url: str,
    elasticsearch_proxy: ElasticsearchProxy,
    index_prefix: str,
    record_property: Callable[[str, object], None],
) -> Opener:
    """Opens a memory behind the proxy."""

    def open_it(name: str, **settings: Any) -> AbstractContextManager[Outage]:  # noqa: ANN401 - those of open
        return outage_of(
            name,
            record_property,
            data_dir=folder,
            database_url=database_url,
            elasticsearch_url=elasticsearch_proxy.server.url,
            elasticsearch_prefix=index_prefix,
            **settings,
        )

    return open_it


@pytest.mark.parametrize(("name", "mode"), OUTAGES)
def test_a_server_that_is_out_of_reach(
    name: str, mode: Pass, opened: Opener, elasticsearch_proxy: ElasticsearchProxy
) -> None:
    """Searches go on over PostgreSQL and say so, writes as if nothing were; then all heals."""
    with opened(name, vector_backend="elasticsearch") as outage:
        outage.traffic.let_pass(1.0)
        with elasticsearch_proxy.doing(mode):
            outage.until(lambda: all(outage.went(f"{arm} index", "down") for arm in Arm))
            outage.traffic.let_pass(1.0)
            with pytest.raises(Degraded):
                outage.memory.search(QUESTION, user_id=USER, on_degraded="raise")
        outage.end()
        for part in ("keyword index", "vector index"):
            went = outage.events.conditions[part]
            assert went[:2] == ["suspect", "down"]
            assert went[-2:] == ["catching up", "up"]
        # Nothing was built anew for it, and the log tells it once, not each second.
        assert outage.events.counts["index_created"] == 2
        assert outage.events.counts["target_failed"] <= 4


def test_one_index_that_is_away_keeps_the_other_from_nothing(
    opened: Opener, elasticsearch_proxy: ElasticsearchProxy
) -> None:
    """FAISS folds on while the words' index can't be reached, and answers in full."""
    with opened("words cut off, FAISS here", vector_backend="faiss") as outage:
        outage.traffic.let_pass(1.0)
        with elasticsearch_proxy.doing(Refuse()):
            outage.traffic.let_pass(1.0)
            outage.traffic.pause()
            outage.until(lambda: outage.lag("vector index") == 0)
            assert outage.lag("keyword index") > 0
            answer = outage.memory.search(QUESTION, user_id=USER, mode="vector")
            assert answer.degraded == ()
            outage.traffic.resume()
        outage.end()
        assert set(outage.journal.notes) <= {"", "keyword"}


def test_a_store_opens_while_its_elasticsearch_is_away(
    opened: Opener, elasticsearch_proxy: ElasticsearchProxy
) -> None:
    """Writes are accepted and searches whole, before an index ever was and after."""
    elasticsearch_proxy.behave(Refuse())
    away = opened("opened while it was away", vector_backend="elasticsearch", settled=False)
    with away as outage:
        outage.traffic.let_pass(1.0)
        elasticsearch_proxy.behave(Pass())
        outage.end()
    elasticsearch_proxy.behave(BlackHole())
    hanging = opened("opened while it hangs", vector_backend="elasticsearch", settled=False)
    with hanging as outage:
        found = outage.memory.search(QUESTION, user_id=USER, limit=1000, threshold=0.0)
        assert {note.part for note in found.degraded} == {"keyword", "vector"}
        assert len(found) > 10
        elasticsearch_proxy.behave(Pass())
        outage.end()


@pytest.mark.parametrize("status", [429, pytest.param(503, marks=LONG)])
def test_bulks_of_which_some_items_fail_for_now(
    status: int, opened: Opener, elasticsearch_proxy: ElasticsearchProxy
) -> None:
    """A bulk is a success even if items of it failed: each is looked at, and none is left out."""
    mode = PartialBulk(status, every=3, holding="harbour")
    with opened(f"{status} to every third item of bulks") as outage:
        with elasticsearch_proxy.doing(mode):
            outage.traffic.let_pass(5.0)
            assert outage.memory.health().conditions["keyword index"] == "up"
        outage.end()
        assert set(outage.journal.notes) == {""}
        assert outage.events.counts["index_created"] == 1


def test_documents_that_are_refused_for_good_are_found_all_the_same(
    opened: Opener, elasticsearch_proxy: ElasticsearchProxy, database: Database
) -> None:
    """They become dead letters, which searches take from the truth; others pass.

    When such a memory changes it is delivered anew.
    """
    with opened("400 to one document of bulks") as outage:
        outage.traffic.let_pass(1.0)
        with elasticsearch_proxy.doing(PartialBulk(400, every=1, holding=CANARY)):
            text = f"a note about the {CANARY} in the harbour"
            outage.journal.begin([text])
            refused = outage.memory.add(text, user_id=USER).id
            outage.journal.acknowledge([text])
            outage.traffic.let_pass(1.0)
            outage.traffic.pause()
            outage.until(lambda: outage.lag("keyword index") == 0)
            assert dead_letters(database) == [refused]
            answer = outage.memory.search(CANARY, user_id=USER, mode="keyword")
            assert (ids(answer), answer.degraded) == ([refused], ())
            outage.traffic.resume()
        outage.memory.update(refused, tags=("healed",), user_id=USER)
        outage.remarks.append("the refused document is found in every answer")
        outage.end()
        assert dead_letters(database) == []
        assert ids(outage.memory.search(CANARY, user_id=USER, mode="keyword")) == [refused]


def dead_letters(database: Database) -> list[str]:
    """The memories that an index can't take, as the store notes them."""
    with database.admin() as connection:
        found = connection.execute("SELECT memory_id FROM threefold.dead_letter").fetchall()
    return [UUID(str(memory_id)).hex for (memory_id,) in found]


def test_an_index_that_was_deleted_behind_our_back(
    opened: Opener, elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """The next search says so, and it is built again, completely."""
    with opened("indices deleted", vector_backend="elasticsearch") as outage:
        outage.traffic.let_pass(1.0)
        outage.settle()
        with elasticsearch.client() as client:
            for name in client.indices.get(index=f"{index_prefix}*"):
                client.indices.delete(index=name)
        outage.traffic.resume()
        outage.traffic.let_pass(1.0)
        outage.end()
        assert outage.events.counts["index_created"] == 4


def test_a_write_alias_that_was_removed_behind_our_back(
    opened: Opener, elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """Nothing may be written there any more, so another index is built; searches miss nothing."""
    with opened("write aliases removed", vector_backend="elasticsearch") as outage:
        outage.traffic.let_pass(1.0)
        outage.settle()
        with elasticsearch.client() as client:
            for name in client.indices.get(index=f"{index_prefix}*"):
                client.indices.delete_alias(index=name, name="*")
        outage.traffic.resume()
        outage.traffic.let_pass(1.0)
        outage.end()
        assert set(outage.journal.notes) == {""}
