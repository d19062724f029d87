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

    def test_what_is_built_beside_an_index_is_not_waited_for(
        self, kept: Kept, database: Database
    ) -> None:
        """Nobody builds a successor of a space that is not searched yet: it would be for ever."""
        kept.truth.add("green tea")
        with database.connection(Role.WORKER) as connection:
            connection.execute(
                "INSERT INTO threefold.index_target (target)"
                " VALUES ('vectors:a:space1'), ('next/vectors:a:space1')"
            )
        waited_for = kept.keeper.unready(2, own="vectors:b:space2", most=0)
        assert waited_for == ("vectors:a:space2", "vectors:b:space2")
