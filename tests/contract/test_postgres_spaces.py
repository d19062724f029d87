"""Spaces in PostgreSQL keep the contract."""

from collections.abc import Iterator

import pytest

from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from tests.contract.space_keeper import OLD, Kept, SpaceKeeperContract
from tests.contract.truth import postgres_truth
from tests.services.postgres import Database


class TestPostgresSpaces(SpaceKeeperContract):
    """As the worker's role sees them."""

    @pytest.fixture
    def kept(self, database: Database) -> Iterator[Kept]:
        """An empty database."""
        with postgres_truth(database) as truth, database.pool(Role.WORKER) as worker:
            truth.spaces.record_space(OLD)
            yield Kept(truth=truth, keeper=PostgresSpaces(worker))
