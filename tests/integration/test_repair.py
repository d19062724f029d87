"""What a repair does to the truth, and to indexes that another process brings forward."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memory_tool.adapters.postgres_audit import PostgresAudit
from memory_tool.adapters.postgres_repair import PostgresRepair
from memory_tool.adapters.postgres_server import Role
from memory_tool.inspection_ports import Redelivery
from memory_tool.model import MemoryId, NewMemory, State
from memory_tool.scope import Scope
from memory_tool.write_changes import Remove
from tests.contract.truth import Truth, contents, postgres_truth
from tests.factories import ANNA, BEN, chunk_of, new_id, put
from tests.services.postgres import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A truth with its repair."""

    truth: Truth
    repair: PostgresRepair
    audit: PostgresAudit
    database: Database

    def again(self, *ids: MemoryId, above: int = 0, chunks: int = 1) -> int:
        """Redeliver memories of ANNA."""
        memories = dict.fromkeys(ids, chunks)
        ns_id = self.truth.number()
        return self.repair.redeliver(Redelivery(ns_id=ns_id, above=above, memories=memories))

    def row(self, memory_id: MemoryId) -> tuple[Any, ...]:
        """The numbers of a row, its chunk_high and its state."""
        with self.database.connection(Role.WORKER) as connection:
            record = connection.execute(
                "SELECT nseq, vector_nseq, keyword_nseq, chunk_high, state FROM threefold.memory"
                " WHERE id = %s AND ns_id = %s",
                [memory_id, self.truth.number()],
            ).fetchone()
        assert record is not None
        return record


@pytest.fixture
def repaired(database: Database) -> Iterator[Repaired]:
    """An empty one."""
    with postgres_truth(database) as truth, database.pool(Role.WORKER) as pool:
        yield Repaired(
            truth=truth,
            repair=PostgresRepair(pool),
            audit=PostgresAudit(pool),
            database=database,
        )


def test_a_redelivered_memory_takes_a_fresh_number_for_all_indexes(repaired: Repaired) -> None:
    """Above the clock and above what was met; what it says and its version stay."""
    first, second = repaired.truth.add("tea", "milk")
    before = repaired.truth.fetched(first)
    assert repaired.again(first, above=40, chunks=3) == 1
    assert repaired.row(first) == (41, 41, 41, 3, "live")
    assert repaired.row(second)[:3] == (2, 2, 2)
    assert repaired.truth.clock() == 41
    assert repaired.truth.fetched(first) == before
    assert repaired.truth.add("bread") != []
    assert repaired.truth.clock() == 42


def test_a_repair_is_a_change_that_others_notice(repaired: Repaired) -> None:
    """By a new stamp whoever remembers results, by the audit whoever asks later."""
    (first,) = repaired.truth.add("tea")
    scope = Scope.of(ANNA, exact=True)
    (before,) = repaired.truth.store.view(scope, ()).namespaces
    repaired.again(first)
    (after,) = repaired.truth.store.view(scope, ()).namespaces
    assert (after.nseq, after.stamp == before.stamp) == (2, False)
    with repaired.database.connection(Role.WORKER) as connection:
        (action,) = connection.execute(
            "SELECT action FROM threefold.audit WHERE memory_id = %s AND nseq = 2", [first]
        ).fetchone() or ("",)
    assert action == "repair"


def test_what_nobody_wrote_becomes_a_deleted_row(repaired: Repaired) -> None:
    """So that every index that holds an entry of it is told to remove it; nobody ever sees it."""
    repaired.truth.add("tea")
    nobodys = new_id()
    repaired.again(nobodys, above=7, chunks=5)
    assert repaired.row(nobodys) == (8, 8, 8, 5, "deleted")
    assert repaired.truth.reader.fetch(Scope.of(ANNA), [nobodys]) == {}
    (standing,) = repaired.audit.standings([nobodys], kind="vector")[nobodys]
    assert (standing.state, standing.number) == (State.DELETED, 8)


def test_a_deleted_memory_stays_deleted(repaired: Repaired) -> None:
    """A repair brings nothing back."""
    (first,) = repaired.truth.add("tea")
    repaired.truth.write(Remove(memory_id=first))
    repaired.again(first, chunks=2)
    assert repaired.row(first) == (3, 3, 3, 2, "deleted")


def test_a_memory_of_another_namespace_is_left_alone(repaired: Repaired) -> None:
    """An entry in the wrong namespace goes there; the memory stays where it belongs."""
    repaired.truth.add("tea")
    (bens,) = repaired.truth.add("milk", namespace=BEN)
    repaired.again(bens)
    assert repaired.row(bens)[-1] == "deleted"
    assert contents([repaired.truth.fetched(bens, BEN)]) == ["milk"]


def test_a_namespace_that_is_unknown_gets_nothing(repaired: Repaired) -> None:
    """Numbers are given out by writers alone."""
    redelivery = Redelivery(ns_id=999_999, above=3, memories={new_id(): 1})
    assert repaired.repair.redeliver(redelivery) == 0
    assert 999_999 not in repaired.audit.clocks()


def test_memories_that_wait_for_a_vector_are_counted_and_no_fault(repaired: Repaired) -> None:
    """Their embedder was down: they are found by words, and get their vectors later."""
    late = dataclasses.replace(chunk_of("late"), embedding=None)
    repaired.truth.write(put(NewMemory(content="late"), late), put(NewMemory(content="tea")))
    assert repaired.audit.waiting() == 1
    assert list(repaired.audit.faults()) == []
