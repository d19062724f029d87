"""PostgreSQL servers for tests, and databases on them that a test may spoil."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_migrations import migrate
from memory_tool.adapters.postgres_server import (
    EmbeddedPostgres,
    Role,
    create_roles_and_database,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database of one test, as each role reaches it."""

    superuser: str

    @property
    def name(self) -> str:
        """Its name."""
        return str(conninfo_to_dict(self.superuser)["dbname"])

    def conninfo(self, role: str) -> str:
        """Connection parameters of a role."""
        return make_conninfo(self.superuser, user=role)

    @contextmanager
    def pool(self, role: Role, *, size: int = 8, pooled: bool = False) -> Iterator[PostgresPool]:
        """An open pool of a role."""
        pool = PostgresPool(self.conninfo(role), size=size, pooled=pooled)
        pool.open()
        try:
            yield pool
        finally:
            pool.close()

    @contextmanager
    def connection(self, role: str) -> Iterator[psycopg.Connection]:
        """A connection of a role, in autocommit mode."""
        # Behind a pooler a prepared statement would stay with the next client.
        with psycopg.connect(
            self.conninfo(role), autocommit=True, prepare_threshold=None
        ) as connection:
            yield connection

    @contextmanager
    def admin(self) -> Iterator[psycopg.Connection]:
        """The superuser's connection."""
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            yield connection


_EMPTY = """
DO $$
DECLARE
    filled text;
BEGIN
    FOR filled IN SELECT relname FROM pg_class
        WHERE relnamespace = 'threefold'::regnamespace AND relkind IN ('r', 'p')
          AND NOT relispartition AND relname <> 'store_meta'
    LOOP
        EXECUTE format('DELETE FROM threefold.%I', filled);
    END LOOP;
END $$
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A PostgreSQL server.

    Attributes:
        superuser: Connection parameters of its superuser, in any database.
        template: Name of a database that was migrated and is copied for tests.
        spares: Copies that a test is done with, emptied: a copy costs a hundred times as much.
    """

    superuser: str
    template: str
    spares: list[Database] = field(default_factory=list)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """A migrated database without rows. A test may do to it what the three roles may do."""
        database = self.spares.pop() if self.spares else self._copy()
        yield database
        with database.admin() as connection:
            connection.execute(_EMPTY)
        self.spares.append(database)

    @contextmanager
    def blank_database(self) -> Iterator[Database]:
        """A database before its first migration, dropped at the end."""
        name = _unused_name()
        create_roles_and_database(self.superuser, name)
        yield Database(superuser=make_conninfo(self.superuser, dbname=name))
        self.run("DROP DATABASE {} WITH (FORCE)", name)

    def _copy(self) -> Database:
        name = _unused_name()
        self.run("CREATE DATABASE {} OWNER threefold_owner TEMPLATE {}", name, self.template)
        return Database(superuser=make_conninfo(self.superuser, dbname=name))

    def run(self, statement: LiteralString, *names: str) -> None:
        """Run a statement, with these names in its places."""
        command = sql.SQL(statement).format(*map(sql.Identifier, names))
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(command)


def _unused_name() -> str:
    return f"threefold_test_{uuid.uuid4().hex}"


@contextmanager
def embedded_server() -> Iterator[Server]:
    """The server of the wheel. Tests kill processes, not machines: nothing need reach the disk."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(Path(folder) / "s") as embedded:
            superuser = embedded.superuser_conninfo()
            with psycopg.connect(superuser, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            with server_at(superuser) as server:
                yield server


@contextmanager
def server_at(superuser: str) -> Iterator[Server]:
    """The server that these parameters of its superuser name."""
    template = _unused_name()
    create_roles_and_database(superuser, template)
    migrate(make_conninfo(superuser, dbname=template, user=Role.OWNER))
    server = Server(superuser=superuser, template=template)
    yield server
    for database in server.spares:
        server.run("DROP DATABASE {}", database.name)
    server.run("DROP DATABASE {}", template)
