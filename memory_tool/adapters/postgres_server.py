"""The embedded PostgreSQL: a server of our own for as long as anybody uses its folder."""

import atexit
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from memory_tool.adapters.postgres_binaries import EmbeddedPostgresError
from memory_tool.adapters.postgres_cluster import (
    PORT,
    SUPERUSER,
    Cluster,
    FileLock,
    find_cluster,
    prepare_cluster,
)

DATABASE: Final = "threefold"

START_SECONDS: Final = 300
"""Longest start: recovery of a few hundred megabytes of log took 7 s on two busy cores, and a large
store on a slow disk needs many times that."""

STOP_SECONDS: Final = 60
"""Longest wait for a stop; the server goes on stopping after it."""

_NOT_STARTED: Final = "the embedded PostgreSQL is not started"
_PROGRESS_SECONDS: Final = 5
_POLL_SECONDS: Final = 0.05
_CONNECT_SECONDS: Final = 5

_ADVISORY_KEY: Final = 0x7468726565666F6C
"""``threefol`` in ASCII: a number that no other application picks by chance."""

_SQL: Final = Path(__file__).parent / "sql"


class Role(StrEnum):
    """The roles that log in; ``sql/roles.sql`` says what each may do."""

    OWNER = "threefold_owner"
    APP = "threefold_app"
    WORKER = "threefold_worker"


def _say_nothing(_line: str) -> None:
    pass


class EmbeddedPostgres:
    """A PostgreSQL server over a private Unix socket, shared by all processes that open its folder.

    The first one starts the server and the last one stops it. Flocks decide that, which the kernel
    frees whatever way a process ends: each client shares ``clients``, whoever starts or stops holds
    ``start``, and the server's own processes hold ``server`` from the first to the last. So nobody
    asks whether the number in ``postmaster.pid`` is alive, which may be a zombie's or another
    process's by now.

    Safe to use from several threads. A forked child may use its parent's server; one that outlives
    its parent calls ``start`` for a hold of its own.

    Attributes:
        data_dir: The store's folder, which the server's files lie in or are named in.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        bin_dir: Path | None = None,
        on_progress: Callable[[str], None] = _say_nothing,
    ) -> None:
        """Remember where the server lives; nothing is touched before ``start``.

        Args:
            data_dir: The store's folder.
            bin_dir: Where initdb, pg_ctl and postgres are; default: the wheel of
                ``threefold[local]``, then a system PostgreSQL.
            on_progress: Gets a line for each step that may take long, and one every 5 s of waiting.

        Raises:
            EmbeddedPostgresError: On Windows.
        """
        if sys.platform == "win32":
            message = "the embedded PostgreSQL needs a POSIX system: name a server in database_url"
            raise EmbeddedPostgresError(message)
        self.data_dir = data_dir
        self._bin_dir = bin_dir
        self._on_progress = on_progress
        self._cluster: Cluster | None = None
        self._clients: FileLock | None = None
        self._pid = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Hold the server, starting it if need be; its roles and database exist afterwards.

        Repeatable. On the way out of an interpreter that forgot to, ``close`` is called.

        Raises:
            PostgresNotInstalled: There are no PostgreSQL programs.
            EmbeddedPostgresError: It can't be started; the message says why and what to do.
        """
        try:
            cluster = self._cluster = find_cluster(
                self.data_dir, bin_dir=self._bin_dir, on_progress=self._on_progress
            )
            with self._turn(cluster):
                self._join(cluster)
                try:
                    silent = f"PostgreSQL does not answer in {cluster.sockets}"
                    self._until(lambda: self._ready(cluster), silent)
                    create_roles_and_database(self.superuser_conninfo(), DATABASE)
                except BaseException:
                    self._leave(cluster)
                    raise
        except (OSError, psycopg.Error) as error:
            message = f"no embedded PostgreSQL in {self.data_dir}: {error}"
            raise EmbeddedPostgresError(message) from error

    def ensure_running(self) -> None:
        """Start the server again if it died; cheap when it answers.

        Raises:
            EmbeddedPostgresError: It can't be started.
        """
        if self._cluster is None or not self._answers():
            self.start()

    def close(self) -> None:
        """Let go of the server, and stop it if nobody else holds it. Repeatable."""
        cluster, clients = self._cluster, self._clients
        if cluster is None or clients is None:
            return
        if self._pid != os.getpid():
            # A forked child: the hold is its parent's.
            self._clients = None
            clients.forget()
            return
        with self._turn(cluster):
            self._leave(cluster)

    def conninfo(self, *, role: Role | str, dbname: str = DATABASE) -> str:
        """Connection parameters for one of the roles, in libpq's form.

        Raises:
            ValueError: There is no such role.
            EmbeddedPostgresError: The server was never started.
        """
        return self._conninfo(Role(role), dbname)

    def superuser_conninfo(self, dbname: str = "postgres") -> str:
        """Connection parameters for the superuser: for this class and for tests alone.

        Raises:
            EmbeddedPostgresError: The server was never started.
        """
        return self._conninfo(SUPERUSER, dbname)

    def folder(self) -> Path:
        """Where the server's files lie.

        Raises:
            EmbeddedPostgresError: The server was never started.
        """
        if self._cluster is None:
            raise EmbeddedPostgresError(_NOT_STARTED)
        return self._cluster.home

    def forget_log(self) -> None:
        """Let go of the log of changes up to now: its segments are removed, not used again.

        Raises:
            psycopg.Error: The server does not answer.
        """
        with psycopg.connect(self.superuser_conninfo(), autocommit=True) as connection:
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")

    def _conninfo(self, user: str, dbname: str) -> str:
        if self._cluster is None:
            raise EmbeddedPostgresError(_NOT_STARTED)
        sockets = str(self._cluster.sockets)
        return make_conninfo(host=sockets, port=PORT, user=user, dbname=dbname)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.superuser_conninfo(), connect_timeout=_CONNECT_SECONDS).close()
        except psycopg.OperationalError:
            return False
        return True

    def _ready(self, cluster: Cluster) -> bool:
        """Whether the server answers, after launching it if not one of its processes is left."""
        if self._answers():
            return True
        with cluster.lock("server") as server:
            if server.try_alone():
                self._launch(cluster, server)
        return self._answers()

    def _launch(self, cluster: Cluster, server: FileLock) -> None:
        prepare_cluster(cluster, self._on_progress)
        # The lock says that no process of this server lives, whoever has the number in these files.
        for claim in (cluster.pgdata / "postmaster.pid", cluster.sockets / f".s.PGSQL.{PORT}.lock"):
            claim.unlink(missing_ok=True)
        self._on_progress(f"starting PostgreSQL {cluster.binaries.version} in {cluster.pgdata}")
        self._pg_ctl(cluster, "start", timeout=START_SECONDS, keep=(server.descriptor,))

    def _stop(self, cluster: Cluster) -> None:
        with cluster.lock("server") as server:
            if server.try_alone():
                return
            try:
                self._pg_ctl(cluster, "stop", "--mode=fast", timeout=STOP_SECONDS)
            except EmbeddedPostgresError as error:
                # There is nobody left who could do more about it; the next start copes with it.
                self._on_progress(str(error))
            else:
                self._until(server.try_alone, "PostgreSQL is stopping")

    def _pg_ctl(
        self, cluster: Cluster, verb: str, *options: str, timeout: int, keep: tuple[int, ...] = ()
    ) -> None:
        # A file, not a pipe: the server would hold the pipe open, or die of it when we are gone.
        with tempfile.TemporaryFile() as output:
            with cluster.account.spawn(
                cluster.binaries.folder / "pg_ctl",
                verb,
                *options,
                "--wait",
                f"--timeout={timeout}",
                output=output,
                # Not --pgdata, which pg_ctl hands to a shell as it is.
                environment={"PGDATA": str(cluster.pgdata)},
                keep=keep,
            ) as process:
                self._until(lambda: process.poll() is not None, f"waiting for pg_ctl {verb}")
            if process.returncode != 0:
                output.seek(0)
                printed = output.read().decode(errors="replace").strip()
                message = f"pg_ctl {verb} failed: {printed}\n{cluster.last_words()}"
                raise EmbeddedPostgresError(message)

    def _join(self, cluster: Cluster) -> None:
        if self._clients is not None and self._pid != os.getpid():
            self._clients.forget()
            self._clients = None
        if self._clients is None:
            self._pid = os.getpid()
            self._clients = cluster.lock("clients")
            self._clients.share()
            atexit.register(self.close)

    def _leave(self, cluster: Cluster) -> None:
        clients, self._clients = self._clients, None
        if clients is None:
            return
        atexit.unregister(self.close)
        try:
            if clients.try_alone():
                self._stop(cluster)
        finally:
            clients.free()

    @contextmanager
    def _turn(self, cluster: Cluster) -> Iterator[None]:
        """Be the only one, of all processes and threads, that starts or stops."""
        lock = cluster.lock("start")
        try:
            self._until(lock.try_alone, "waiting for another process to start or stop PostgreSQL")
            yield
        finally:
            lock.free()

    def _until(self, condition: Callable[[], bool], waiting: str) -> None:
        begin = time.monotonic()
        lines = 0
        while not condition():
            seconds = time.monotonic() - begin
            if seconds > START_SECONDS:
                message = f"{waiting}: given up after {START_SECONDS} s"
                raise EmbeddedPostgresError(message)
            if seconds > (lines + 1) * _PROGRESS_SECONDS:
                lines += 1
                self._on_progress(f"{waiting}: {seconds:.0f} s")
            time.sleep(_POLL_SECONDS)


def create_roles_and_database(superuser_conninfo: str, dbname: str) -> None:
    """Make the roles and the database that are missing, and give the database to its owner.

    Repeatable, and safe when several processes do it at once.

    Args:
        superuser_conninfo: A superuser, or a user with CREATEROLE and CREATEDB, in any database but
            always the same one, since the lock that parts two callers belongs to a database.
        dbname: The database of the store.

    Raises:
        psycopg.Error: Something is not allowed, or a role is too powerful.
    """
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_ADVISORY_KEY,))
        connection.execute((_SQL / "roles.sql").read_bytes())
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", (dbname,))
        if found.rowcount == 0:
            # Under locale C, pg_trgm finds no trigram in Chinese text, without a word.
            create = sql.SQL(
                "CREATE DATABASE {} OWNER threefold_owner TEMPLATE template0"
                " ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'"
            )
            connection.execute(create.format(sql.Identifier(dbname)))
        with psycopg.connect(superuser_conninfo, dbname=dbname) as inside:
            inside.execute((_SQL / "database.sql").read_bytes())
