"""Servers and databases that tests of every kind use."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long import leave_out_long
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.elasticsearch_nodes import (
    ElasticsearchCluster,
    ElasticsearchInstallation,
    ElasticsearchNode,
)
from tests.services.postgres import Database, Server, embedded_server, server_at
from tests.services.proxy import ElasticsearchProxy
from tests.services.required import ELASTICSEARCH, ELASTICSEARCH_URL, lacking

# Without the sets there is nothing to measure; `scripts/check` says so.
collect_ignore = (
    [] if os.environ.get("THREEFOLD_EVALUATION_DATA") else ["integration/test_evaluation.py"]
)

DATABASE_URL = os.environ.get("THREEFOLD_TEST_DATABASE_URL", "")


def pytest_configure() -> None:
    """Where a service must be there, its absence is a failure and no skipped test."""
    if needs := lacking(os.environ):
        raise pytest.UsageError("; ".join(needs))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the gate has no time for is skipped."""
    leave_out_long(items)


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


@pytest.fixture(scope="session")
def elasticsearch() -> ElasticsearchServer:
    """The server of ``THREEFOLD_TEST_ELASTICSEARCH_URL``, for tests that leave it running."""
    return ElasticsearchServer(url=_value_of(ELASTICSEARCH_URL))


@pytest.fixture
def index_prefix(elasticsearch: ElasticsearchServer) -> Iterator[str]:
    """How the names of one test's indices begin; they are gone at its end."""
    with elasticsearch.unused_prefix() as prefix:
        yield prefix


@pytest.fixture
def elasticsearch_proxy(elasticsearch: ElasticsearchServer) -> Iterator[ElasticsearchProxy]:
    """A proxy before the server that lives through every test."""
    with ElasticsearchProxy(elasticsearch) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def elasticsearch_installation() -> Iterator[ElasticsearchInstallation]:
    """Starts further servers, of ``THREEFOLD_TEST_ELASTICSEARCH``, unpacked once for all tests."""
    starter = Path(_value_of(ELASTICSEARCH)) / "es.py"
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        yield ElasticsearchInstallation(starter=starter, folder=Path(folder))


@pytest.fixture(scope="module")
def _node_of_module(
    elasticsearch_installation: ElasticsearchInstallation,
) -> Iterator[ElasticsearchNode]:
    with elasticsearch_installation.node() as node:
        yield node


@pytest.fixture
def elasticsearch_node(_node_of_module: ElasticsearchNode) -> ElasticsearchNode:
    """A node that a test may stop, kill and suspend; the next one finds it running again."""
    _node_of_module.start()
    return _node_of_module


@pytest.fixture(scope="module")
def elasticsearch_with_password(
    elasticsearch_installation: ElasticsearchInstallation,
) -> Iterator[ElasticsearchServer]:
    """A server that lets nobody in without a password."""
    with elasticsearch_installation.node(password="only-for-tests") as node:
        yield node.server


@pytest.fixture(scope="module")
def _cluster_of_module(
    elasticsearch_installation: ElasticsearchInstallation,
) -> Iterator[ElasticsearchCluster]:
    with elasticsearch_installation.cluster() as cluster:
        yield cluster


@pytest.fixture
def elasticsearch_cluster(_cluster_of_module: ElasticsearchCluster) -> ElasticsearchCluster:
    """Three nodes that a test may kill; the next test finds them running, with their data."""
    _cluster_of_module.start()
    return _cluster_of_module


def _value_of(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set")
    return value
