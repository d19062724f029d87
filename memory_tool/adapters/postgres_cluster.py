"""The embedded server's files: where they lie, who owns them, how they begin, and their locks."""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from memory_tool.adapters.postgres_binaries import (
    Account,
    Binaries,
    EmbeddedPostgresError,
    find_binaries,
    server_account,
    shared_base,
)

if sys.platform != "win32":
    import fcntl

SUPERUSER: Final = "threefold_superuser"
PORT: Final = 5432
"""Only a part of the socket's name: the server never listens on TCP."""

_SOCKET_PATH_BYTES: Final = 103
"""Longest path of a Unix socket on macOS; Linux allows 107."""

_SOCKET_FALLBACK: Final = Path("/tmp")  # noqa: S108 - its folders are checked by private_folder
"""Not tempfile.gettempdir(): every client has to find the same place, whatever its TMPDIR says."""

_SYNC_METHOD_SINCE: Final = 17
"""First PostgreSQL whose initdb can sync a whole file system."""

_LAST_LINES: Final = 5

_LOCATION: Final = "postgres.location"

_INCLUDE: Final = "include '../threefold.conf'"

_SETTINGS: Final = """\
# Rewritten at each start of the embedded server; your own settings belong in postgresql.conf.

# Nobody but the owner of the folder: no TCP, and a socket that only the owner may open.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
cluster_name = 'threefold'

max_connections = 100
shared_buffers = 128MB
max_wal_size = 1GB
# What was erased must not live on in a segment of the log that waits to be used again.
wal_recycle = off
jit = off

# An acknowledged write is durable.
fsync = on
full_page_writes = on
synchronous_commit = on

# One file for each hour of the day, begun anew a day later. Neither parameters nor rows are logged.
logging_collector = on
log_directory = 'log'
log_filename = 'server-%H.log'
log_rotation_age = 60
log_rotation_size = 0
log_truncate_on_rotation = on
log_min_messages = warning
log_error_verbosity = terse
log_parameter_max_length_on_error = 0
"""


class FileLock:
    """One flock on one file; the kernel frees it when the last process that holds it is gone."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def share(self) -> None:
        """Hold it together with others; waits while somebody holds it alone."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def try_alone(self) -> bool:
        """Hold it alone, if nobody else holds it; a shared hold may be lost in trying."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def free(self) -> None:
        """Give it up, for this process and for those that inherited it by a fork."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close the file; processes that inherited the lock keep it."""
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One PostgreSQL data folder with what belongs to it.

    Attributes:
        home: The folder that holds all of it. It belongs to this process's user, not to the
            server's, so that a server taken over can't lead root astray.
        account: The user of the server's processes.
        binaries: The programs that run it.
        record: The file that has to name ``home``, when ``home`` lies outside of the data folder.
    """

    home: Path
    account: Account
    binaries: Binaries
    record: Path | None

    @property
    def pgdata(self) -> Path:
        """What PostgreSQL calls the data directory."""
        return self.home / "data"

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket."""
        return socket_folder(self.home)

    def lock(self, name: str) -> FileLock:
        """The lock ``start``, ``clients`` or ``server`` of this cluster."""
        return FileLock(self.home / f"{name}.lock")

    def last_words(self) -> str:
        """The end of the server's newest log, or nothing if it never wrote one."""
        logs = sorted(self.pgdata.glob("log/*.log"), key=lambda log: log.stat().st_mtime)
        if not logs:
            return ""
        lines = logs[-1].read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join((f"{logs[-1]}:", *lines[-_LAST_LINES:]))


def find_cluster(
    data_dir: Path, *, bin_dir: Path | None, on_progress: Callable[[str], None]
) -> Cluster:
    """The cluster that belongs to ``data_dir``, and its home made; nothing else is changed.

    Args:
        data_dir: The store's folder, made if missing.
        bin_dir: Where the PostgreSQL programs are, or None to look for them.
        on_progress: Told when the cluster has to lie elsewhere.

    Raises:
        EmbeddedPostgresError: The folder is another user's, or its cluster is gone or out of reach,
            or no programs were found.
    """
    data_dir = data_dir.expanduser().resolve()
    if not data_dir.exists():
        _make_store_folder(data_dir)
    home = _recorded_home(data_dir) or data_dir / "postgres"
    account = server_account(home / "data")
    record = None
    if account.switched and home.parent == data_dir and not account.can_enter(data_dir):
        home = _home_elsewhere(data_dir, account, on_progress=on_progress)
        account = server_account(home / "data")
        record = data_dir / _LOCATION
    home.mkdir(exist_ok=True)
    _require_own(home)
    _let_pass(home, account)
    binaries = find_binaries(bin_dir, account=account, on_progress=on_progress)
    return Cluster(home=home, account=account, binaries=binaries, record=record)


def prepare_cluster(cluster: Cluster, on_progress: Callable[[str], None]) -> None:
    """Make the data folder if there is none, and everything that the server reads at its start.

    Only for the holder of the ``start`` lock, while no server runs.

    Raises:
        EmbeddedPostgresError: initdb failed, the data folder belongs to another major version, or
            the socket's folder is not ours alone.
    """
    private_folder(cluster.sockets, cluster.account)
    if not cluster.pgdata.exists():
        on_progress(f"creating a PostgreSQL {cluster.binaries.version} cluster in {cluster.pgdata}")
        _create_pgdata(cluster)
    if cluster.record is not None:
        _write(cluster.record, f"{cluster.home}\n")
    made_by = (cluster.pgdata / "PG_VERSION").read_text(encoding="utf-8").strip()
    if made_by != str(cluster.binaries.major):
        message = (
            f"{cluster.pgdata} was made by PostgreSQL {made_by}, but {cluster.binaries.folder} has "
            f"PostgreSQL {cluster.binaries.version}: use programs of version {made_by}"
        )
        raise EmbeddedPostgresError(message)
    settings = _SETTINGS.format(port=PORT, sockets=cluster.sockets)
    _write(cluster.home / "threefold.conf", settings)


def socket_folder(home: Path) -> Path:
    """``run`` in the home, or a short name of the same meaning when a socket can't have that path.

    A socket's path is limited in length, and neither libpq nor PostgreSQL takes a comma in it;
    quotes and the like would have to be escaped in the settings.
    """
    folder = home / "run"
    length = len(os.fsencode(folder / f".s.PGSQL.{PORT}"))
    if length <= _SOCKET_PATH_BYTES and not re.search(r"[,'\"\\\n]", str(folder)):
        return folder
    return _SOCKET_FALLBACK / f"threefold-{_digest(home)}"


def private_folder(path: Path, account: Account) -> None:
    """Make ``path`` a folder that ``account`` alone may use, or make sure that it is one.

    Raises:
        EmbeddedPostgresError: It is a link, another user's, or open to others.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    ours = status.st_uid in {account.uid, os.geteuid()}
    if not stat.S_ISDIR(status.st_mode) or not ours or stat.S_IMODE(status.st_mode) & 0o077:
        message = f"{path} must be a folder of user {account.uid} with mode 0700"
        raise EmbeddedPostgresError(message)
    if status.st_uid != account.uid:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _make_store_folder(data_dir: Path) -> None:
    """Make it in one step, so that nobody meets it before the server's user may pass through."""
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{data_dir.name}-", dir=data_dir.parent))
    _let_pass(fresh, server_account(data_dir))
    try:
        fresh.rename(data_dir)
    except OSError:
        # Another process was faster, and has already put something into it.
        fresh.rmdir()
        if not data_dir.is_dir():
            raise


def _let_pass(folder: Path, account: Account) -> None:
    """Keep a folder to ourselves; under root the server's group may pass through, no more."""
    if account.switched:
        os.chown(folder, -1, account.gid)
    folder.chmod(0o710 if account.switched else 0o700)


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _require_own(home: Path) -> None:
    status = home.lstat()
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        message = f"{home} belongs to another user: run as user {status.st_uid}"
        raise EmbeddedPostgresError(message)


def _recorded_home(data_dir: Path) -> Path | None:
    record = data_dir / _LOCATION
    if not record.exists():
        return None
    home = Path(record.read_text(encoding="utf-8").strip())
    if home.is_dir():
        _require_own(home)
    # An empty cluster in place of the lost one would look like a store that forgot everything.
    if not (home / "data" / "PG_VERSION").exists() or home.parent != shared_base():
        message = f"{record} names {home}, but there is no cluster: restore it, or remove {record}"
        raise EmbeddedPostgresError(message)
    return home


def _home_elsewhere(
    data_dir: Path, account: Account, *, on_progress: Callable[[str], None]
) -> Path:
    if (data_dir / "postgres" / "data").exists():
        message = f"user {account.uid}, who runs PostgreSQL, can't enter {data_dir} any more"
        raise EmbeddedPostgresError(message)
    home = shared_base() / _digest(data_dir)
    on_progress(
        f"user {account.uid}, who runs PostgreSQL, can't enter {data_dir}: "
        f"the database lies in {home}"
    )
    return home


def _create_pgdata(cluster: Cluster) -> None:
    """Run initdb in a folder of its own that becomes ``data`` in one step when it is complete."""
    account, home = cluster.account, cluster.home
    for leftover in home.glob("initdb-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix="initdb-", dir=home))
    private_folder(fresh, account)
    initdb = cluster.binaries.folder / "initdb"
    steps: tuple[tuple[str | Path, ...], ...] = (
        (
            *(initdb, f"--pgdata={fresh}", f"--username={SUPERUSER}", "--auth=trust"),
            # Under locale C, pg_trgm finds no trigram in Chinese text, without a word.
            *("--encoding=UTF8", "--locale-provider=libc", "--locale=C.UTF-8"),
            *("--data-checksums", "--no-instructions", "--no-sync"),
        ),
        # By the server's user, as all that happens inside of a folder of that user.
        ("/bin/sh", "-c", 'echo "$1" >>"$2"', "sh", _INCLUDE, fresh / "postgresql.conf"),
        (initdb, f"--pgdata={fresh}", "--sync-only", *_sync_method(cluster.binaries)),
    )
    for step in steps:
        status, printed = account.run(*step)
        if status != 0:
            message = f"no PostgreSQL cluster could be made in {home}: {printed}"
            raise EmbeddedPostgresError(message)
    fresh.rename(cluster.pgdata)
    _sync_folder(home)


def _sync_method(binaries: Binaries) -> tuple[str, ...]:
    # File by file, a thousand of them, takes 3 s on a disk where syncing all at once takes 0.1 s.
    at_once = sys.platform == "linux" and binaries.major >= _SYNC_METHOD_SINCE
    return ("--sync-method=syncfs",) if at_once else ()


def _write(path: Path, text: str) -> None:
    """Replace a small file in one step that survives a crash."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(0o644)
    fresh.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
