"""The inventory of each truth keeps the contract."""

from collections.abc import Iterator

import pytest

from memory_tool.adapters.in_memory_inventory import InMemoryInventory
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.adapters.postgres_inventory import PostgresInventory
from memory_tool.adapters.postgres_server import Role
from tests.contract.truth import in_memory_truth, postgres_truth
from tests.contract.truth_inventory import Counted, TruthInventoryContract
from tests.services.postgres import Database


class TestPostgresInventory(TruthInventoryContract):
    """PostgreSQL."""

    @pytest.fixture
    def counted(self, database: Database) -> Iterator[Counted]:
        """In an empty database."""
        with postgres_truth(database) as truth, database.pool(Role.WORKER) as pool:
            yield Counted(truth=truth, inventory=PostgresInventory(pool))


class TestInMemoryInventory(TruthInventoryContract):
    """Memory."""

    @pytest.fixture
    def counted(self) -> Counted:
        """In an empty store."""
        store = InMemoryStore()
        return Counted(truth=in_memory_truth(store), inventory=InMemoryInventory(store))
