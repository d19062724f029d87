"""The truth in PostgreSQL keeps the contracts."""

from collections.abc import Iterator

import pytest

from tests.contract.change_log import ChangeLogContract
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


class TestPostgresSnapshot(InPostgres, SnapshotContract):
    """One moment of it."""


class TestPostgresRecordReader(InPostgres, RecordReaderContract):
    """Reading without searching."""


class TestPostgresSpaceRegistry(InPostgres, SpaceRegistryContract):
    """The embedding space."""


class TestPostgresChangeLog(InPostgres, ChangeLogContract):
    """What appliers read."""
