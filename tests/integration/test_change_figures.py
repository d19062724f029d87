"""Figures by which an index is verified and its lag is shown."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from memory_tool.adapters.postgres_change_figures import PostgresChangeFigures
from memory_tool.adapters.postgres_server import Role
from memory_tool.model import Chunk, NewMemory, Patch
from memory_tool.port_values import ChunkCount, DeadLetter, Lag
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import Truth, postgres_truth
from tests.factories import BEN, chunk_of, put
from tests.services.postgres import Database

TARGET = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A truth with its figures."""

    truth: Truth
    figures: PostgresChangeFigures

    def chunks(self, clock: int) -> ChunkCount:
        """What a keyword index has to hold whose clock of ANNA is this one."""
        clocks = {self.truth.number(): clock}
        return self.figures.count_chunks(TARGET, "keyword", clocks=clocks)


@pytest.fixture
def counted(database: Database) -> Iterator[Counted]:
    """An empty one."""
    with postgres_truth(database) as truth, database.pool(Role.WORKER) as pool:
        yield Counted(truth=truth, figures=PostgresChangeFigures(pool))


def test_living_chunks_up_to_the_clock_have_to_be_there(counted: Counted) -> None:
    """Chunks of rows above it may or may not be: they change while they are counted."""
    long = put(NewMemory(content="one two"), chunk_of("one"), chunk_of("two", ordinal=1))
    counted.truth.write(long)
    (second,) = counted.truth.add("three")
    assert counted.chunks(2) == ChunkCount(least=3, most=3)
    assert counted.chunks(1) == ChunkCount(least=2, most=3)
    counted.truth.write(Remove(memory_id=second))
    assert counted.chunks(2) == ChunkCount(least=2, most=3)
    assert counted.chunks(3) == ChunkCount(least=2, most=2)


def test_what_an_index_does_not_hold_is_not_counted(counted: Counted) -> None:
    """A chunk without tokens has no place in one, a chunk without a vector none in the other."""
    silent = Chunk(ordinal=0, start=0, stop=1, language="en", words="", bigrams="")
    counted.truth.write(put(NewMemory(content="…"), silent), put(NewMemory(content="tea")))
    clocks = {counted.truth.number(): 2}
    assert counted.figures.count_chunks(TARGET, "keyword", clocks=clocks).least == 1
    assert counted.figures.count_chunks(TARGET, "vector", clocks=clocks).least == 1
    (memory_id,) = counted.truth.add("more tea")
    counted.truth.write(Revise(memory_id=memory_id, patch=Patch(tags=("drinks",))))
    assert counted.chunks(4) == ChunkCount(least=2, most=2)


def test_dead_letters_may_be_missing(counted: Counted) -> None:
    """An index that can't take a row is complete without it."""
    (memory_id, _) = counted.truth.add("green tea", "black tea")
    letter = DeadLetter(ns_id=counted.truth.number(), memory_id=memory_id, version=1, reason="400")
    counted.truth.log.bury(TARGET, "keyword", letters=[letter], delivered={})
    assert counted.chunks(2) == ChunkCount(least=1, most=2)


def test_lag_counts_what_was_not_noted(counted: Counted) -> None:
    """Rows of every namespace, and the age of the oldest of them."""
    counted.truth.add("one", "two")
    counted.truth.add("three", namespace=BEN)
    lag = counted.figures.lag(TARGET)
    assert lag.rows == 3
    assert 0 < lag.seconds < 60
    counted.truth.log.note_progress(TARGET, {counted.truth.number(): 2})
    assert counted.figures.lag(TARGET).rows == 1
    counted.truth.log.note_progress(TARGET, {counted.truth.number(BEN): 1})
    assert counted.figures.lag(TARGET) == Lag(rows=0, seconds=0.0)
