"""A PostgreSQL server that a test owns, to stop it, kill it and take it back to an older state."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import make_conninfo

from memory_tool.adapters.postgres_migrations import migrate
from memory_tool.adapters.postgres_server import Role, create_roles_and_database
from tests.services.postgres import Database

_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off
full_page_writes = off
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPostgres:
    """The system's server in a folder of its own, reached over a socket there.

    Attributes:
        binaries: Folder of its programs.
        folder: Holds the data, the socket and the log.
        account: Who runs it.
    """

    binaries: Path
    folder: Path
    account: str

    @property
    def database(self) -> Database:
        """The migrated database of the one test."""
        return Database(
            superuser=make_conninfo(host=str(self.folder), user="postgres", dbname="threefold")
        )

    def start(self) -> None:
        """Start it with the data it has; return when it answers."""
        self._run("pg_ctl", "start", f"--log={self.folder / 'log'}", "--wait", "--silent")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` as an operator would, ``immediate`` as a crash."""
        self._run("pg_ctl", "stop", f"--mode={mode}", "--wait", "--silent")

    def save(self) -> None:
        """Keep a copy of the data, as a backup would. It has to stand still."""
        shutil.copytree(self._data, self._backup, copy_function=shutil.copy2)
        _give(self._backup, self.account)

    def go_back(self) -> None:
        """Replace the data by the copy. It has to stand still."""
        shutil.rmtree(self._data)
        shutil.move(self._backup, self._data)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _backup(self) -> Path:
        return self.folder / "backup"

    def make(self) -> None:
        """Make its folder, start it, and set up the database."""
        _give(self.folder, self.account)
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        self._run("initdb", *options, "--no-sync")
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(_SETTINGS.format(folder=self.folder))
        self.start()
        superuser = make_conninfo(host=str(self.folder), user="postgres", dbname="postgres")
        create_roles_and_database(superuser, "threefold")
        migrate(self.database.conninfo(Role.OWNER))

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), f"--pgdata={self._data}", *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", self.account, "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def own_postgres(binaries: Path) -> Iterator[OwnPostgres]:
    """A running server with an empty store, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        server = OwnPostgres(binaries=binaries, folder=Path(folder), account=_account())
        server.make()
        try:
            yield server
        finally:
            if (Path(folder) / "data" / "postmaster.pid").exists():
                server.stop("immediate")


def _give(folder: Path, account: str) -> None:
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, account)


def _account() -> str:
    """Who runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return "postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else "nobody"
