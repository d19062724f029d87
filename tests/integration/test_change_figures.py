"""Figures by which the lag of an index is shown."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from memory_tool.adapters.postgres_change_figures import PostgresChangeFigures
from memory_tool.adapters.postgres_server import Role
from memory_tool.port_values import Lag
from tests.contract.truth import Truth, postgres_truth
from tests.factories import BEN
from tests.services.postgres import Database

TARGET = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A truth with its figures."""

    truth: Truth
    figures: PostgresChangeFigures


@pytest.fixture
def counted(database: Database) -> Iterator[Counted]:
    """An empty one."""
    with postgres_truth(database) as truth, database.pool(Role.WORKER) as pool:
        yield Counted(truth=truth, figures=PostgresChangeFigures(pool))


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
