"""Read your writes: each process sees at once what any other was told is stored."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from memory_manage.manager import MemoryManage
from tests.acceptance.asking import MODES, seen, texts
from tests.acceptance.opening import OwnStore
from tests.acceptance.other_process import OtherProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A memory here and one of another process, over one database."""

    here: MemoryManage
    there: OtherProcess


@pytest.fixture(params=["one folder", "two folders"])
def pair(request: pytest.FixtureRequest, own_store: OwnStore) -> Iterator[Pair]:
    """Two processes on one host with one folder, or on two hosts with a folder each."""
    name = "one" if request.param == "one folder" else "two"
    with own_store.open() as here, own_store.other_process(name) as there:
        yield Pair(here=here, there=there)


def shown_there(there: OtherProcess, question: str) -> set[str]:
    """The texts that any mode of search shows in the other process."""
    answers = [
        there.call("search", question, user_id="u", mode=mode, threshold=0.0, limit=100)
        for mode in MODES
    ]
    assert [answer["degraded"] for answer in answers] == [[], [], []]
    return {item["memory"] for answer in answers for item in answer["results"]}


def test_each_process_sees_the_others_writes_at_once(pair: Pair) -> None:
    """Add, update and delete, both ways, before and after the indexes have caught up."""
    here, there = pair.here, pair.there
    for _ in range(2):
        mine = here.add("a letter from here", user_id="u").id
        theirs = there.call("add", "a letter from there", user_id="u")["results"][0]["id"]
        both = {"a letter from here", "a letter from there"}
        assert seen(here, "letter", user_id="u") == shown_there(there, "letter") == both
        here.apply_now()
        there.call("apply_now")
        assert seen(here, "letter", user_id="u") == shown_there(there, "letter") == both
        here.update(theirs, content="a letter rewritten here", user_id="u")
        there.call("update", mine, content="a letter rewritten there", user_id="u")
        both = {"a letter rewritten here", "a letter rewritten there"}
        assert seen(here, "letter", user_id="u") == shown_there(there, "letter") == both
        assert here.get(mine, user_id="u").memory == "a letter rewritten there"
        here.delete(mine, user_id="u")
        assert shown_there(there, "letter") == {"a letter rewritten here"}
        there.call("delete", theirs, user_id="u")
        assert seen(here, "letter", user_id="u") == set()


def test_a_repeated_question_is_asked_anew(pair: Pair) -> None:
    """What a process remembers of an answer must not hide what another has written since."""
    for number in range(5):
        pair.there.call("add", f"a knock at the door, {number}", user_id="u")
        assert len(pair.here.search("knock", user_id="u", limit=100)) == number + 1


def test_two_processes_store_one_fact_once(pair: Pair) -> None:
    """The lock of a namespace holds between hosts too."""
    facts = [f"fact {number}" for number in range(30)]
    pair.there.tell("add_many", facts, user_id="u")
    with ThreadPoolExecutor(2) as pool:
        here = list(pool.map(lambda fact: pair.here.add(fact, user_id="u").results[0], facts))
    there = pair.there.hear()["results"]
    assert [item.id for item in here] == [item["id"] for item in there]
    both = zip(here, there, strict=True)
    assert all({item.status, other["status"]} == {"added", "duplicate"} for item, other in both)
    assert sorted(texts(pair.here.get_all(user_id="u"))) == sorted(facts)


def test_a_key_is_one_memory_between_processes(pair: Pair) -> None:
    """Two agents that keep the same fact up to date must not keep two facts."""
    pair.there.call("add", "the queue is short", key="queue", user_id="u")
    pair.here.add("the queue is long", key="queue", user_id="u")
    assert seen(pair.here, "queue", user_id="u") == {"the queue is long"}
    assert shown_there(pair.there, "queue") == {"the queue is long"}
    history = pair.there.call("history", pair.here.get_all(user_id="u").results[0].id, user_id="u")
    assert [item["memory"] for item in history["results"]] == [
        "the queue is short",
        "the queue is long",
    ]


def test_a_version_is_expected_between_processes(pair: Pair) -> None:
    """Of two that read the same version one wins, and the other is told."""
    id_ = pair.here.add("version one", user_id="u").id
    changed = pair.there.call("update", id_, content="two", expected_version=1, user_id="u")
    assert changed["version"] == 2
    lost = pair.there.call("update", id_, content="three", expected_version=1, user_id="u")
    assert lost == "VersionConflict"
    assert pair.here.get(id_, user_id="u").memory == "two"
