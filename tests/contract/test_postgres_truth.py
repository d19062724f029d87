"""The truth in PostgreSQL keeps the contracts."""

from collections.abc import Iterator

import pytest

from memory_tool.adapters.postgres_generations import PostgresGenerations
from memory_tool.adapters.postgres_server import Role
from tests.contract.adoption import AdoptionContract
from tests.contract.change_log import ChangeLogContract
from tests.contract.generation_catalogue import Catalogued, GenerationCatalogueContract
from tests.contract.record_reader import RecordReaderContract, SpaceRegistryContract
from tests.contract.record_snapshot import SnapshotContract
from tests.contract.record_store import RecordStoreContract
from tests.contract.truth import Truth, postgres_truth
from tests.services.postgres import Database


class InPostgres:
    """Gives each test an empty database, on each server that there is."""

    @pytest.fixture
    def truth(self, database: Database) -> Iterator[Truth]:
        """An empty one."""
        with postgres_truth(database) as one:
            yield one


class TestPostgresRecordStore(InPostgres, RecordStoreContract):
    """Commits and scopes."""


class TestPostgresAdoption(InPostgres, AdoptionContract):
    """Memories that were kept elsewhere."""


class TestPostgresSnapshot(InPostgres, SnapshotContract):
    """One moment of it."""


class TestPostgresRecordReader(InPostgres, RecordReaderContract):
    """Reading without searching."""


class TestPostgresSpaceRegistry(InPostgres, SpaceRegistryContract):
    """The embedding space."""


class TestPostgresChangeLog(InPostgres, ChangeLogContract):
    """What appliers read."""


class TestPostgresGenerations(InPostgres, GenerationCatalogueContract):
    """Builds of indexes."""

    @pytest.fixture
    def catalogued(self, truth: Truth, database: Database) -> Iterator[Catalogued]:
        """Empty."""

        def letters(target: str) -> int:
            with database.connection(Role.WORKER) as connection:
                query = "SELECT count(*) FROM threefold.dead_letter WHERE target = %s"
                row = connection.execute(query, [target]).fetchone()
            return int(str(row[0])) if row else 0

        with database.pool(Role.WORKER) as pool:
            yield Catalogued(truth=truth, catalogue=PostgresGenerations(pool), letters=letters)
