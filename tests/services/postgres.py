"""PostgreSQL servers for tests, and databases on them that a test may spoil."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

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
        with psycopg.connect(self.conninfo(role), autocommit=True) as connection:
            yield connection

    @contextmanager
    def admin(self) -> Iterator[psycopg.Connection]:
        """The superuser's connection."""
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            yield connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A PostgreSQL server.

    Attributes:
        superuser: Connection parameters of its superuser, in any database.
        template: Name of a database that was migrated and is copied for each test.
    """

    superuser: str
    template: str

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[Database]:
        """A new database, dropped at the end: a copy of the template, or an empty one."""
        name = f"threefold_test_{uuid.uuid4().hex}"
        if not migrated:
            create_roles_and_database(self.superuser, name)
        else:
            self._run("CREATE DATABASE {} OWNER threefold_owner TEMPLATE {}", name, self.template)
        try:
            yield Database(superuser=make_conninfo(self.superuser, dbname=name))
        finally:
            self._run("DROP DATABASE {} WITH (FORCE)", name)

    def _run(self, statement: str, *names: str) -> None:
        command = sql.SQL(statement).format(*map(sql.Identifier, names))  # type: ignore[arg-type] # both are of this file
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute(command)


@contextmanager
def embedded_server() -> Iterator[Server]:
    """The server of the wheel. Tests kill processes, not machines: nothing has to reach the disk."""
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
    template = f"threefold_template_{uuid.uuid4().hex}"
    create_roles_and_database(superuser, template)
    migrate(make_conninfo(superuser, dbname=template, user=Role.OWNER))
    server = Server(superuser=superuser, template=template)
    try:
        yield server
    finally:
        with psycopg.connect(superuser, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {}").format(sql.Identifier(template))
            connection.execute(drop)
