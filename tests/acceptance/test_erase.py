"""Erasing with proof: what was erased is in no file any more, and comes back by no restore."""

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC
from pathlib import Path

import psycopg
import pytest

from memory_manage.erasing import erase
from memory_manage.manager import MemoryManage
from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.adapters.file_scan import FolderScan
from memory_tool.adapters.postgres_erase import PostgresRewrite
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from memory_tool.bootstrap_backup import make_backup, restore_backup
from memory_tool.erase_values import Place, Receipt
from memory_tool.errors import Corrupt, NotFound, Unavailable
from memory_tool.filters import parse_filter
from memory_tool.scope import Scope
from memory_tool.scope_words import ScopeWords
from memory_tool.settings import Settings, load_settings
from memory_tool.tool import MemoryTool
from tests.acceptance.asking import seen, texts
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database

SECRET = "Zanzibar-42-蓝色系窗帘"
TOKEN = "zanzibar"
"""A word of it as indexes and statistics write it."""

OTHER = "Somebody else keeps this sentence about curtains for ever"


def files_that_say(folder: Path, piece: str) -> list[str]:
    """The files below a folder that hold a piece of text."""
    scan = FolderScan([folder], said_elsewhere=lambda _piece: False).scan([piece])
    return [trace.file for trace in scan.traces]


@contextlib.contextmanager
def both(store: OwnStore) -> Iterator[tuple[MemoryManage, MemoryTool]]:
    """The store's brain and its hands, closed at the end."""
    parts = store.parts()
    with MemoryManage(parts) as memory:
        yield memory, parts.tool


def erased(tool: MemoryTool, *, user: str, ids: Sequence[str] = ()) -> Receipt:
    """What the command does."""
    scope, condition = tool.scope_and_filter(ScopeWords(user_id=user), None)
    return erase(tool, scope, ids=ids, condition=condition, pieces=[SECRET])


def _one_of(memory: MemoryManage, tool: MemoryTool, *, user: str) -> tuple[Scope, str]:
    """The scope of a user and the id of a memory in it."""
    scope, _ = tool.scope_and_filter(ScopeWords(user_id=user), None)
    return scope, memory.get_all(user_id=user).results[0].id


def tell(store: OwnStore) -> OwnStore:
    """A secret of u1 in every place that there is, and something of u2."""
    with store.open() as memory:
        first = memory.add(f"{SECRET}: the first version", user_id="u1", key="k").id
        memory.update(str(first), content=f"{SECRET}: the second version", user_id="u1")
        gone = memory.add(f"{SECRET} was deleted before", user_id="u1", project_id="p").id
        memory.add("a note", user_id="u1", metadata={"where": SECRET}, tags=[SECRET])
        memory.add(OTHER, user_id="u2")
        memory.apply_now()
        memory.delete(str(gone), user_id="u1")
        memory.apply_now()
    return store


def gather_statistics(store: OwnStore) -> None:
    """What a planner notes of values stays where a table became empty."""
    with (
        EmbeddedPostgres(store.data_dir()) as server,
        psycopg.connect(server.conninfo(role=Role.OWNER), autocommit=True) as connection,
    ):
        connection.execute("ANALYZE")


def put_into_the_archive(store: OwnStore) -> None:
    """All that the store holds goes cold, as if it were old."""
    with store.parts(hot_days=1e-9, warm_days=2e-9).tool as tool:
        ageing = tool.stores.ageing
        assert ageing is not None
        while ageing.move(lambda: True):
            pass
        assert ageing.figures().memories["cold"] == 3


@pytest.fixture
def told(own_store: OwnStore) -> OwnStore:
    """A store on a server of somebody else's, with the secret."""
    return tell(own_store)


def test_what_was_erased_is_in_no_file_and_others_keep_theirs(embedded_store: OwnStore) -> None:
    """Versions, tokens, dead rows, indexes, statistics and the server's own log."""
    told = tell(embedded_store)
    put_into_the_archive(told)
    assert files_that_say(told.data_dir() / "archive", SECRET)
    with both(told) as (memory, tool):
        assert files_that_say(told.folder, SECRET)
        fresh = memory.add(f"{SECRET} is said again", user_id="u1").id
        memory.update(str(fresh), content=f"{SECRET} is said yet again", user_id="u1")
        gather_statistics(told)
        assert files_that_say(told.folder, TOKEN)
        receipt = erased(tool, user="u1")
        assert receipt.complete, receipt
        assert receipt.rows == {"memories": 3, "versions": 1, "chunks": 3, "namespaces": 2}
        assert {place.name.partition(":")[0] for place in receipt.places} >= {
            "erase ledger",
            "faiss",
            "tantivy",
            "tables",
            "server",
        }
        assert files_that_say(told.folder, SECRET) == []
        assert files_that_say(told.folder, TOKEN) == []
        assert files_that_say(told.folder, "user:u1") == []
        assert seen(memory, SECRET, user_id="u1") == set()
        assert seen(memory, OTHER, user_id="u2") == {OTHER}
        # The name begins anew, and what is written under it is nobody else's.
        memory.add("a new life", user_id="u1")
        assert texts(memory.get_all(user_id="u1")) == ["a new life"]


def test_one_memory_can_be_erased_and_its_neighbours_stay(told: OwnStore) -> None:
    """Also one that was deleted before: an index may hold it still."""
    with both(told) as (memory, tool):
        kept = memory.add("this one stays", user_id="u1").id
        doomed = memory.add(f"only {SECRET} goes", user_id="u1").id
        receipt = erased(tool, user="u1", ids=[str(doomed)])
        assert receipt.rows["memories"] == 1
        assert receipt.rows["namespaces"] == 0
        with pytest.raises(NotFound):
            memory.get(str(doomed), user_id="u1")
        assert memory.get(str(kept), user_id="u1").memory == "this one stays"
        assert erased(tool, user="u1", ids=[str(doomed)]).rows["memories"] == 0
        with pytest.raises(NotFound):
            erased(tool, user="u1", ids=[uuid.uuid4().hex])


def test_a_condition_erases_what_meets_it(told: OwnStore) -> None:
    """The filter language is the one of every read."""
    with both(told) as (memory, tool):
        scope, _ = tool.scope_and_filter(ScopeWords(user_id="u1"), None)
        wanted = parse_filter({"metadata.where": SECRET}, tz=UTC)
        assert erase(tool, scope, condition=wanted).rows["memories"] == 1
        assert texts(memory.get_all(user_id="u1")) == [f"{SECRET}: the second version"]


def test_an_order_that_a_restored_database_lacks_is_carried_out_at_opening(
    told: OwnStore,
) -> None:
    """The ledger lies outside the database: no restore brings back what was erased."""
    ledger = EraseLedgerFile(told.data_dir() / "erase-ledger.jsonl")
    with both(told) as (memory, tool):
        memory.add("a stranger's", user_id="u3")
        erased(tool, user="u3")
        scope, _ = tool.scope_and_filter(ScopeWords(user_id="u1"), None)
        (example,) = ledger.lines()
        orders = [
            dataclasses.replace(example, name=uuid.uuid4().hex, ns_id=clock.ns_id)
            for clock in tool.stores.records.view(scope, []).namespaces
        ]
        ours = tool.fetch(*_one_of(memory, tool, user="u2")).ns_id
    other_store = dataclasses.replace(example, name=uuid.uuid4().hex, store="f" * 32, ns_id=ours)
    ledger.append([*orders, other_store])
    with told.open() as memory:
        assert seen(memory, SECRET, user_id="u1") == set()
        assert seen(memory, OTHER, user_id="u2") == {OTHER}


def test_a_restore_leaves_no_trace_of_what_it_erased_again(embedded_store: OwnStore) -> None:
    """It came in with the other rows, and is gone from tables and the server's log."""
    told = tell(embedded_store)
    folder = told.folder / "backup"
    make_backup(_settings(told), folder)
    with both(told) as (_, tool):
        assert erased(tool, user="u1").complete
    assert files_that_say(told.data_dir(), SECRET) == []
    assert restore_backup(_settings(told), folder).erased == 2
    assert files_that_say(told.data_dir(), SECRET) == []
    with told.open() as memory:
        assert seen(memory, SECRET, user_id="u1") == set()
        assert seen(memory, OTHER, user_id="u2") == {OTHER}


def _settings(store: OwnStore) -> Settings:
    given = {"data_dir": str(store.data_dir()), "embedder": "hashing", **store.settings}
    return load_settings(given, environment={})


def test_a_store_whose_ledger_was_lost_is_not_opened(told: OwnStore) -> None:
    """Or a restore would bring back what was erased, and nobody would know."""
    with both(told) as (_, tool):
        erased(tool, user="u1")
    (told.data_dir() / "erase-ledger.jsonl").unlink()
    with pytest.raises(Corrupt, match="the erase ledger lacks 2 lines"), told.open():
        pass
    accepting = dataclasses.replace(told, settings={"erase_ledger_lost": "accept"})
    with accepting.open() as memory:
        assert seen(memory, OTHER, user_id="u2") == {OTHER}


def test_an_order_that_waits_for_a_place_is_gone_on_with(
    told: OwnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scope is gone by then: the same call must not answer that there is nothing to do."""
    with both(told) as (memory, tool):
        with monkeypatch.context() as broken:
            broken.setattr(PostgresRewrite, "rewrite", _fails)
            receipt = erased(tool, user="u1")
            assert not receipt.complete
            assert {place.name: place.state for place in receipt.places}["tables"] == "waiting"
        assert seen(memory, SECRET, user_id="u1") == set()
        assert erased(tool, user="u1").complete
        with pytest.raises(NotFound):
            erased(tool, user="u1")


def test_nothing_that_hangs_on_a_memory_outlives_it(told: OwnStore, database: Database) -> None:
    """Reviews and relations quote it; a deletion takes them along, and so does an erasure."""
    with both(told) as (memory, tool):
        kept = memory.add("this one stays", user_id="u1").id
        doomed = memory.add("this one goes", user_id="u1").id
        ns_id = tool.fetch(*_one_of(memory, tool, user="u1")).ns_id
        with database.connection(Role.WORKER) as connection:
            connection.execute(
                "INSERT INTO threefold.review (ns_id, memory_id, kind, proposal)"
                " VALUES (%s, %s, 'tags', '[]')",
                [ns_id, doomed],
            )
            connection.execute(
                "INSERT INTO threefold.relation (ns_id, from_id, kind, to_id)"
                " VALUES (%s, %s, 'about', %s)",
                [ns_id, kept, doomed],
            )
        memory.delete(str(doomed), user_id="u1")
        with database.connection(Role.WORKER) as connection:
            left = connection.execute(
                "SELECT (SELECT count(*) FROM threefold.review),"
                " (SELECT count(*) FROM threefold.relation)"
            ).fetchone()
        assert left == (0, 0)


def _fails(_tables: PostgresRewrite, _ns_ids: Sequence[int]) -> Place:
    message = "the owner can't be reached"
    raise Unavailable(message)
