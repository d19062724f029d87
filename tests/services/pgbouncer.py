"""A real PgBouncer before a PostgreSQL of the tests, with few connections that clients share."""

import os
import pwd
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memory_tool.adapters.postgres_server import Role
from tests.services.postgres import Database
from tests.services.required import pgbouncer as installed

PGBOUNCER: Final = installed(os.environ)
"""The command, wherever Debian or a user's path has it."""

POOL: Final = 3
"""Most connections to the server for each role and database."""

_PORT: Final = 17120
"""Only a part of the socket's name: nothing listens on TCP."""

_SETTINGS: Final = """
[databases]
* = host={host} port={port}

[pgbouncer]
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 300
query_wait_timeout = 30
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
admin_users = boss
logfile = {folder}/log
pidfile =
{user}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PgBouncer:
    """A running PgBouncer."""

    folder: Path

    def before(self, database: Database) -> Database:
        """The same database as clients reach it through the pooler."""
        return Database(
            superuser=make_conninfo(database.superuser, host=str(self.folder), port=_PORT)
        )

    def pools(self) -> list[Mapping[str, object]]:
        """What it says of its pools: clients and servers of each user and database."""
        console = make_conninfo(host=str(self.folder), port=_PORT, user="boss", dbname="pgbouncer")
        with psycopg.connect(console, autocommit=True) as connection:
            cursor = connection.execute("SHOW POOLS")
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@contextmanager
def pgbouncer(superuser: str) -> Iterator[PgBouncer]:
    """Start one before the server that these parameters of its superuser name."""
    server = conninfo_to_dict(superuser)
    host, port = str(server["host"]), str(server.get("port", 5432))
    with tempfile.TemporaryDirectory(prefix="threefold-pgbouncer-") as name:
        folder = Path(name)
        settings = _SETTINGS.format(
            host=host,
            port=port,
            pool=POOL,
            own_port=_PORT,
            folder=folder,
            user=_as_owner_of(Path(host), folder),
        )
        (folder / "pgbouncer.ini").write_text(settings)
        users = (*Role, str(server["user"]), "boss")
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users))
        with subprocess.Popen(
            [str(PGBOUNCER), "--quiet", str(folder / "pgbouncer.ini")], stderr=subprocess.DEVNULL
        ) as process:
            try:
                _wait_for(folder, process)
                yield PgBouncer(folder=folder)
            finally:
                process.terminate()


def _as_owner_of(host: Path, folder: Path) -> str:
    """PgBouncer refuses root, and only its owner may pass through the server's folder."""
    if os.geteuid() != 0:
        return ""
    owner = host.stat().st_uid
    os.chown(folder, owner, -1)
    return f"user = {pwd.getpwuid(owner).pw_name}"


def _wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    place = str(folder / f".s.PGSQL.{_PORT}")
    for _ in range(200):
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(place) == 0:
                return
        assert process.poll() is None, (folder / "log").read_text()
        time.sleep(0.05)
    message = "PgBouncer did not start"
    raise TimeoutError(message)
