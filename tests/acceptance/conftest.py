"""Memories for the acceptance tests: one for the session, and stores that a test may spoil."""

import os
import uuid
from collections.abc import Iterator

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_server import Role
from tests.acceptance.opening import OwnStore, passable_folder, spare_the_disk
from tests.acceptance.other_process import OtherProcess
from tests.services.elasticsearch import ElasticsearchServer
from tests.services.postgres import Database, Server


@pytest.fixture(scope="session")
def shared_store() -> Iterator[OwnStore]:
    """The embedded store of the session, as a laptop has it."""
    with passable_folder() as folder:
        yield OwnStore(folder=folder)


@pytest.fixture(scope="session")
def memory(shared_store: OwnStore) -> Iterator[MemoryManage]:
    """The memory of the session; tests keep apart by their own ids."""
    with shared_store.open() as memory:
        spare_the_disk(shared_store.data_dir())
        # From here on this process holds the right to bring the indexes forward.
        memory.apply_now()
        yield memory


@pytest.fixture(scope="session")
def neighbour(memory: MemoryManage, shared_store: OwnStore) -> Iterator[OtherProcess]:
    """Another process with the memory of the session, on the same data folder."""
    with shared_store.other_process() as process:
        yield process


@pytest.fixture
def user() -> str:
    """An id that nobody used before."""
    return f"user-{uuid.uuid4().hex}"


@pytest.fixture
def mine(memory: MemoryManage, user: str) -> MemoryManage:
    """The memory of the session, bound to a user that nobody used before."""
    return memory.scoped(user_id=user)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database of one test, on the server that a variable names, if it does.

    The embedded one is proven all the same, by the store of the session.
    """
    by_url = os.environ.get("THREEFOLD_TEST_DATABASE_URL")
    server: Server = request.getfixturevalue("postgres_by_url" if by_url else "embedded_postgres")
    with server.database() as one:
        yield one


@pytest.fixture
def own_store(database: Database) -> Iterator[OwnStore]:
    """A store of one test, on a database of its own."""
    with passable_folder() as folder:
        yield OwnStore(folder=folder, database_url=database.conninfo(Role.APP))


@pytest.fixture(params=["faiss", "elasticsearch"])
def server_store(
    request: pytest.FixtureRequest,
    database: Database,
    elasticsearch: ElasticsearchServer,
    index_prefix: str,
) -> Iterator[OwnStore]:
    """A store of one test on servers: its keywords, or its keywords and vectors."""
    settings = {
        "elasticsearch_url": elasticsearch.url,
        "elasticsearch_prefix": index_prefix,
        "elasticsearch_replicas": 0,
        "vector_backend": request.param,
        # Many tests beside each other are slower than a search may be.
        "arm_seconds": 20.0,
    }
    with passable_folder() as folder:
        url = database.conninfo(Role.APP)
        yield OwnStore(folder=folder, database_url=url, settings=settings)


@pytest.fixture
def embedded_store() -> Iterator[OwnStore]:
    """A store of one test with a server of its own."""
    with passable_folder() as folder:
        yield OwnStore(folder=folder)
