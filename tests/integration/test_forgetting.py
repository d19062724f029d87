"""Expired memories become deletions; rows of deleted ones go once every index let go of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_forgetting import PostgresTombstones, PostgresUseLog
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.expiry import Expiry
from memory_tool.index_jobs.purge import Purge
from memory_tool.model import MemoryId, NewMemory
from memory_tool.port_values import DeadLetter, KeywordQuery
from memory_tool.scope import Scope
from memory_tool.text.tokenise import TOKENISER_VERSION
from memory_tool.write_changes import Remove
from tests.contract.truth import Truth, postgres_truth
from tests.factories import ANNA, BEN, new_id
from tests.services.postgres import Database, Server

FIRST, SECOND = "tantivy:first", "tantivy:second"
TEA = KeywordQuery(words=("tea",), bigrams=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A truth with two indexes that follow it when they are told, and what forgets."""

    truth: Truth
    database: Database
    folder: Path
    tombstones: PostgresTombstones
    jobs: PostgresRecordStore
    uses: PostgresUseLog

    def apply(self, target: str) -> None:
        """Bring an index forward, as an applier does."""
        following = TantivyTarget(self.path(target), name=target, tokeniser=TOKENISER_VERSION)
        applier = Applier(self.truth.log, [following])
        applier.run(force=True)
        applier.close()

    def found(self, target: str) -> set[MemoryId]:
        """The memories that the index finds by a word."""
        index = TantivyKeywordIndex(self.path(target), target=target, tokeniser=TOKENISER_VERSION)
        found = index.view().search(TEA, [self.truth.number()], depth=100)
        index.close()
        return {candidate.memory_id for candidate in found}

    def path(self, target: str) -> Path:
        """Where an index lies."""
        return self.folder / target.partition(":")[2]

    def purge(self, hours: float = 48) -> None:
        """Run the job."""
        Purge(self.tombstones, hours=hours).run(lambda: True)

    def rows(self) -> int:
        """How many rows there are, tombstones among them."""
        return int(self.one("SELECT count(*) FROM threefold.memory"))

    def purged(self) -> int:
        """The highest number that was purged of ANNA."""
        return int(self.one("SELECT purged FROM threefold.ns_clock ORDER BY ns_id LIMIT 1"))

    def one(self, query: str) -> str:
        """One value."""
        with self.database.admin() as connection:
            return str(connection.execute(query.encode()).fetchall()[0][0])

    def run(self, query: str) -> None:
        """A statement of the superuser."""
        with self.database.admin() as connection:
            connection.execute(query.encode())

    def let_days_pass(self) -> None:
        """Deleted was three days ago what was deleted until now."""
        self.run(
            "UPDATE threefold.memory SET updated_at = updated_at - interval '3 days'"
            " WHERE state = 'deleted'"
        )


@pytest.fixture
def past(embedded_postgres: Server, tmp_path: Path) -> Iterator[Past]:
    """An empty one."""
    with (
        embedded_postgres.database() as database,
        postgres_truth(database) as truth,
        database.pool(Role.WORKER, size=2) as worker,
        database.pool(Role.APP, size=2) as app,
    ):
        yield Past(
            truth=truth,
            database=database,
            folder=tmp_path,
            tombstones=PostgresTombstones(worker),
            jobs=PostgresRecordStore(worker),
            uses=PostgresUseLog(app),
        )


def test_an_expired_memory_becomes_a_numbered_deletion(past: Past) -> None:
    """Invisible it was at once; now the indexes hear of it. One that was given more time stays."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    over, other, kept = past.truth.add(
        NewMemory(content="old tea", expires_at=soon), "green tea", "white tea"
    )
    past.apply(FIRST)
    past.run("UPDATE threefold.memory SET expires_at = now() WHERE content = 'old tea'")
    assert past.truth.reader.fetch(Scope.of(ANNA), [over]) == {}
    Expiry(past.tombstones, past.jobs).run(lambda: True)
    assert past.truth.clock() == 4
    assert past.one("SELECT action FROM threefold.audit WHERE nseq = 4") == "expire"
    past.apply(FIRST)
    assert past.found(FIRST) == {other, kept}
    Expiry(past.tombstones, past.jobs).run(lambda: True)
    assert past.truth.clock() == 4


def test_rows_stay_until_every_index_has_let_go_of_them(past: Past) -> None:
    """One that is behind would keep what was deleted for ever."""
    gone, kept = past.truth.add("gone tea", "green tea")
    for target in (FIRST, SECOND):
        past.apply(target)
    past.truth.write(Remove(memory_id=gone))
    past.let_days_pass()
    past.apply(FIRST)
    past.purge()
    assert (past.rows(), past.purged()) == (2, 0)
    past.apply(SECOND)
    past.purge()
    assert (past.rows(), past.purged()) == (1, 3)
    for target in (FIRST, SECOND):
        past.apply(target)
        assert past.found(target) == {kept}
    assert past.truth.reader.deleted(Scope.of(ANNA), [gone]) == frozenset()


def test_rows_stay_for_a_grace_period(past: Past) -> None:
    """As long as a generation is kept to go back to."""
    (gone,) = past.truth.add("gone tea")
    past.truth.write(Remove(memory_id=gone))
    past.apply(FIRST)
    past.purge()
    assert past.rows() == 1
    past.purge(hours=0)
    assert past.rows() == 0


def test_a_row_with_a_dead_letter_stays(past: Past) -> None:
    """The index that refused it may still hold what it said."""
    refused, gone = past.truth.add("bad tea", "gone tea")
    past.truth.write(Remove(memory_id=refused), Remove(memory_id=gone))
    past.apply(FIRST)
    letter = DeadLetter(ns_id=past.truth.number(), memory_id=refused, version=1, reason="400")
    past.truth.log.bury("server", "keyword", letters=[letter], delivered={})
    past.let_days_pass()
    past.purge()
    assert past.rows() == 1
    assert past.truth.reader.deleted(Scope.of(ANNA), [refused, gone]) == {refused}


def test_an_index_that_comes_back_from_below_is_built_anew(past: Past) -> None:
    """It never saw the deletion, and the log no longer has it."""
    gone, kept = past.truth.add("gone tea", "green tea")
    for target in (FIRST, SECOND):
        past.apply(target)
    # Its host is away for more than a day, but its marks are known.
    past.run("DELETE FROM threefold.index_target WHERE target = 'tantivy:second'")
    past.run("DELETE FROM threefold.index_progress WHERE target = 'tantivy:second'")
    past.truth.write(Remove(memory_id=gone))
    past.let_days_pass()
    past.apply(FIRST)
    past.purge()
    assert past.rows() == 1
    assert past.found(SECOND) == {gone, kept}
    past.apply(SECOND)
    assert past.found(SECOND) == {kept}


def test_uses_are_added_up_and_deleted_with_their_memory(past: Past) -> None:
    """They change no memory; what is unknown, deleted or of nobody's is left out."""
    first, second = past.truth.add("green tea", "black tea")
    (foreign,) = past.truth.add("white tea", namespace=BEN)
    anna, ben = past.truth.number(), past.truth.number(BEN)
    past.uses.add({(anna, first): (2, 30.0), (anna, second): (1, 0.0), (ben, foreign): (5, 0.0)})
    past.uses.add({(anna, first): (1, 0.0), (anna, new_id()): (1, 0.0), (anna, foreign): (1, 0.0)})
    past.uses.add({})
    assert [past.truth.fetched(one).access_count for one in (first, second)] == [3, 1]
    assert past.truth.fetched(foreign, BEN).access_count == 5
    assert past.truth.clock() == 2
    used = past.truth.fetched(first).last_accessed_at
    assert used is not None
    assert abs(datetime.now(UTC) - used) < timedelta(seconds=20)
    past.truth.write(Remove(memory_id=first))
    past.uses.add({(anna, first): (1, 0.0)})
    assert past.one("SELECT count(*) FROM threefold.memory_use") == "2"
