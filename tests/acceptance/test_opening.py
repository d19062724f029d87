"""Opening and closing: which store, which space, and what a closed memory does."""

import gc
from typing import TYPE_CHECKING

import pytest

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import InputError, SettingsError, SpaceMismatch, Unavailable
from tests.acceptance.asking import ids, texts
from tests.acceptance.opening import OwnStore

if TYPE_CHECKING:
    from tests.services.postgres import Server


def test_another_embedding_space_is_refused(own_store: OwnStore) -> None:
    """Complaints 60 and 61, vectorize-io/hindsight issues 1884 and 523: a change of dimension.

    There it means wiping, or fails later; here it is one clear error that names the way out.
    """
    with own_store.other_process() as process:
        process.call("add", "a vector of 64 numbers", user_id="u")
    with pytest.raises(SpaceMismatch, match="threefold reembed"):
        own_store.open(embedder=HashingEmbedder(dimension=128))
    with own_store.open() as memory:
        assert texts(memory.get_all(user_id="u")) == ["a vector of 64 numbers"]
    # Connections that the refused opening left open would complain here.
    gc.collect()


def test_the_recorded_space_wins_over_the_default(own_store: OwnStore) -> None:
    """Who opens a store again need not remember its model."""
    with own_store.other_process() as process:
        id_ = process.call("add", "made by hashing", user_id="u")["results"][0]["id"]
    with own_store.open(embedder="") as memory:
        assert memory.health().where["embedder"] == "hashing/64"
        assert ids(memory.search("made by hashing", user_id="u", mode="vector")) == [id_]


def test_two_databases_may_use_a_folder_in_turn(
    own_store: OwnStore, request: pytest.FixtureRequest
) -> None:
    """Whoever tries another database and comes back finds the vectors where they were."""
    with own_store.open() as memory:
        memory.add("of the first", user_id="u")
        assert memory.apply_now()
    (folder,) = (own_store.data_dir() / "vectors").iterdir()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    server: Server = request.getfixturevalue("embedded_postgres")
    with (
        server.database() as other,
        own_store.open(database_url=other.conninfo(Role.APP)) as memory,
    ):
        memory.add("of the second", user_id="u")
        assert memory.apply_now()
        assert texts(memory.search("second", user_id="u", mode="vector")) == ["of the second"]
    with own_store.open() as memory:
        assert memory.apply_now()
        found = memory.search("first", user_id="u", mode="vector", on_degraded="raise")
        assert texts(found) == ["of the first"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_an_embedder_may_be_given(own_store: OwnStore) -> None:
    """Any object with the port; it names its space."""
    with own_store.open(embedder=HashingEmbedder(dimension=32)) as memory:
        id_ = memory.add("thirty-two numbers", user_id="u").id
        answer = memory.search("thirty-two numbers", user_id="u", mode="vector")
        assert ids(answer) == [id_]
        assert memory.health().where["embedder"] == "hashing/32"


def test_a_server_that_is_not_there_is_unavailable(own_store: OwnStore) -> None:
    """P7: a clear, typed error that says what to do, without a password in it."""
    url = "postgresql://app:hunter2@127.0.0.1:1/threefold"
    with pytest.raises(Unavailable) as failure:
        own_store.open(database_url=url)
    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"pool_size": 0},
        {"chunk_tokens": 100, "chunk_overlap": 100},
        {"tz": "Mars/Olympus"},
        {"scope_requires": ["planet"]},
        {"database_url": "no://address"},
        {"retry_attempts": "many"},
        {"elasticsearch_url": "nonsense"},
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    own_store: OwnStore, settings: dict[str, object]
) -> None:
    """At the start, not at the first use."""
    with pytest.raises(SettingsError):
        own_store.open(**settings)
    gc.collect()


def test_a_closed_memory_says_so(own_store: OwnStore) -> None:
    """Not a driver's error from three layers down."""
    memory = own_store.open()
    bound = memory.scoped(user_id="u")
    memory.close()
    memory.close()
    for method in (
        lambda: bound.add("a"),
        lambda: bound.add("a", mode="async"),
        lambda: bound.add_many(["a"]),
        lambda: bound.search("a"),
        bound.get_all,
        bound.delete_all,
        lambda: bound.get("0" * 32),
        lambda: bound.history("0" * 32),
        lambda: bound.update("0" * 32, content="a"),
        lambda: bound.delete("0" * 32),
        bound.stats,
    ):
        with pytest.raises(InputError, match="closed"):
            method()


def test_closing_gives_the_folder_to_the_next(own_store: OwnStore) -> None:
    """A program that closes its memory and lives on must not keep others from the indexes."""
    first = own_store.open()
    first.add("by the first", user_id="u")
    first.apply_now()
    first.close()
    with own_store.open() as second:
        second.add("by the second", user_id="u")
        assert second.apply_now() is True
        assert own_store.indexed().chunks == 2
    first.close()


def test_two_memories_of_one_process_share_a_folder(own_store: OwnStore) -> None:
    """One applies, both see everything."""
    with own_store.open() as one, own_store.open() as two:
        one.add("by one", user_id="u")
        two.add("by two", user_id="u")
        both = {"by one", "by two"}
        assert set(texts(one.search("by", user_id="u", threshold=0.0))) == both
        assert set(texts(two.search("by", user_id="u", threshold=0.0))) == both
        assert sorted([one.apply_now(), two.apply_now()]) == [False, True]
