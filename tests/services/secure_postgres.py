"""A PostgreSQL as ``deploy/`` sets it up: TLS, passwords, our configuration and our roles."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

DEPLOY: Final = Path(__file__).parents[2] / "deploy"

PASSWORDS: Final = {
    "threefold_owner": "owner's p@ss/word",
    "threefold_app": 'app "p:ass" word',
    "threefold_worker": "worker\\password",
}
"""With every character that a shell, SQL or a URL could trip over."""

SUPERUSER_PASSWORD: Final = "hush-super"


def system_binaries() -> Path | None:
    """The newest PostgreSQL of the system, if it has one from 15 on."""
    found = [
        (int(path.parent.name), path)
        for path in Path("/usr/lib/postgresql").glob("*/bin")
        if path.parent.name.isdecimal() and (path / "initdb").exists()
    ]
    newest = max(found, default=(0, Path()))
    return newest[1] if newest[0] >= 15 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureServer:
    """A running server that speaks TLS only.

    Attributes:
        port: Where it listens on ``localhost``.
        ca: The authority that signed its certificate, for ``localhost`` and 127.0.0.1.
        stranger: Another authority of the same name.
        log: What the server has to say.
    """

    port: int
    ca: Path
    stranger: Path
    log: Path

    def address(self, role: str, **parameters: str) -> str:
        """Connection parameters of a role, with verify-full and its password."""
        password = {**PASSWORDS, "postgres": SUPERUSER_PASSWORD}[role]
        defaults = {
            "host": "localhost",
            "port": str(self.port),
            "dbname": "threefold",
            "password": password,
            "sslmode": "verify-full",
            "sslrootcert": str(self.ca),
        }
        return make_conninfo(**{"user": role, **defaults, **parameters})

    def init(self, passwords: Mapping[str, str] = PASSWORDS) -> str:
        """Run ``deploy/postgres/init.sh`` as an operator would, and give what it printed."""
        environment = {
            "PATH": os.environ["PATH"],
            "PGHOST": "localhost",
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
            "PGPASSWORD": SUPERUSER_PASSWORD,
            "PGSSLMODE": "verify-full",
            "PGSSLROOTCERT": str(self.ca),
            **{
                f"{role.removeprefix('threefold_').upper()}_PASSWORD": password
                for role, password in passwords.items()
            },
        }
        return subprocess.run(
            [DEPLOY / "postgres" / "init.sh"],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout


@contextmanager
def secure_server(binaries: Path) -> Iterator[SecureServer]:
    """A new server from ``deploy/postgres``, gone afterwards."""
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="threefold-tls-"))
    try:
        folder.chmod(0o755)
        for name in ("tls", "strange"):
            _run(DEPLOY / "tls" / "make_certificates", folder / name, f"localhost:{account}")
        for name in ("postgresql.conf", "pg_hba.conf"):
            shutil.copy(DEPLOY / "postgres" / name, folder)
        secret = folder / "superuser"
        secret.write_text(SUPERUSER_PASSWORD, encoding="utf-8")
        shutil.chown(secret, account)
        secret.chmod(0o600)
        home = folder / "home"
        home.mkdir()
        shutil.chown(home, account)
        with _running(binaries, folder, account=account) as port:
            yield SecureServer(
                port=port,
                ca=folder / "tls" / "ca.crt",
                stranger=folder / "strange" / "ca.crt",
                log=home / "log",
            )
    finally:
        shutil.rmtree(folder)


@contextmanager
def _running(binaries: Path, folder: Path, *, account: str) -> Iterator[int]:
    port, home = _unused_port(), folder / "home"
    data = f"--pgdata={home / 'data'}"
    settings = {
        "config_file": folder / "postgresql.conf",
        "hba_file": folder / "pg_hba.conf",
        "ssl_cert_file": folder / "tls" / "localhost.crt",
        "ssl_key_file": folder / "tls" / "localhost.key",
        "unix_socket_directories": home,
        "port": port,
        # Those of a test: it kills no machine and has little memory.
        "listen_addresses": "localhost",
        "shared_buffers": "32MB",
        "fsync": "off",
        "log_statement": "all",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    initdb: list[str | Path] = [
        binaries / "initdb",
        data,
        "--username=postgres",
        f"--pwfile={folder / 'superuser'}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]
    control = binaries / "pg_ctl"
    _run(*initdb, account=account)
    _run(control, "start", data, f"--log={home / 'log'}", "--wait", "-o", options, account=account)
    try:
        yield port
    finally:
        _run(control, "stop", data, "--mode=fast", "--wait", account=account)


def _account() -> str:
    """Who runs the server: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return "postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else "nobody"


def _run(*command: str | Path, account: str = "") -> None:
    as_account = ["runuser", "-u", account, "--"] if account and os.geteuid() == 0 else []
    subprocess.run([*as_account, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")


def _unused_port() -> int:
    with socket.create_server(("localhost", 0)) as listener:
        return int(listener.getsockname()[1])
