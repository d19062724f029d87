"""A PostgreSQL that speaks TLS only, set up by what ``deploy/`` holds."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory_manage import MemoryManage
from memory_tool.adapters.postgres_server import create_roles_and_database
from memory_tool.errors import Unavailable
from tests.services.secure_postgres import (
    PASSWORDS,
    SUPERUSER_PASSWORD,
    SecureServer,
    secure_server,
    system_binaries,
)

BINARIES = system_binaries()

pytestmark = pytest.mark.skipif(BINARIES is None, reason="no PostgreSQL of the system's own here")


@pytest.fixture(scope="module")
def server() -> Iterator[SecureServer]:
    """The server, with its roles; each test leaves the passwords as they were."""
    assert BINARIES is not None
    with secure_server(BINARIES) as one:
        one.init()
        yield one


def opened(server: SecureServer, data_dir: Path, **parameters: str) -> MemoryManage:
    """The memory on that server, each role with its own password."""
    return MemoryManage.open(
        data_dir=data_dir,
        database_url=server.address("threefold_app", **parameters),
        worker_database_url=server.address("threefold_worker", **parameters),
        owner_database_url=server.address("threefold_owner", **parameters),
        embedder="hashing",
    )


def test_three_roles_with_passwords_over_verified_tls(server: SecureServer, tmp_path: Path) -> None:
    """The way that production connects, down to the password with every awkward character."""
    with opened(server, tmp_path) as memory:
        mine = memory.scoped(user_id="u1")
        mine.add("客户张先生偏好蓝色系产品")
        found = mine.search("蓝色")
        with psycopg.connect(server.address("postgres")) as connection:
            rows = connection.execute(
                "SELECT usename, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE usename LIKE 'threefold%'"
            ).fetchall()

    assert found["results"][0]["memory"] == "客户张先生偏好蓝色系产品"
    assert set(rows) == {("threefold_app", True), ("threefold_worker", True)}


def test_one_address_and_a_password_file(server: SecureServer, tmp_path: Path) -> None:
    """The settings file of the systemd units: the address is said once and holds no password."""
    lines = (
        f"localhost:{server.port}:threefold:{role}:{_escaped(password)}\n"
        for role, password in PASSWORDS.items()
    )
    passwords = tmp_path / "pgpass"
    passwords.write_text("".join(lines), encoding="utf-8")
    passwords.chmod(0o600)
    url = (
        f"postgresql://threefold_app@localhost:{server.port}/threefold"
        f"?sslmode=verify-full&sslrootcert={server.ca}&passfile={passwords}"
    )

    with MemoryManage.open(data_dir=tmp_path / "d", database_url=url, embedder="hashing") as memory:
        assert memory.health().stores["records"] == "ok"


def _escaped(password: str) -> str:
    return password.replace("\\", "\\\\").replace(":", "\\:")


def test_the_next_host_is_asked_when_the_first_is_gone(
    server: SecureServer, tmp_path: Path
) -> None:
    """After a failover the address stays as it is: it names every host and asks for the primary."""
    hosts = {"host": "localhost,localhost", "port": f"1,{server.port}"}

    with opened(server, tmp_path, **hosts, target_session_attrs="read-write") as memory:
        assert memory.health().stores["records"] == "ok"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"sslrootcert": "stranger"}, "certificate verify failed", id="another CA"),
        pytest.param({"sslrootcert": "/nowhere/ca.crt"}, "does not exist", id="no CA"),
        pytest.param(
            {"host": "elsewhere", "hostaddr": "127.0.0.1"}, "does not match", id="another host"
        ),
        pytest.param({"sslmode": "disable"}, "no encryption", id="no TLS"),
        pytest.param({"password": "hush-wrong"}, "password authentication", id="wrong password"),
    ],
)
def test_a_server_that_can_not_be_trusted_gets_no_memory(
    server: SecureServer, tmp_path: Path, change: dict[str, str], said: str
) -> None:
    """Somebody between would read every memory; and the error goes to logs, where no secret may."""
    if change.get("sslrootcert") == "stranger":
        change = {"sslrootcert": str(server.stranger)}

    with pytest.raises(Unavailable, match=said) as caught:
        opened(server, tmp_path, **change)

    for secret in (*PASSWORDS.values(), "hush"):
        assert secret not in str(caught.value)


def test_passwords_are_changed_by_the_same_script(server: SecureServer, tmp_path: Path) -> None:
    """A rotation must lock out who has the old password, and be repeatable."""
    server.init({**PASSWORDS, "threefold_app": "hush-new"})
    try:
        with pytest.raises(Unavailable, match="password authentication"):
            opened(server, tmp_path)
        with psycopg.connect(server.address("threefold_app", password="hush-new")):
            pass
    finally:
        server.init()
    with opened(server, tmp_path):
        pass


@pytest.mark.usefixtures("server")
def test_the_server_logs_no_password(server: SecureServer) -> None:
    """Many servers log statements, and here all of them are."""
    written = server.log.read_text(encoding="utf-8", errors="replace")

    assert "CREATE DATABASE" in written
    assert [
        secret for secret in (*PASSWORDS.values(), SUPERUSER_PASSWORD) if secret in written
    ] == []


def test_the_script_makes_what_the_library_makes(server: SecureServer) -> None:
    """Two ways to make a database must not drift apart."""
    create_roles_and_database(server.address("postgres", dbname="postgres"), "by_library")
    query = (
        "SELECT datname, datdba::regrole::text, pg_encoding_to_char(encoding), datcollate,"
        " datctype, datlocprovider, datacl FROM pg_database"
        " WHERE datname IN ('threefold', 'by_library')"
    )

    with psycopg.connect(server.address("postgres")) as connection:
        by_name = {str(row[0]): row[1:] for row in connection.execute(query).fetchall()}

    assert by_name["threefold"] == by_name["by_library"]


def test_the_configuration_is_read(server: SecureServer) -> None:
    """With a line that it doesn't know the server wouldn't have started."""
    with psycopg.connect(server.address("postgres")) as connection:
        assert connection.execute("SHOW log_parameter_max_length").fetchone() == ("0",)
