"""A real embedded server: who starts it, who stops it, and what survives a crash."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory_tool.adapters import postgres_binaries, postgres_server
from memory_tool.adapters.postgres_binaries import (
    EmbeddedPostgresError,
    PostgresNotInstalled,
    find_binaries,
    server_account,
)
from memory_tool.adapters.postgres_cluster import FileLock, socket_folder
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from tests.integration.postgres_clients import (
    ACCOUNTS,
    Client,
    is_running,
    own_folder,
    postmaster,
    state_of,
    world_folder,
)

SYSTEM_15 = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder for all stores, since a new cluster takes a second."""
    with world_folder() as folder:
        yield folder


@pytest.fixture(scope="module", params=ACCOUNTS)
def account(request: pytest.FixtureRequest) -> str:
    """Who runs the clients."""
    return str(request.param)


@pytest.fixture(scope="module")
def store(base: Path, account: str) -> Path:
    """A data folder whose server is started and stopped by each test anew."""
    return own_folder(base, account, account=account) / "store"


@pytest.fixture
def client(store: Path, account: str) -> Iterator[Client]:
    """A client that has started the server."""
    with Client(store, account) as one:
        one.ask("start")
        yield one
    assert not is_running(store)


@pytest.fixture
def mine(base: Path) -> Path:
    """The data folder of tests inside this process; all of them use the same."""
    return base / "mine"


def test_eight_starters_share_one_server(store: Path, account: str) -> None:
    """Workers of one machine start together, here on a folder that nobody has used before."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(store, account)) for _ in range(8)]
        for one in clients:
            one.send("start")
        for one in clients:
            one.receive()
        started = {one.ask("sql", "SELECT pg_postmaster_start_time()") for one in clients}
    assert len(started) == 1
    assert not is_running(store)


def test_restart_keeps_rows(client: Client) -> None:
    """What was acknowledged is there after the server was stopped."""
    client.ask("sql", "CREATE TABLE kept (text text)")
    client.ask("sql", "INSERT INTO kept VALUES ('蓝色')")
    client.ask("close")
    client.ask("start")
    assert client.ask("sql", "SELECT text FROM kept") == "蓝色"


def test_close_and_start_are_repeatable(client: Client, store: Path) -> None:
    """Callers need not remember whether they were here before."""
    client.ask("start")
    client.ask("close")
    assert not is_running(store)
    client.ask("close")


def test_last_one_out_stops_the_server(client: Client, store: Path, account: str) -> None:
    """Nobody loses the server while using it, even when another client was killed."""
    with Client(store, account) as closing, Client(store, account) as killed:
        closing.ask("start")
        killed.ask("start")
        closing.ask("close")
        killed.kill()
        assert client.ask("sql", "SELECT 1") == "1"
    client.ask("close")
    assert not is_running(store)


def test_killed_client_leaves_a_server_for_the_next(store: Path, account: str) -> None:
    """A crash of the only client neither blocks the next one nor leaves the server for ever."""
    with Client(store, account) as first:
        first.ask("start")
        first.kill()
    before = postmaster(store)
    with Client(store, account) as second:
        second.ask("start")
        assert postmaster(store) == before
    assert not is_running(store)


def test_rows_survive_the_death_of_the_server(client: Client, store: Path) -> None:
    """A committed row is durable, and clients get their server back."""
    client.ask("sql", "CREATE TABLE durable AS SELECT generate_series(1, 1000) AS n")
    os.kill(postmaster(store), signal.SIGKILL)
    client.ask("ensure_running")
    assert client.ask("sql", "SELECT count(*) FROM durable") == "1000"


def test_rows_survive_the_death_of_server_and_client(store: Path, account: str) -> None:
    """The same for whoever opens the folder after everything was killed."""
    with Client(store, account) as first:
        first.ask("start")
        first.ask("sql", "CREATE TABLE orphaned AS SELECT generate_series(1, 1000) AS n")
        os.kill(postmaster(store), signal.SIGKILL)
        first.kill()
    with Client(store, account) as second:
        second.ask("start")
        assert second.ask("sql", "SELECT count(*) FROM orphaned") == "1000"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_zombie_of_the_server_blocks_nobody(client: Client, store: Path) -> None:
    """Containers without an init never bury the server, and PostgreSQL takes a zombie for alive."""
    client.ask("close")
    client.ask("adopt_orphans")
    client.ask("start")
    dead = postmaster(store)
    os.kill(dead, signal.SIGKILL)
    client.ask("ensure_running")
    assert state_of(dead) == "Z"
    assert postmaster(store) != dead


def test_forked_child_leaves_its_parents_server_alone(client: Client) -> None:
    """A web server forks workers; the end of one of them is not the end of the store."""
    client.ask("fork_and_close")
    assert client.ask("sql", "SELECT 1") == "1"


def test_only_the_socket_and_only_for_the_owner(client: Client, store: Path) -> None:
    """File permissions are the only authentication, so there is no other way in."""
    home = store / "postgres"
    conninfo = psycopg.conninfo.conninfo_to_dict(client.ask("conninfo", Role.APP))
    assert conninfo["host"] == str(home / "run")
    assert client.ask("sql", "SHOW listen_addresses") == ""
    modes = [folder.stat().st_mode & 0o777 for folder in (home / "run", home / "data")]
    assert modes == [0o700, 0o700]
    assert home.stat().st_mode & 0o067 == 0
    assert store.stat().st_mode & 0o067 == 0


def test_rows_are_durable_and_never_logged(client: Client) -> None:
    """A file of settings that is not included would go unnoticed."""
    names = ("fsync", "full_page_writes", "synchronous_commit", "jit", "log_error_verbosity")
    settings = [client.ask("sql", f"SHOW {name}") for name in names]
    assert settings == ["on", "on", "on", "off", "terse"]


def test_chinese_text_has_trigrams(client: Client) -> None:
    """Under locale C, pg_trgm finds none, and a search that depends on them finds nothing."""
    client.ask("sql", "CREATE EXTENSION IF NOT EXISTS pg_trgm")
    assert client.ask("sql", "SELECT cardinality(show_trgm('张先生喜欢蓝色')) > 5") == "True"


def test_unclosed_server_ends_with_its_interpreter(mine: Path) -> None:
    """Scripts forget to close, and a server must not outlive them."""
    code = (
        "import sys; from pathlib import Path;"
        "from memory_tool.adapters.postgres_server import EmbeddedPostgres;"
        "server = EmbeddedPostgres(Path(sys.argv[1]), on_progress=print); server.start()"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, str(mine)]
    printed = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE).stdout
    assert b"starting PostgreSQL" in printed
    assert not is_running(mine)


def test_folders_above_keep_their_modes(mine: Path) -> None:
    """A library that opens a private folder to everybody is a security hole."""
    before = [folder.stat().st_mode for folder in mine.parents]
    with EmbeddedPostgres(mine):
        pass
    assert [folder.stat().st_mode for folder in mine.parents] == before


def test_socket_of_a_deep_folder_lies_in_a_private_short_one(base: Path) -> None:
    """The path of a socket has about a hundred bytes, that of a home folder may have more."""
    deep = base / ("深" * 40) / "store"
    deep.parent.mkdir(mode=0o755)
    with EmbeddedPostgres(deep) as server, psycopg.connect(server.conninfo(role=Role.APP)) as used:
        short = Path(used.info.host)
    assert len(os.fsencode(short)) < 60
    assert short.stat().st_mode & 0o777 == 0o700
    short.rmdir()


def test_planted_socket_folder_is_refused(base: Path) -> None:
    """Everybody may write to the temporary folder, and could offer a server of their own there."""
    store = base / "a, b"
    short = socket_folder(store / "postgres")
    short.symlink_to(base)
    try:
        with pytest.raises(EmbeddedPostgresError, match="mode 0700"):
            EmbeddedPostgres(store).start()
        short.unlink()
        short.mkdir(mode=0o755)
        with pytest.raises(EmbeddedPostgresError, match="mode 0700"):
            EmbeddedPostgres(store).start()
    finally:
        short.rmdir()
    assert not is_running(store)


def test_other_major_version_is_refused(base: Path) -> None:
    """PostgreSQL reads no files of another major version; the message has to name both."""
    store = base / "old"
    own_folder(base, "old", account=ACCOUNTS[0])
    home = own_folder(store, "postgres", account=ACCOUNTS[0])
    data = own_folder(home, "data", account=ACCOUNTS[-1])
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 9, but .* PostgreSQL 1\d"):
        EmbeddedPostgres(store).start()


def test_failed_start_says_why_and_blocks_nobody(mine: Path) -> None:
    """An operator has to see PostgreSQL's own words, and the next try must be a real one."""
    with EmbeddedPostgres(mine):
        pass
    settings = mine / "postgres" / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(f"{good}no_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        EmbeddedPostgres(mine).start()
    settings.write_text(good)
    with EmbeddedPostgres(mine):
        assert is_running(mine)
    assert not is_running(mine)


@pytest.mark.parametrize(
    ("lock", "words"), [("start", "another process"), ("server", "does not answer")]
)
def test_waiting_is_reported_and_ends(
    mine: Path, monkeypatch: pytest.MonkeyPatch, lock: str, words: str
) -> None:
    """A start that hangs in silence looks broken; one that doesn't wait makes a second server."""
    with EmbeddedPostgres(mine):
        pass
    monkeypatch.setattr(postgres_server, "START_SECONDS", 0.2)
    monkeypatch.setattr(postgres_server, "_PROGRESS_SECONDS", 0)
    lines: list[str] = []
    with FileLock(mine / "postgres" / f"{lock}.lock") as held:
        assert held.try_alone()
        with pytest.raises(EmbeddedPostgresError, match="given up"):
            EmbeddedPostgres(mine, on_progress=lines.append).start()
    assert any(words in line for line in lines)
    assert not any(line.startswith("starting") for line in lines)


def test_connection_parameters_need_a_start_and_a_known_role(mine: Path) -> None:
    """A typo in a role must not reach the server as a login."""
    server = EmbeddedPostgres(mine)
    with pytest.raises(EmbeddedPostgresError, match="not started"):
        server.conninfo(role=Role.APP)
    with server, pytest.raises(ValueError, match="not a valid Role"):
        server.conninfo(role="threefold_superuser")


def test_folder_without_programs_is_refused(mine: Path) -> None:
    """A folder that was asked for by name is never replaced by another one in silence."""
    with pytest.raises(EmbeddedPostgresError, match="does not hold"):
        EmbeddedPostgres(mine, bin_dir=mine).start()


def test_missing_programs_name_the_extra(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who installed without the extra has to learn its name."""
    monkeypatch.setattr(postgres_binaries, "_system_folders", lambda: iter(()))
    with pytest.raises(PostgresNotInstalled, match=r"threefold\[local\]"):
        EmbeddedPostgres(mine).start()


def test_windows_is_told_to_use_a_server(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are neither flocks nor private sockets there."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(EmbeddedPostgresError, match="database_url"):
        EmbeddedPostgres(mine)


@pytest.mark.skipif(not SYSTEM_15.is_dir(), reason="no PostgreSQL from the system here")
def test_system_postgres_is_found_without_the_wheel(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are platforms without a wheel, and people who want the one of their system."""
    monkeypatch.setattr(sys, "path", [])
    account = server_account(base / "none")
    found = find_binaries(None, account=account, on_progress=print)
    assert found.folder.is_relative_to("/usr/lib/postgresql")
    assert found.major >= 15


@pytest.mark.skipif(not SYSTEM_15.is_dir(), reason="no PostgreSQL 15 from the system here")
def test_system_postgres_15_serves_as_well(base: Path) -> None:
    """It is the oldest version we support, and the one that comes without our wheel."""
    store = own_folder(base, "system", account=ACCOUNTS[-1])
    with Client(store, ACCOUNTS[-1], bin_dir=SYSTEM_15) as client:
        client.ask("start")
        assert client.ask("sql", "SHOW server_version").startswith("15.")
        client.ask("sql", "CREATE EXTENSION pg_trgm")
        assert client.ask("sql", "SELECT cardinality(show_trgm('张先生喜欢蓝色')) > 5") == "True"
    assert not is_running(store)
