"""Which indexes serve the queries that a search waits for, on a few thousand rows."""

import re
from collections.abc import Iterator, Mapping

import psycopg
import pytest
from psycopg import sql

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_migrations import migrate
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_rows import id_array
from memory_tool.adapters.postgres_server import Role
from memory_tool.model import NewMemory, Patch
from memory_tool.port_values import Opening
from memory_tool.query import EVERYTHING
from memory_tool.scope import Namespace, Scope
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import present
from tests.factories import commit_of, new_id, put
from tests.integration.postgres_plans import with_index_names
from tests.services.postgres import Database, Server

NAMESPACES = tuple(Namespace(user=f"user{number}") for number in range(4))
ROWS = 1200
"""In each namespace; with fewer, reading all of a table is rightly cheaper than an index."""

OUT_OF_ORDER = re.compile(r"Seq Scan on (memory|chunk)|->  (Incremental )?Sort")
"""What a plan may not hold that looks rows up and keeps their order."""


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[Database]:
    """A database with a few thousand rows, whose statistics are fresh."""
    with postgres.database() as one:
        with one.pool(Role.APP) as pool:
            for namespace in NAMESPACES:
                fill(PostgresRecordStore(pool), namespace)
        with one.admin() as connection:
            connection.execute("VACUUM ANALYZE")
        yield one


def fill(store: PostgresRecordStore, namespace: Namespace) -> None:
    """Rows of which few share a word, a tag or a value."""
    for first in range(0, ROWS, 200):
        numbers = range(first, first + 200)
        news = (
            NewMemory(
                content=f"note word{number} kind{number % 7}",
                tags=(f"tag{number % 300}",),
                metadata={"number": number % 400, "always": "same"},
            )
            for number in numbers
        )
        store.commit(commit_of(list(map(put, news)), namespace))


@pytest.fixture
def ns_ids(database: Database) -> list[int]:
    """The number of one namespace."""
    with database.admin() as connection:
        rows = connection.execute("SELECT min(ns_id) FROM threefold.namespace").fetchall()
        return [int(rows[0][0])]


@pytest.fixture
def reader(database: Database, ns_ids: list[int]) -> Iterator[psycopg.Connection]:
    """A transaction as the role that owns the search functions."""
    with database.admin() as connection, connection.transaction():
        connection.execute("SET LOCAL ROLE threefold_reader")
        connection.execute(statement("name_namespaces"), {"named": f"{{{ns_ids[0]}}}"})
        yield connection


@pytest.fixture
def app(database: Database, ns_ids: list[int]) -> Iterator[psycopg.Connection]:
    """A transaction of the app in one namespace."""
    with database.connection(Role.APP) as connection, connection.transaction():
        connection.execute(statement("name_namespaces"), {"named": f"{{{ns_ids[0]}}}"})
        yield connection


@pytest.fixture
def worker(database: Database) -> Iterator[psycopg.Connection]:
    """A transaction of the worker."""
    with database.connection(Role.WORKER) as connection, connection.transaction():
        connection.execute(statement("be_patient"))
        yield connection


def plan(connection: psycopg.Connection, query: str, *, values: Mapping[str, object]) -> str:
    """The plan of a query with these values, as text."""
    text = psycopg.ClientCursor(connection).mogrify(query, values)
    rows = connection.execute(f"EXPLAIN (COSTS OFF) {text}".encode()).fetchall()
    return with_index_names(connection, "\n".join(str(line) for (line,) in rows))


def function_plan(
    connection: psycopg.Connection, function: str, *, values: Mapping[str, object], query: int = 0
) -> str:
    """The plan of a query inside a search function, the first if no other, for these values."""
    # As the app has it, except for what the function sets for itself.
    connection.execute("SET LOCAL enable_bitmapscan = off")
    rows = connection.execute(
        "SELECT unnest(proconfig) FROM pg_proc WHERE proname = %s", [function]
    )
    for (setting,) in rows.fetchall():
        connection.execute("SELECT set_config(%s, %s, true)", str(setting).split("="))
    text = body(connection, function).split("RETURN QUERY")[1 + query].partition(";")[0]
    for name, value in values.items():
        literal = sql.Literal(value).as_string(connection).replace("\\", r"\\")
        text = re.sub(rf"(?<![.\w]){name}(?![.\w])", literal, text)
    return plan(connection, text, values={})


def test_words_are_found_by_their_index(reader: psycopg.Connection, ns_ids: list[int]) -> None:
    """Without it, keyword search without a keyword index would read every chunk."""
    values = {"allowed": ns_ids, "wanted": ["word77", "tag9"], "bound": 100}
    found = function_plan(reader, "chunks_with_terms", values=values)
    assert "chunk_tokens" in found
    assert "memory_extra" in found
    assert "Seq Scan" not in found


def test_words_of_lower_tiers_are_found_by_their_index(
    reader: psycopg.Connection, ns_ids: list[int]
) -> None:
    """It runs in each search of a namespace that has aged."""
    values = {"allowed": ns_ids, "wanted": ["word77", "tag9"], "bound": 100, "ids": None}
    for query in (0, 1):
        found = function_plan(reader, "lower_chunks_with_terms", values=values, query=query)
        assert "Seq Scan" not in found
        assert ("memory_lowered" in found) or ("memory_extra" in found)
        assert "chunk_pkey" in found
        assert ("chunk_tokens" in found) == bool(query)


def test_metadata_is_found_by_its_index(reader: psycopg.Connection, ns_ids: list[int]) -> None:
    """A filter that few rows meet must not read them all."""
    values = {"allowed": ns_ids, "wanted": '{"number": 77}'}
    found = function_plan(reader, "memories_with_metadata", values=values)
    assert "memory_metadata" in found
    assert "Seq Scan" not in found


@pytest.mark.parametrize("name", ["outlines", "rows", "vectors_of", "deleted_ids"])
def test_rows_are_fetched_by_their_ids(
    app: psycopg.Connection, ns_ids: list[int], name: str
) -> None:
    """Every search ends with one of these, and its scope may be a thousand namespaces."""
    ids = id_array(new_id() for _ in range(20))
    values = {"ns_ids": ns_ids, "ids": [ids], "bound": 100}
    found = plan(app, statement(name, condition=""), values=values)
    assert "memory_pkey" in found
    assert not OUT_OF_ORDER.search(found)


def test_the_overlay_reads_the_log(app: psycopg.Connection, ns_ids: list[int]) -> None:
    """It is a part of every search, and mostly empty."""
    values = {"since_ns": ns_ids, "since": [ROWS - 5], "bound": 100}
    found = plan(app, statement("overlay"), values=values)
    assert "memory_log" in found
    assert "chunk_pkey" in found
    assert not OUT_OF_ORDER.search(found)


def test_appliers_read_the_log(worker: psycopg.Connection, ns_ids: list[int]) -> None:
    """Namespace by namespace; at most the numbers of one are sorted, never everything at once."""
    values = {"ns_ids": ns_ids, "above": [0], "upto": [ROWS]}
    columns = "k.words, k.bigrams, k.embedding"
    query = statement(
        "changed_rows", number="vector_nseq", held="m.state = 'live'", columns=columns
    )
    found = plan(worker, query, values=values)
    assert re.search(r"Nested Loop.*\n.*Nested Loop.*\n.*Function Scan on s", found)
    assert "memory_log" in found
    assert "chunk_pkey" in found
    assert "Seq Scan" not in found


def test_missing_vectors_are_looked_for_in_order(
    worker: psycopg.Connection, ns_ids: list[int]
) -> None:
    """A page reads no more of a namespace than its own memories, however large that is."""
    values = {"space": 2, "ns_id": ns_ids[0], "after": "0" * 32, "ordinal": -1, "bound": 32}
    found = plan(worker, statement("missing_vectors"), values=values)
    ordered = r"CTE page\n +->  Limit\n +->  Result\n +->  Index Scan using chunk_pkey"
    assert re.search(ordered, found)
    assert "memory_pkey" in found
    assert "Seq Scan" not in found


def test_pages_are_read_in_their_order(app: psycopg.Connection, ns_ids: list[int]) -> None:
    """Page 1,000 must not cost more than page 1."""
    values = {
        "ns_ids": ns_ids,
        "after_time": "2025-01-01T00:00Z",
        "after_id": new_id(),
        "bound": 20,
    }
    found = plan(app, statement("page", condition=""), values=values)
    assert re.search(r"Index Scan using memory_listing.*\n.*Index Cond:.*event_time", found)


@pytest.mark.parametrize(
    ("column", "index"),
    [("dedup_hash", "memory_dedup"), ("key_hash", "memory_key"), ("id", "memory_pkey")],
)
def test_a_write_looks_rows_up_by_their_keys(
    app: psycopg.Connection, ns_ids: list[int], column: str, index: str
) -> None:
    """No condition may be one that the wall holds back, as it would any on a hash function."""
    condition = rf"m\.ns_id = open_write\.ns_id AND m\.{column} = wanted\.(id|hash)"
    assert re.search(condition, body(app, "open_write"))
    value = new_id() if column == "id" else bytes(32)
    query = f"SELECT * FROM threefold.memory m WHERE m.ns_id = %(ns_id)s AND m.{column} = %(value)s"  # noqa: S608 - a name of this file
    assert index in plan(app, query, values={"ns_id": ns_ids[0], "value": value})


def body(connection: psycopg.Connection, function: str) -> str:
    """The source of a function."""
    rows = connection.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [function])
    return str(rows.fetchall()[0][0])


READS = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) + (
    SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname ~ '^(memory|chunk)_\\d')
FROM pg_stat_user_tables WHERE relname ~ '^(memory|chunk)_\\d'
"""


def rows_read(pool: PostgresPool) -> int:
    """Rows and index entries of memories and chunks that were read, as counted by the server."""
    with pool.connection() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        rows = connection.execute(READS).fetchall()
    return int(str(rows[0][0]))


def change_and_search(store: PostgresRecordStore) -> None:
    """Add, repeat, change, delete and fetch a few rows."""
    namespace = NAMESPACES[0]
    puts = [put(new_id()) for _ in range(8)]
    ids = [one.memory_id for one in puts]
    store.commit(commit_of(puts, namespace))
    store.commit(commit_of([put(puts[0].new)], namespace))
    store.commit(commit_of([put(NewMemory(content="keyed", key="k"))], namespace))
    for memory_id in ids:
        change = Revise(memory_id=memory_id, patch=Patch(importance=3))
        store.commit(commit_of([change], namespace))
    store.commit(commit_of([Remove(memory_id=one) for one in ids[:4]], namespace))
    (clock,) = store.view(Scope.of(namespace), ()).namespaces
    opening = Opening(
        namespaces={clock.ns_id: namespace}, since={clock.ns_id: clock.nseq - 2}, overlay_limit=10
    )
    with store.snapshot(opening) as snapshot:
        keys = [(clock.ns_id, memory_id) for memory_id in ids]
        assert len(snapshot.outlines(keys, EVERYTHING)) == len(snapshot.rows(keys)) == 4
        assert len(present(snapshot.vectors(keys, 100)).references) == 4


@pytest.mark.parametrize("vacuumed", [False, True])
def test_no_call_reads_more_than_its_rows(postgres: Server, *, vacuumed: bool) -> None:
    """A plan is made while a store is empty and kept while it grows; it must be right for both.

    A nightly vacuum tells the planner that the store is empty, which is worse than knowing nothing.
    """
    with postgres.blank_database() as blank:
        migrate(blank.conninfo(Role.OWNER))
        if vacuumed:
            with blank.admin() as connection:
                connection.execute("VACUUM ANALYZE")
        with blank.pool(Role.APP, size=1) as pool:
            store = PostgresRecordStore(pool)
            change_and_search(store)
            fill(store, NAMESPACES[0])
            before = rows_read(pool)
            change_and_search(store)
            assert rows_read(pool) - before < ROWS / 8
