"""Which partitions a call reads, and how a store of whole tables becomes one of partitions."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC
from typing import Any

import psycopg
import pytest
from psycopg import sql

from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_migrations import migrate, shipped_migrations
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import Role
from memory_tool.filters import parse_filter
from memory_tool.model import NewMemory, Patch
from memory_tool.port_values import Existing, Opening, PageRequest, WritePlan
from memory_tool.query import EVERYTHING
from memory_tool.scope import Namespace, Scope
from memory_tool.text.normalise import content_hash
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import NO_BASE, postgres_truth, present
from tests.factories import ANNA, BEN, chunk_of, commit_of, new_id, put
from tests.integration.postgres_plans import Plan, explained, heard_plans, tables_read
from tests.services.postgres import Database, Server

PARTED = ("audit", "chunk", "idempotency", "memory", "memory_version")

USERS = tuple(Namespace(user="many", project=f"p{number}") for number in range(24))
"""Enough for rows in nearly every partition."""

GREEN = NewMemory(content="green tea", tags=("drink",), metadata={"colour": "green"})


def reworded(memory_id: str, text: str) -> Revise:
    """A new text for a memory."""
    return Revise(
        memory_id=memory_id,
        patch=Patch(content=text),
        content_hash=content_hash(text),
        chunks=(chunk_of(text),),
    )


# ── Which partitions a call reads ──


@pytest.fixture
def filled(database: Database) -> Database:
    """A database with a few rows in many namespaces."""
    with database.pool(Role.APP) as pool:
        store = PostgresRecordStore(pool)
        for namespace in USERS:
            store.commit(commit_of([put(GREEN), put("black tea")], namespace))
    return database


@contextmanager
def heard(database: Database, role: Role) -> Iterator[tuple[PostgresPool, list[Plan]]]:
    """A pool of two connections, which a batch needs, and the plans of all that they run."""
    with explained(database, role), database.pool(role, size=2) as pool:
        with pool.connection() as one, pool.connection() as another:
            plans = heard_plans(one, another)
        yield pool, plans


def partitions_of(database: Database, *namespaces: Namespace) -> set[str]:
    """The partitions in which rows of these namespaces may lie."""
    addresses = [namespace.address for namespace in namespaces]
    with database.admin() as connection:
        rows = connection.execute(
            "SELECT DISTINCT part.relname FROM threefold.namespace n, pg_inherits"
            " JOIN pg_class part ON part.oid = inhrelid"
            " WHERE n.address = ANY (%s) AND part.relkind = 'r' AND satisfies_hash_partition("
            "inhparent, 8, right(part.relname, 1)::int, n.ns_id)",
            [addresses],
        )
        return {str(name) for (name,) in rows}


def tables_heard(plans: list[Plan]) -> set[str]:
    """The parted tables that statements read."""
    return {name[:-2] for plan in plans for name in tables_read(plan) if name[:-2] in PARTED}


def assert_only(database: Database, plans: list[Plan], *namespaces: Namespace) -> None:
    """No statement read a partition but those of the namespaces."""
    others = partitions_of(database, *USERS) - partitions_of(database, *namespaces)
    assert len(others) >= len(PARTED) * 4
    for plan in plans:
        assert not tables_read(plan) & others, plan["Query Text"]


def test_a_write_reads_its_own_partitions(filled: Database) -> None:
    """What it costs depends on its namespace, not on the store; also when its plans are old."""
    with heard(filled, Role.APP) as (pool, plans):
        store = PostgresRecordStore(pool)
        for namespace in USERS[:3]:
            plans.clear()
            commit = commit_of(
                [put(new_id()), put(NewMemory(content=new_id(), key="k"))], namespace
            )
            ids = [str(result.id) for result in store.commit(commit)]
            store.commit(commit)
            store.commit(commit_of([put(GREEN), put(NewMemory(content="x", key="k"))], namespace))
            store.commit(commit_of([reworded(ids[0], "changed")], namespace))
            store.commit(commit_of([Remove(memory_id=ids[0])], namespace))
            assert_only(filled, plans, namespace)
            assert tables_heard(plans) == set(PARTED) - {"audit"}


def test_a_search_reads_its_own_partitions(filled: Database) -> None:
    """Every statement of a snapshot, for one namespace and for two, with the same kept plans."""
    green = parse_filter({"colour": "green"}, tz=UTC)
    dry = parse_filter({"metadata.colour": {"contains": "reen"}}, tz=UTC)
    with heard(filled, Role.APP) as (pool, plans):
        store = PostgresRecordStore(pool)
        for namespaces in (USERS[:1], USERS[1:3], USERS[3:4]):
            plans.clear()
            numbers = {
                clock.ns_id: clock.namespace
                for clock in store.view(Scope.of(*namespaces), ("x",)).namespaces
            }
            opening = Opening(
                namespaces=numbers,
                marks=(("x", "y"),),
                since=dict.fromkeys(numbers, 0),
                overlay_limit=100,
            )
            with store.snapshot(opening) as snapshot:
                keys = list(present(snapshot.matching_keys(EVERYTHING, 100)))
                some = 2 * len(numbers)
                assert len(keys) == len(present(snapshot.overlay)) == some
                assert len(present(snapshot.matching_keys(green, 9))) == len(numbers)
                assert len(present(snapshot.matching_keys(dry, 9))) == len(numbers)
                assert len(snapshot.outlines(keys, green)) == len(numbers)
                assert len(snapshot.rows(keys)) == some
                assert len(present(snapshot.vectors(keys, 100)).references) == some
                assert len(present(snapshot.vectors(None, 100)).references) == some
                assert len(snapshot.chunks_with(["tea"], 100)) == some
                assert len(snapshot.chunks_with(["drink"], 100)) == len(numbers)
            assert_only(filled, plans, *namespaces)
            assert tables_heard(plans) == {"memory", "chunk"}


def test_reading_without_searching_reads_its_own_partitions(filled: Database) -> None:
    """Who knows an id only looks for it in the namespaces of the scope, and nowhere else."""
    with heard(filled, Role.APP) as (pool, plans):
        store = PostgresRecordStore(pool)
        reader = PostgresRecordReader(pool, store)
        scope, request = Scope.of(*USERS[:2]), PageRequest(condition=EVERYTHING, limit=3)
        for _ in range(3):
            page = reader.page(scope, request)
            assert len(page) == 3
            last = page[-1].memory
            assert len(reader.page(scope, replace(request, after=(last.event_time, last.id)))) == 1
            assert set(reader.fetch(scope, [last.id, new_id()])) == {last.id}
            assert reader.history(scope, last.id) == (last,)
            assert reader.deleted(scope, [last.id]) == frozenset()
        assert_only(filled, plans, *USERS[:2])
        assert tables_heard(plans) == {"memory", "memory_version"}


@pytest.mark.parametrize("kind", ["vector", "keyword"])
def test_an_applier_reads_the_partitions_that_changed(filled: Database, kind: str) -> None:
    """It asks each second; most namespaces have nothing new."""
    with heard(filled, Role.WORKER) as (pool, plans), filled.pool(Role.APP) as app:
        log = PostgresChangeLog(pool)
        base = NO_BASE
        for namespaces in (USERS, USERS[:1], USERS[1:3]):
            for namespace in namespaces:
                PostgresRecordStore(app).commit(commit_of([put(new_id())], namespace))
            plans.clear()
            with log.changes(
                "x", "vector" if kind == "vector" else "keyword", base=base, limit=999
            ) as batch:
                rows = list(batch.rows)
            clocks = {**base.clocks, **batch.clocks}
            base = replace(base, mark=batch.mark, clocks=clocks)
            if namespaces is not USERS:
                assert len(rows) == len(namespaces)
                assert_only(filled, plans, *namespaces)
                assert tables_heard(plans) == {"memory", "chunk"}


# ── From whole tables to partitions ──


@pytest.fixture
def old(postgres: Server) -> Iterator[Database]:
    """A database of the last version whose tables were whole, with rows of every kind.

    This version writes no such tables any more: they are filled from those of a present store.
    """
    with postgres.blank_database() as present, postgres.blank_database() as blank:
        migrate(present.conninfo(Role.OWNER))
        migrate(blank.conninfo(Role.OWNER), shipped_migrations()[:4])
        with present.pool(Role.APP) as pool:
            store = PostgresRecordStore(pool)
            for namespace in (ANNA, BEN, *USERS):
                news = (GREEN, NewMemory(content="keyed", key="k"), NewMemory(content="gone"))
                first = commit_of(list(map(put, news)), namespace, key="first")
                ids = [str(result.id) for result in store.commit(first)]
                store.commit(commit_of([reworded(ids[1], "reworded")], namespace))
                bare = replace(chunk_of("owed"), embedding=None)
                store.commit(commit_of([Remove(memory_id=ids[2]), put("owed", bare)], namespace))
        with present.admin() as source, blank.admin() as target:
            for name in ("namespace", "ns_clock", *PARTED):
                copy_rows(source, target, name=name)
        yield blank


def copy_rows(
    source: psycopg.Connection[Any], target: psycopg.Connection[Any], *, name: str
) -> None:
    """Put the rows of a table into the same table of an older version, which has fewer columns."""
    table = sql.Identifier("threefold", name)
    query = sql.SQL("SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text FROM {} t").format(table)
    rows = source.execute(query).fetchall()[0][0]
    plain = target.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = ('threefold.' || %s)::regclass"
        " AND attnum > 0 AND attgenerated = ''",
        [name],
    ).fetchall()
    columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in plain)
    target.execute(
        sql.SQL(
            "INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE"
            " SELECT {1} FROM jsonb_populate_recordset(NULL::{0}, %s::jsonb)"
        ).format(table, columns),
        [rows],
    )


def dumped(database: Database) -> Mapping[str, list[str]]:
    """Every row of the tables, with all columns that they had then."""
    query = sql.SQL("SELECT to_jsonb(t) - '{{archive,space}}'::text[] FROM threefold.{} t")
    with database.admin() as connection:
        return {
            name: sorted(
                json.dumps(row, sort_keys=True)
                for (row,) in connection.execute(query.format(sql.Identifier(name)))
            )
            for name in PARTED
        }


def columns(connection: psycopg.Connection, table: str) -> list[tuple[object, ...]]:
    """Name, type, storage, default and whether it may be missing, of each of the old columns."""
    return connection.execute(
        "SELECT attname, atttypid::regtype::text, attstorage, attnotnull, attgenerated,"
        " pg_get_expr(adbin, adrelid) FROM pg_attribute"
        " LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
        " WHERE attrelid = ('threefold.' || %s)::regclass AND attnum > 0"
        " AND attname NOT IN ('archive', 'space') ORDER BY attnum",
        [table],
    ).fetchall()


def constraints(connection: psycopg.Connection, table: str) -> set[tuple[object, ...]]:
    """Checks, and the columns of keys in whatever order; newer servers list NOT NULL too."""
    rows = connection.execute(
        "SELECT contype, CASE contype WHEN 'c' THEN pg_get_constraintdef(oid) END,"
        " ARRAY(SELECT unnest(conkey) ORDER BY 1)::text FROM pg_constraint"
        " WHERE conrelid = ('threefold.' || %s)::regclass AND contype <> 'n'",
        [table],
    )
    return set(rows.fetchall())


def test_every_row_is_found_again(old: Database) -> None:
    """An update of the program must not cost a memory, a version or an answer already given."""
    before = dumped(old)
    assert all(len(rows) >= len(USERS) for rows in before.values())
    migrate(old.conninfo(Role.OWNER))
    assert dumped(old) == before
    with postgres_truth(old) as truth:
        for namespace in (ANNA, BEN, *USERS):
            scope = Scope.of(namespace)
            page = truth.reader.page(scope, PageRequest(condition=EVERYTHING, limit=9))
            by_text = {row.memory.content: row.memory for row in page}
            assert set(by_text) == {"green tea", "reworded", "owed"}
            history = truth.reader.history(scope, by_text["reworded"].id)
            assert [memory.content for memory in history] == ["keyed", "reworded"]
            with truth.seen(namespace) as snapshot:
                assert len(snapshot.chunks_with(["tea", "reword", "owe"], 9)) == 3
                assert len(present(snapshot.vectors(None, 9)).references) == 2
            assert truth.clock(namespace) == 6

            def never(existing: Existing) -> WritePlan:
                raise AssertionError(existing)

            again = replace(commit_of([put("x")], namespace, key="first"), plan=never)
            assert [result.version for result in truth.store.commit(again)] == [1, 1, 1]
            assert truth.write(put(GREEN), namespace=namespace)[0].id == by_text["green tea"].id


def test_what_tables_refuse_they_still_refuse(old: Database) -> None:
    """Keys, checks, defaults and the storage of vectors are those of before."""
    with old.admin() as connection:
        before = {
            name: (columns(connection, name), constraints(connection, name)) for name in PARTED
        }
        migrate(old.conninfo(Role.OWNER))
        for name in PARTED:
            for part in (name, f"{name}_0", f"{name}_7"):
                assert (columns(connection, part), constraints(connection, part)) == before[name]
        with pytest.raises(psycopg.errors.CheckViolation, match="a_tombstone_says_nothing"):
            connection.execute("UPDATE threefold.memory SET state = 'deleted'")
