"""One embedded PostgreSQL for all property tests of a session."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_server import DATABASE, EmbeddedPostgres


@pytest.fixture(scope="session")
def embedded_superuser_conninfo() -> Iterator[str]:
    """Connection parameters of the superuser, in a database with the locale of the house."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(Path(folder) / "store") as server:
            yield server.superuser_conninfo(DATABASE)
