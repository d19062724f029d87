"""Stores that a test may cut off from their servers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tool.adapters.postgres_server import Role
from tests.acceptance.opening import passable_folder
from tests.services.postgres import Database, Server


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder."""
    with passable_folder() as path:
        yield path


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of one test, on the server that a variable names, if it does."""
    by_url = os.environ.get("THREEFOLD_TEST_DATABASE_URL")
    server: Server = request.getfixturevalue("postgres_by_url" if by_url else "embedded_postgres")
    with server.database() as one:
        yield one


@pytest.fixture
def database_url(database: Database) -> str:
    """Its address, as the application's role."""
    return database.conninfo(Role.APP)
