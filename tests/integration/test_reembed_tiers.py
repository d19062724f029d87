"""A change of model and cold memories, whose texts are in the archive."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from memory_tool.errors import Unavailable
from memory_tool.model import EmbeddingSpace
from memory_tool.scope import Scope
from tests.factories import ANNA
from tests.integration.tier_house import TierHouse, tier_house
from tests.services.postgres import Database


@pytest.fixture
def house(database: Database, tmp_path: Path) -> Iterator[TierHouse]:
    """A store whose memories age at a test's word."""
    with tier_house(database, tmp_path) as one:
        yield one


def test_a_cold_memory_is_embedded_from_its_whole_text(house: TierHouse) -> None:
    """Its chunks are parts of that, not of the summary that stands in the store."""
    said = house.fill()
    house.records.record_space(EmbeddingSpace(model="old", dimension=8))
    while house.move():
        pass
    assert any(row["tier"] == "cold" for row in house.rows().values())
    (clock,) = house.records.view(Scope.of(ANNA), ()).namespaces
    with house.database.pool(Role.WORKER) as pool:
        keeper = PostgresSpaces(pool, house.archive)
        number = keeper.begin(EmbeddingSpace(model="new", dimension=4), embedder="").number
        found = {gap.memory_id: gap.content for gap in keeper.missing(number, [clock.ns_id])}
        assert found == said
        with pytest.raises(Unavailable, match="without its archive"):
            list(PostgresSpaces(pool).missing(number, [clock.ns_id]))
        for name in house.archive.files():
            house.archive.remove(name)
        lost = {gap.memory_id: gap.content for gap in keeper.missing(number, [clock.ns_id])}
        assert None in lost.values()
        assert all(text in (None, said[memory_id]) for memory_id, text in lost.items())
