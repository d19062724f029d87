"""Migrations: once each, in order, by one process at a time, never backwards."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from memory_tool.adapters.postgres_migrations import (
    Migration,
    check_schema,
    migrate,
    shipped_migrations,
)
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Corrupt, Unavailable
from tests.services.postgres import Database, Server

FIRST = Migration(number=1, name="0001_first", sql="CREATE TABLE first (); SELECT '100%';")
SECOND = Migration(number=2, name="0002_second", sql="CREATE TABLE second ();")
BROKEN = Migration(number=3, name="0003_broken", sql="CREATE TABLE third (); TABLE nowhere;")


@pytest.fixture
def blank(postgres: Server) -> Iterator[Database]:
    """A database before its first migration."""
    with postgres.blank_database() as database:
        yield database


@pytest.fixture
def owner(blank: Database) -> str:
    """Connection parameters of its owner."""
    return blank.conninfo(Role.OWNER)


def tables(database: Database) -> set[str]:
    """The tables in the schema public."""
    with database.admin() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {str(name) for (name,) in rows} - {"threefold_migration"}


def test_four_at_once_apply_each_migration_once(owner: str) -> None:
    """Several processes of a new version start together."""
    with ThreadPoolExecutor(4) as pool:
        applied = [one for done in pool.map(lambda _: migrate(owner), range(4)) for one in done]
    assert sorted(applied, key=lambda one: one.number) == list(shipped_migrations())


@pytest.mark.parametrize("connect", [migrate, check_schema])
def test_nobody_waits_forever_for_a_silent_host(connect: Callable[[str], object]) -> None:
    """A host that takes a connection and says nothing would hang every start without a word."""
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        waiting = pool.submit(connect, f"host=127.0.0.1 port={port} user=u dbname=d")
        # Were it to wait, the end of this block would let it go.
        with pytest.raises(Unavailable):
            waiting.result(timeout=60)


def test_only_what_is_missing_is_applied(blank: Database, owner: str) -> None:
    """An update brings a few more."""
    assert migrate(owner, (FIRST,)) == (FIRST,)
    assert migrate(owner, (FIRST, SECOND)) == (SECOND,)
    assert migrate(owner, (FIRST, SECOND)) == ()
    assert tables(blank) == {"first", "second"}


def test_an_edited_file_is_refused(blank: Database, owner: str) -> None:
    """Two databases of one version would differ."""
    migrate(owner, (FIRST,))
    edited = replace(FIRST, sql=FIRST.sql + " ")
    with pytest.raises(Corrupt, match="0001_first was changed"):
        migrate(owner, (edited, SECOND))
    assert tables(blank) == {"first"}


def test_a_newer_database_is_refused(blank: Database, owner: str) -> None:
    """An old program would write what the new one can't read."""
    migrate(owner, (FIRST, SECOND))
    with pytest.raises(Corrupt, match="update Threefold"):
        migrate(owner, (FIRST,))
    assert tables(blank) == {"first", "second"}


def test_a_migration_that_fails_leaves_nothing(blank: Database, owner: str) -> None:
    """Nor do those before it: the program that runs is still the old one."""
    migrate(owner, (FIRST,))
    with pytest.raises(Corrupt):
        migrate(owner, (FIRST, SECOND, BROKEN))
    assert tables(blank) == {"first"}
    assert migrate(owner, (FIRST, SECOND)) == (SECOND,)


def test_the_owner_needs_no_more_than_its_database(blank: Database, owner: str) -> None:
    """Migrations never run as a superuser, so they must not need one."""
    migrate(owner)
    with blank.admin() as connection:
        owners = connection.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'threefold'"
        ).fetchall()
    assert owners == [(Role.OWNER,)]


@pytest.mark.parametrize("role", [Role.APP, Role.WORKER])
def test_nobody_else_migrates(blank: Database, role: Role) -> None:
    """A client must not be able to change the walls."""
    with pytest.raises(Corrupt):
        migrate(blank.conninfo(role))
    with blank.connection(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE public.mine ()")


@pytest.mark.parametrize("role", [Role.APP, Role.WORKER])
def test_a_process_that_may_not_migrate_checks_the_schema(
    blank: Database, owner: str, role: Role
) -> None:
    """Web processes need no owner's password; an old schema is an error that names the command."""
    shipped = shipped_migrations()
    for known in (0, 3, len(shipped) - 1):
        migrate(owner, shipped[:known])
        with pytest.raises(Corrupt) as caught:
            check_schema(blank.conninfo(role))
        assert caught.value.command == "threefold migrate"
    migrate(owner)
    check_schema(blank.conninfo(role))
