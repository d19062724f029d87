"""``threefold reembed``: another model for every vector, while others search and write."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from memory_manage.bootstrap import open_parts
from memory_manage.manager import MemoryManage
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.postgres_server import Role
from memory_tool.assembly import ChangeOfModel
from memory_tool.errors import InputError, SpaceMismatch
from memory_tool.tool import MemoryTool
from tests.acceptance.asking import texts
from tests.acceptance.opening import OwnStore
from tests.acceptance.other_process import OtherProcess
from tests.services.postgres import Database

if TYPE_CHECKING:
    from memory_manage.options import SearchOptions

FIRST: Final = "hashing"
SAME_SIZE: Final = "hashing@other"
"""Vectors as long as the first model's, at random to them: of a mixture every cosine would tell."""
LARGER: Final = "hashing:128"

FACTS: Final = tuple(
    f"the {colour} kite number {n}" for colour in ("red", "blue") for n in range(30)
)


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A store of some facts, whose later openers take whatever model is recorded."""
    with own_store.open(embedder=FIRST) as memory:
        memory.add_many(list(FACTS), user_id="u")
        memory.add_many(["a kite of the neighbour"], user_id="v")
        assert memory.apply_now()
    # Many tests beside each other are slower than a search may be.
    settings = {**own_store.settings, "embedder": "", "arm_seconds": "20"}
    return replace(own_store, settings=settings)


@contextmanager
def changing(store: OwnStore) -> Iterator[tuple[MemoryTool, ChangeOfModel]]:
    """What the command opens: a tool without threads that apply, and the change itself."""
    settings = {"data_dir": str(store.data_dir()), "database_url": store.database_url}
    given = {**settings, **store.settings, "applying": False}
    with open_parts(given, on_progress=lambda _line: None).tool as tool:
        assert tool.stores.change_of_model is not None
        yield tool, tool.stores.change_of_model


def reembed(store: OwnStore, model: str | None) -> None:
    """Change to a model, or back for ``None``."""
    with changing(store) as (tool, change):
        coming = change.back() if model is None else change.begin(model)
        assert change.run(lambda: True, lambda _step: None)
        assert tool.stores.active() == coming.number


def cosines(memory: MemoryManage, wanted: Sequence[str]) -> dict[str, float]:
    """The cosine of each text to itself as a question, by the vectors alone."""
    found: dict[str, float] = {}
    for text in wanted:
        answer = memory.search(text, user_id="u", mode="vector", threshold=0.0, explain=True)
        assert not answer.degraded
        for item in answer.results:
            if item.memory == text and item.explanation is not None:
                found[text] = item.explanation.cosine or 0.0
    return found


def assert_whole(memory: MemoryManage, wanted: Sequence[str] = FACTS) -> None:
    """Each text has a vector of the model that questions are embedded by."""
    found = cosines(memory, wanted)
    assert set(found) == set(wanted)
    assert min(found.values()) > 0.99


@pytest.mark.parametrize("model", [SAME_SIZE, LARGER])
def test_a_store_gets_another_model_and_gets_its_old_one_back(filled: OwnStore, model: str) -> None:
    """Of another size or, more dangerous, of the same; rows written since come back too."""
    reembed(filled, model)
    with filled.open() as memory:
        assert memory.health().where["embedder"] == _space(model)
        assert_whole(memory)
        memory.add("written in the new space", user_id="u")
        assert_whole(memory, [*FACTS, "written in the new space"])
    reembed(filled, None)
    with filled.open() as memory:
        assert memory.health().where["embedder"] == "hashing/64"
        assert_whole(memory, [*FACTS, "written in the new space"])
    with changing(filled) as (_, change):
        assert change.forget(lambda: True) == 1
        with pytest.raises(InputError, match="no embedding space is kept"):
            change.back()
    with filled.open() as memory:
        assert_whole(memory, [*FACTS, "written in the new space"])


def _space(model: str) -> str:
    return {SAME_SIZE: "hashing@other/64", LARGER: "hashing/128"}[model]


def test_searches_and_writes_go_on_and_never_mix(filled: OwnStore) -> None:
    """Two processes, there and back: every write is seen, every cosine is of one model."""
    with (
        filled.open() as here,
        filled.other_process() as there,
        ThreadPoolExecutor(1) as pool,
    ):
        written: list[str] = []
        for model in (SAME_SIZE, None, LARGER):
            change = pool.submit(reembed, filled, model)
            while not change.done():
                written.append(f"note {len(written)} of there")
                assert (
                    there.call("add", written[-1], user_id="u")["results"][0]["status"] == "added"
                )
                written.append(f"note {len(written)} of here")
                here.add(written[-1], user_id="u")
                for text in (written[0], *written[-2:], FACTS[0]):
                    assert_seen(here, text)
                    assert_seen(there, text)
            change.result()
        assert_whole(here, [*FACTS, *written])


def assert_seen(memory: MemoryManage | OtherProcess, text: str) -> None:
    """A search finds the text; whatever its vector is compared with is of the same model."""
    options: SearchOptions = {"user_id": "u", "threshold": 0.0, "explain": True, "limit": 20}
    if isinstance(memory, OtherProcess):
        answer = memory.call("search", text, **options)
    else:
        answer = memory.search(text, **options).to_dict()
    assert answer["degraded"] == []
    (itself,) = [item for item in answer["results"] if item["memory"] == text]
    cosine = itself["explanation"]["cosine"]
    # One that was written beside the switch has no vector for a moment.
    assert cosine is None or cosine > 0.99


STANDING: Final = """
SELECT (SELECT count(*) FROM threefold.chunk_vector),
       (SELECT state FROM threefold.embedding_space WHERE name = 'hashing@other/64')
"""


def test_it_goes_on_where_it_was_killed(filled: OwnStore, database: Database) -> None:
    """SIGKILL while vectors are made, and while indexes are: one space is searched all the time."""
    slow = replace(filled, settings={**filled.settings, "embed_batch": "1", "lease_seconds": "1"})

    def killed_when(came: Callable[[int, str | None], bool]) -> int:
        with database.connection(Role.WORKER) as connection:
            command = slow.begun("reembed", "--model", SAME_SIZE)
            try:
                while True:
                    made, state = connection.execute(STANDING).fetchall()[0]
                    connection.commit()
                    if came(int(made), state):
                        return int(made)
                    assert command.poll() is None
            finally:
                command.kill()
                command.wait()

    with filled.open(applying=False) as here:
        made = killed_when(lambda made, state: state == "filling" and made > 5)
        assert_whole(here, FACTS[:5])
        killed_when(lambda _made, state: state == "building")
        assert_whole(here, FACTS[:5])
        said: list[int] = []
        with changing(filled) as (_, change):
            change.begin(SAME_SIZE)
            assert change.run(lambda: True, lambda step: said.append(step.done))
        assert said[0] >= made
        assert here.health().where["embedder"] == "hashing/64"
        assert_whole(here)
        assert here.health().where["embedder"] == "hashing@other/64"


def test_a_process_that_wants_another_model_goes_on_by_words(filled: OwnStore) -> None:
    """Nobody stops its work: it says what it lacks and what to set; others make its vectors."""
    with filled.open(embedder=FIRST) as stubborn:
        assert_whole(stubborn, FACTS[:1])
        reembed(filled, SAME_SIZE)
        answer = stubborn.search(FACTS[0], user_id="u")
        assert [note.part for note in answer.degraded] == ["vector"]
        assert "set `embedder` to 'hashing@other'" in str(answer.degraded[0])
        assert FACTS[0] in texts(answer)
        assert stubborn.add("written without a vector", user_id="u").results[0].status == "added"
        with filled.open() as other:
            assert "written without a vector" not in cosines(other, ["written without a vector"])
            with changing(filled) as (_, change):
                assert change.run(lambda: True, lambda _step: None)
            assert_whole(other, [*FACTS[:3], "written without a vector"])
        reembed(filled, None)
        assert_whole(stubborn, [FACTS[0], "written without a vector"])


def test_the_command_says_what_it_does(filled: OwnStore) -> None:
    """Progress and the way back for people, one document for programs, and no silent half."""
    named = replace(filled, settings={**filled.settings, "embedder": LARGER})
    # The new model is in the settings already, with which nothing else can be opened yet.
    assert "threefold reembed" in named.command("stats").stderr
    done = named.command("reembed", "--model", LARGER)
    assert done.returncode == 0, done.stderr
    assert "searches vectors of hashing/128 now" in done.stdout
    assert "61 of 61" in done.stderr
    again = named.command("reembed", "--model", LARGER, "--json")
    said = json.loads(again.stdout)
    assert (said["space"], said["active"]) == ("hashing/128", True)
    wrong = named.command("reembed", "--rollback", "--forget")
    assert wrong.returncode == 2


@pytest.fixture
def on_server(server_store: OwnStore) -> OwnStore:
    """The same facts with keywords, or keywords and vectors, in Elasticsearch."""
    with server_store.open(embedder=FIRST) as memory:
        memory.add_many(list(FACTS), user_id="u")
        assert memory.apply_now()
    return replace(server_store, settings={**server_store.settings, "embedder": ""})


def test_indexes_on_a_server_follow(on_server: OwnStore) -> None:
    """Each space has an index of its own there too; what is forgotten is deleted."""
    with on_server.open() as memory:
        reembed(on_server, LARGER)
        memory.add("written behind the switch", user_id="u")
        assert_whole(memory, [*FACTS, "written behind the switch"])
        reembed(on_server, None)
        assert_whole(memory, [*FACTS, "written behind the switch"])
        with changing(on_server) as (_, change):
            assert change.forget(lambda: True) == 1
        assert_whole(memory)


def test_a_vector_that_a_caller_brings_says_of_which_model_it_is(filled: OwnStore) -> None:
    """One of the model before, as long, would find what it likes; a new one is taken at once."""
    old, new = (
        HashingEmbedder(revision=revision).embed_passages(["brought along"])[0]
        for revision in ("", "other")
    )
    with filled.open() as memory:
        assert_whole(memory, FACTS[:1])
        reembed(filled, SAME_SIZE)
        with pytest.raises(SpaceMismatch):
            memory.search("x", query_embedding=old, space="hashing/64", user_id="u")
        added = memory.add("mine", embedding=new, space="hashing@other/64", user_id="u")
        assert added.results[0].status == "added"
        found = memory.search(
            "x", query_embedding=new, space="hashing@other/64", user_id="u", mode="vector"
        )
        assert found.results[0].memory == "mine"
        with pytest.raises(SpaceMismatch):
            memory.add("not mine", embedding=old, space="hashing/64", user_id="u")
