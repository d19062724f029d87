"""The same memory on servers: with two addresses changed nothing else changes."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import SettingsError
from tests.acceptance.asking import MODES, found, ids, seen, texts
from tests.acceptance.opening import OwnStore


@pytest.fixture
def memory(server_store: OwnStore) -> Iterator[MemoryManage]:
    """A memory whose indexes are on a server, empty."""
    with server_store.open() as memory:
        yield memory


def test_where_says_which_stores_are_in_use(memory: MemoryManage) -> None:
    """One line at the start tells it, without a secret."""
    where = memory.health().where
    assert where["keywords"].startswith("Elasticsearch at ")
    assert where["records"].startswith("PostgreSQL at ")
    assert memory.health().ok


@pytest.mark.parametrize("indexed", [False, True], ids=["at once", "indexed"])
def test_chinese_and_english_are_found_in_every_mode(
    memory: MemoryManage, *, indexed: bool
) -> None:
    """Before the applier ran the truth answers, after it the indexes: the same."""
    mine = memory.scoped(user_id="u")
    mine.add_many(["客户张先生偏好蓝色系产品", "The red kite is in the attic", "订单号 A-1042"])
    if indexed:
        assert memory.apply_now()
    for mode in MODES:
        chinese = mine.search("张先生偏好什么颜色的产品", mode=mode, threshold=0.0)
        assert texts(chinese)[0] == "客户张先生偏好蓝色系产品", mode
        assert chinese.degraded == ()
    assert texts(mine.search("A-1042", limit=1)) == ["订单号 A-1042"]
    assert texts(mine.search("where is the kite?", limit=1)) == ["The red kite is in the attic"]


def test_what_changes_is_seen_at_once_and_after_indexing(memory: MemoryManage) -> None:
    """A 30-second refresh is nothing that a caller ever notices."""
    mine = memory.scoped(user_id="u")
    kept = mine.add("a letter about kites").id
    gone = mine.add("a letter about boats").id
    for _ in range(2):
        assert seen(mine, "letter") == {"a letter about kites", "a letter about boats"}
        memory.apply_now()
    mine.update(kept, content="a letter about trains")
    mine.delete(gone)
    for _ in range(2):
        assert seen(mine, "letter") == {"a letter about trains"}
        memory.apply_now()


def test_namespaces_stay_apart(memory: MemoryManage) -> None:
    """In the index of a server too, also for a scope that is short of hits."""
    memory.add_many([f"tea number {number}" for number in range(30)], user_id="other")
    memory.add("tea of mine", user_id="u")
    memory.apply_now()
    assert found(memory, "tea number", user_id="u") == {"tea of mine"}


def test_filters_keep_what_matches_however_rare(memory: MemoryManage) -> None:
    """They are applied before the arms choose, not behind them."""
    mine = memory.scoped(user_id="u")
    texts_of = [f"tea number {number}" for number in range(60)]
    mine.add_many([{"content": text, "metadata": {"n": at}} for at, text in enumerate(texts_of)])
    memory.apply_now()
    answer = mine.search("tea", filters={"n": {"gte": 57}}, limit=10, threshold=0.0)
    assert sorted(texts(answer)) == texts_of[57:]


def test_another_host_sees_every_write(server_store: OwnStore) -> None:
    """Two data folders, one database, one server of indexes."""
    with server_store.open() as here, server_store.other_process("two") as there:
        first = here.add("a letter from here", user_id="u").id
        there.call("add", "a letter from there", user_id="u")
        both = {"a letter from here", "a letter from there"}
        for _ in range(2):
            assert seen(here, "letter", user_id="u") == both
            answer = there.call("search", "letter", user_id="u", threshold=0.0, limit=10)
            assert {item["memory"] for item in answer["results"]} == both
            here.apply_now()
            there.call("apply_now")
        here.delete(first, user_id="u")
        answer = there.call("search", "letter", user_id="u", threshold=0.0)
        assert [item["memory"] for item in answer["results"]] == ["a letter from there"]


def test_what_is_no_elasticsearch_is_told_when_the_store_is_opened(own_store: OwnStore) -> None:
    """A wrong address must not look like an outage that will pass."""
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        pool.submit(server.serve_forever)
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            with pytest.raises(SettingsError, match="no Elasticsearch"):
                own_store.open(elasticsearch_url=url)
        finally:
            server.shutdown()


def test_reopening_goes_on_where_it_was(server_store: OwnStore) -> None:
    """The index is found by the pointer in PostgreSQL, and nothing is built twice."""
    with server_store.open() as memory:
        written = memory.add("a letter about kites", user_id="u").id
        memory.apply_now()
    with server_store.open("another host") as memory:
        assert ids(memory.search("kites", user_id="u", on_degraded="raise")) == [written]
        assert memory.health().lag["keyword index"]["rows"] == 0


def test_workers_of_two_hosts_share_the_indexes(
    server_store: OwnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One applies, the other takes over when it is killed; a web process only reads and writes."""
    monkeypatch.setenv("THREEFOLD_LEASE_SECONDS", "3")
    monkeypatch.setenv("THREEFOLD_ELASTICSEARCH_REFRESH_SECONDS", "1")
    with (
        server_store.open("web", applying=False) as memory,
        server_store.worker("one") as first,
        server_store.worker("two"),
    ):
        mine = memory.scoped(user_id="u")
        mine.add_many(["a letter about kites", "a letter about boats"])
        wait_for_indexes(memory)
        first.kill()
        first.wait()
        mine.add("a letter about trains")
        wait_for_indexes(memory)
        assert outcomes_of_rebuild(server_store) == {"left to another process"}
        letters = {"a letter about kites", "a letter about boats", "a letter about trains"}
        while outcomes_of_rebuild(server_store) != {"done before"}:
            assert seen(mine, "letter") == letters
        assert seen(mine, "letter") == letters
        assert mine.search("letter").degraded == ()


def outcomes_of_rebuild(store: OwnStore) -> set[str]:
    """What a timer on a third host is told of the indexes on the server."""
    finished = store.command("rebuild", "--full", "--json", name="three")
    assert finished.returncode == 0, finished.stderr
    groups = json.loads(finished.stdout)["groups"]
    return {group["outcome"] for group in groups if group["group"].startswith("elasticsearch:")}


def wait_for_indexes(memory: MemoryManage) -> None:
    """Until the server's index holds all that was written; the end is for a broken promise."""
    end = time.monotonic() + 60
    while memory.health().lag["keyword index"]["rows"]:
        assert time.monotonic() < end, memory.health().lag
        time.sleep(0.2)
