"""Clients of the embedded server in processes of their own, which a test may kill."""

import contextlib
import ctypes
import multiprocessing
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import psycopg

from memory_tool.adapters.postgres_cluster import FileLock
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role

PR_SET_CHILD_SUBREAPER = 36

ACCOUNTS = ("root", "nobody") if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name,)
"""Every user that a test can be: root can also be somebody else, others are only themselves."""


@contextlib.contextmanager
def world_folder() -> Iterator[Path]:
    """A folder that every user can pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="threefold-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def own_folder(parent: Path, name: str, *, account: str) -> Path:
    """A new folder of ``account``, which others may pass through."""
    folder = parent / name
    folder.mkdir(mode=0o711)
    entry = pwd.getpwnam(account)
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


def postmaster(data_dir: Path) -> int:
    """The process number of the server."""
    lines = (data_dir / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    return int(lines[0])


def is_running(data_dir: Path) -> bool:
    """Whether any process of the server lives."""
    with FileLock(data_dir / "postgres" / "server.lock") as server:
        return not server.try_alone()


def state_of(pid: int) -> str:
    """The letter that Linux has for a process's state: Z is a zombie."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Client:
    """One EmbeddedPostgres in a forked process, which does what it is told through a pipe."""

    def __init__(self, data_dir: Path, account: str, *, bin_dir: Path | None = None) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_obey,
            args=(theirs, EmbeddedPostgres(data_dir, bin_dir=bin_dir)),
            kwargs={"account": account},
            daemon=True,
        )
        self._process.start()
        theirs.close()

    def send(self, verb: str, text: str = "") -> None:
        """Tell it something without waiting."""
        self._pipe.send((verb, text))

    def receive(self) -> str:
        """Wait for its answer, and raise here what went wrong there."""
        went_well, answer = self._pipe.recv()
        assert went_well, answer
        return str(answer)

    def ask(self, verb: str, text: str = "") -> str:
        """Tell it something and wait for the answer."""
        self.send(verb, text)
        return self.receive()

    def kill(self) -> None:
        """End it without giving it a chance to clean up."""
        self._process.kill()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self.ask("close")
            self.kill()


def _obey(pipe: Connection, server: EmbeddedPostgres, *, account: str) -> None:
    if os.geteuid() == 0 and account != "root":
        entry = pwd.getpwnam(account)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    with contextlib.suppress(EOFError):
        while True:
            verb, text = pipe.recv()
            try:
                pipe.send((True, _do(server, verb, text=text)))
            except Exception as error:  # noqa: BLE001 - the test process decides what it means
                pipe.send((False, repr(error)))


def _do(server: EmbeddedPostgres, verb: str, *, text: str) -> str:
    match verb:
        case "start":
            server.start()
        case "close":
            server.close()
        case "ensure_running":
            server.ensure_running()
        case "conninfo":
            return server.conninfo(role=text)
        case "sql":
            with psycopg.connect(server.conninfo(role=Role.OWNER)) as connection:
                cursor = connection.execute(text.encode())
                return str(cursor.fetchall()[0][0]) if cursor.description else ""
        case "fork_and_close":
            child = os.fork()
            if child == 0:
                server.close()
                os._exit(0)
            os.waitpid(child, 0)
        case "adopt_orphans":
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        case _:
            raise ValueError(verb)
    return ""
