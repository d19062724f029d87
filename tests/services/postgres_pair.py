"""A primary and its standby: two PostgreSQL servers of the system, really replicating."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

from memory_tool.adapters.postgres_migrations import migrate
from memory_tool.adapters.postgres_server import DATABASE, Role, create_roles_and_database

SUPERUSER: Final = "postgres"
_NEEDED: Final = ("initdb", "pg_basebackup", "pg_ctl")
_SETTINGS: Final = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off
full_page_writes = off
"""


def system_binaries() -> Path | None:
    """The folder of the newest PostgreSQL from 15 on that the system has, if any."""
    found = [
        (int(match[1]), folder)
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if (match := re.fullmatch(r"(\d+)", folder.parent.name))
        and all((folder / name).exists() for name in _NEEDED)
    ]
    version, newest = max(found, default=(0, Path()))
    return newest if version >= 15 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresNode:
    """One server; its socket lies in its folder and nobody else may enter."""

    binaries: Path
    folder: Path

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / "data"

    def conninfo(self, *, user: str = SUPERUSER, dbname: str = "postgres") -> str:
        """How a user reaches it."""
        return make_conninfo(host=str(self.folder), user=user, dbname=dbname)

    def run(self, command: str, *arguments: str) -> None:
        """Run one of PostgreSQL's commands as the owner of the servers, who isn't root."""
        account = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            account = "postgres" if "postgres" in names else "nobody"
            entry = pwd.getpwnam(account)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        subprocess.run(
            [str(self.binaries / command), *arguments],
            check=True,
            user=account,
            extra_groups=None if account is None else [],
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )

    def initialise(self) -> None:
        """Make an empty cluster."""
        self.run(
            *("initdb", f"--pgdata={self.data}", f"--username={SUPERUSER}", "--auth=trust"),
            *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
        )

    def copy(self, primary: "PostgresNode") -> None:
        """Become a standby of ``primary``."""
        self.run(
            *("pg_basebackup", f"--pgdata={self.data}", f"--dbname={primary.conninfo()}"),
            *("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
        )

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        settings = self.data / "threefold.conf"
        settings.write_text(_SETTINGS.format(folder=self.folder))
        included = "include = 'threefold.conf'\n"
        if included not in (self.data / "postgresql.conf").read_text():
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(included)
        settings.chmod(0o644)
        log = f"--log={self.folder / 'log'}"
        self.run("pg_ctl", "start", f"--pgdata={self.data}", log, "--wait", "--silent")

    def stop(self) -> None:
        """Stop it cleanly, as for maintenance."""
        self.run("pg_ctl", "stop", f"--pgdata={self.data}", "--mode=fast", "--wait", "--silent")

    def promote(self) -> None:
        """Make the standby a primary."""
        self.run("pg_ctl", "promote", f"--pgdata={self.data}", "--wait", "--silent")

    def follow(self, primary: "PostgresNode") -> None:
        """Start again as a standby of ``primary``, after a clean stop."""
        (self.data / "standby.signal").touch()
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{primary.conninfo()}'\n")
            file.write("synchronous_standby_names = ''\n")
        self.start()

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut does."""
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            os.kill(pid, signal.SIGKILL)

    def is_running(self) -> bool:
        """Whether it takes connections."""
        try:
            psycopg.connect(self.conninfo()).close()
        except psycopg.OperationalError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPair:
    """A primary that acknowledges nothing that its standby has not written down."""

    primary: PostgresNode
    standby: PostgresNode

    def address(self) -> str:
        """How the app reaches the pair: both hosts, the old primary first."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return make_conninfo(host=hosts, user=Role.APP, dbname=DATABASE)


@contextmanager
def postgres_pair(binaries: Path) -> Iterator[PostgresPair]:
    """A migrated database on a primary with a synchronous standby."""
    # Short: the name of a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="threefold-") as name:
        Path(name).chmod(0o755)
        folders = [Path(name) / letter for letter in ("a", "b")]
        for folder in folders:
            folder.mkdir(mode=0o700)
        primary, standby = (PostgresNode(binaries=binaries, folder=one) for one in folders)
        try:
            primary.initialise()
            primary.start()
            create_roles_and_database(primary.conninfo(), DATABASE)
            migrate(primary.conninfo(user=Role.OWNER, dbname=DATABASE))
            standby.copy(primary)
            standby.start()
            with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
                wait_until(lambda: _is_synchronous(connection))
            yield PostgresPair(primary=primary, standby=standby)
        finally:
            for node in (primary, standby):
                if node.is_running():
                    node.stop()
            shutil.rmtree(name, ignore_errors=True)


def wait_until(happened: Callable[[], bool], *, seconds: float = 60) -> None:
    """Look now and then whether something has happened.

    Raises:
        TimeoutError: It has not.
    """
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            message = f"it did not happen within {seconds} s"
            raise TimeoutError(message)
        time.sleep(0.05)


def _is_synchronous(connection: psycopg.Connection) -> bool:
    rows = connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall()
    return rows == [("sync",)]
