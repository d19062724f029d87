"""Servers and databases that tests of every kind use."""

import os
from collections.abc import Iterator

import pytest

from tests.services.postgres import Database, Server, embedded_server, server_at

# Without the sets there is nothing to measure; `scripts/check` says so.
collect_ignore = (
    [] if os.environ.get("THREEFOLD_EVALUATION_DATA") else ["integration/test_evaluation.py"]
)

DATABASE_URL = os.environ.get("THREEFOLD_TEST_DATABASE_URL", "")


@pytest.fixture(scope="session")
def embedded_postgres() -> Iterator[Server]:
    """The embedded server, one for the session."""
    with embedded_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_by_url() -> Iterator[Server]:
    """The server of ``THREEFOLD_TEST_DATABASE_URL``, the address of a superuser."""
    with server_at(DATABASE_URL) as server:
        yield server


@pytest.fixture(scope="session", params=["embedded", "url"] if DATABASE_URL else ["embedded"])
def postgres(request: pytest.FixtureRequest) -> Server:
    """Each server that there is."""
    name = "embedded_postgres" if request.param == "embedded" else "postgres_by_url"
    server: Server = request.getfixturevalue(name)
    return server


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    """A migrated database of one test."""
    with postgres.database() as one:
        yield one
