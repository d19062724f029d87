"""Worker processes that share a target: one at a time, whatever happens to it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from memory_tool.adapters.postgres_jobs import PostgresJobs
from memory_tool.adapters.postgres_server import Role
from memory_tool.bootstrap import open_tool
from memory_tool.index_jobs.target_group import FULL
from memory_tool.model import NewMemory
from memory_tool.settings import load_settings
from memory_tool.tool import MemoryTool
from tests.factories import ANNA
from tests.integration.shared_worker import TARGET, Note, gate_of, notes, read_state
from tests.services.postgres import Database

CHECKOUT: Final = Path(__file__).resolve().parents[2]
LEASE_SECONDS: Final = 3.0
PATIENCE_SECONDS: Final = 60.0
"""Only so that a broken promise ends the test; what is waited for comes within some leases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A database, a shared target, and hosts with a data folder each."""

    folder: Path
    database: Database

    @property
    def shared(self) -> Path:
        """Where the shared target is."""
        return self.folder / "shared"

    def settings(self, who: str) -> dict[str, object]:
        """Those of a host."""
        return {
            "data_dir": str(self.folder / who),
            "database_url": self.database.conninfo(Role.APP),
            "embedder": "hashing",
            "lease_seconds": LEASE_SECONDS,
        }

    @contextlib.contextmanager
    def worker(self, who: str, *, batch_seconds: float = 0.0) -> Iterator[subprocess.Popen[str]]:
        """A worker that has opened the store; killed at the end if it still runs."""
        orders = {
            **self.settings(who),
            "shared": str(self.shared),
            "who": who,
            "batch_seconds": batch_seconds,
        }
        command = [sys.executable, "-m", "tests.integration.shared_worker", json.dumps(orders)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == "open\n"
                yield child
            finally:
                child.kill()

    @contextlib.contextmanager
    def writer(self) -> Iterator[MemoryTool]:
        """A web process that leaves applying to the workers."""
        settings = load_settings({**self.settings("web"), "applying": False}, environment={})
        with open_tool(settings) as tool:
            yield tool

    def noted(self, who: str, what: str) -> int:
        """How often a worker noted this."""
        return notes(self.shared).count(Note(who=who, what=what))

    def holders(self) -> list[str]:
        """Who holds the lease of the shared target."""
        with self.database.connection(Role.WORKER) as connection:
            rows = connection.execute(
                "SELECT holder FROM threefold.lease WHERE name = %s AND expires > now()", [TARGET]
            ).fetchall()
        return [str(holder) for (holder,) in rows]

    def rows(self) -> dict[str, bool]:
        """The rows that the target has to hold, from the truth: whether each is live."""
        with self.database.connection(Role.WORKER) as connection:
            rows = connection.execute(
                "SELECT replace(id::text, '-', ''), state = 'live' FROM threefold.memory"
            ).fetchall()
        return {str(memory_id): bool(live) for memory_id, live in rows}

    def is_caught_up(self) -> bool:
        """Whether the target holds what the truth does."""
        held: dict[str, bool] = read_state(self.shared)["rows"]
        return held == self.rows()


def test_one_connection_is_enough_to_bring_indexes_forward(site: Site) -> None:
    """Reading changes holds a connection while their mark is committed on a second one."""
    settings = load_settings({**site.settings("web"), "pool_size": 1}, environment={})
    with open_tool(settings) as tool:
        tool.store(ANNA, [NewMemory(content="tea")])
        assert tool.apply_now()
        assert tool.stores.figures is not None
        for target in (tool.stores.keyword_index.target, tool.stores.vector_index.target):
            assert tool.stores.figures.lag(target).rows == 0


@pytest.fixture
def site(database: Database, tmp_path: Path) -> Site:
    """A fresh one."""
    (tmp_path / "shared").mkdir()
    return Site(folder=tmp_path, database=database)


def wait_until(came: Callable[[], object]) -> None:
    """Wait for something that other processes do."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not came():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def write(tool: MemoryTool, text: str) -> None:
    """Store a memory."""
    tool.store(ANNA, [NewMemory(content=text)])


def check_one_at_a_time(written: list[Note]) -> None:
    """No batch begins before the one before it ended, whoever applied it."""
    at_it = ""
    for note in written:
        if note.what == "begin":
            assert not at_it, f"{note.who} began while {at_it} was at it"
            at_it = note.who
        elif note.what in ("end", "refused"):
            assert at_it == note.who
            at_it = ""


def test_two_workers_never_apply_the_same_target(site: Site) -> None:
    """They would do everything twice, and each find the other's work in its way."""
    # Each looks once a second: two that apply would be at it at the same time.
    one, two = (site.worker(who, batch_seconds=0.7) for who in ("one", "two"))
    with one, two, site.writer() as tool:
        for number in range(40):
            write(tool, f"note {number}")
            time.sleep(0.1)
        wait_until(site.is_caught_up)
        written = notes(site.shared)
    check_one_at_a_time(written)
    assert {note.what for note in written} == {"begin", "end"}
    assert len(written) >= 6


def test_a_stopped_worker_hands_over_at_once(site: Site) -> None:
    """SIGTERM ends it in order: status 0, the batch at hand done, no lease left to wait for."""
    with site.worker("one") as first, site.writer() as tool:
        write(tool, "a")
        wait_until(site.is_caught_up)
        gate_of(site.shared, "one").touch()
        write(tool, "b")
        wait_until(lambda: site.noted("one", "begin") == site.noted("one", "end") + 1)
        first.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert first.poll() is None, "it finishes what it is at"
        gate_of(site.shared, "one").unlink()
        assert first.wait(PATIENCE_SECONDS) == 0
        assert site.holders() == []
        assert site.is_caught_up()
        with site.worker("two"):
            write(tool, "c")
            wait_until(site.is_caught_up)
            assert site.noted("two", "end") > 0
    check_one_at_a_time(notes(site.shared))


def test_a_second_signal_ends_a_worker_at_once(site: Site) -> None:
    """Whoever presses Ctrl-C twice has no time for a batch; nothing is lost by it."""
    with site.worker("one") as first, site.writer() as tool:
        gate_of(site.shared, "one").touch()
        write(tool, "a")
        wait_until(lambda: site.noted("one", "begin"))
        first.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert first.poll() is None
        first.send_signal(signal.SIGTERM)
        assert first.wait(PATIENCE_SECONDS) == -signal.SIGTERM
        with site.worker("two"):
            wait_until(site.is_caught_up)


def test_a_killed_worker_is_replaced(site: Site) -> None:
    """When its lease has run out; the job that it was at is taken up again and done."""
    with site.database.pool(Role.WORKER) as pool, site.writer() as tool:
        jobs = PostgresJobs(pool, holder="test", seconds=LEASE_SECONDS)
        with site.worker("one") as first:
            write(tool, "a")
            wait_until(site.is_caught_up)
            gate_of(site.shared, "one").touch()
            jobs.offer(FULL, TARGET, every="day")
            wait_until(lambda: site.noted("one", "reset"))
            wait_until(lambda: site.noted("one", "begin") == site.noted("one", "end") + 1)
            first.kill()
            first.wait()
        assert site.holders() != [], "the dead one still holds it"
        with site.worker("two"):
            wait_until(lambda: jobs.offer(FULL, TARGET, every="day").done)
            assert site.noted("two", "reset") == 1
            assert site.is_caught_up()


def test_a_worker_that_stood_still_gives_way(site: Site) -> None:
    """It wakes in the middle of a batch long after its lease: the heir's work must stay."""
    with site.worker("one") as first, site.writer() as tool:
        write(tool, "a")
        wait_until(site.is_caught_up)
        gate_of(site.shared, "one").touch()
        write(tool, "b")
        wait_until(lambda: site.noted("one", "begin") == site.noted("one", "end") + 1)
        os.kill(first.pid, signal.SIGSTOP)
        with site.worker("two"):
            wait_until(site.is_caught_up)
            holder = site.holders()
            gate_of(site.shared, "one").unlink()
            os.kill(first.pid, signal.SIGCONT)
            wait_until(lambda: site.noted("one", "refused") == 1)
            for number in range(10):
                write(tool, f"c {number}")
                time.sleep(0.3)
            wait_until(site.is_caught_up)
            assert site.holders() == holder
        first.send_signal(signal.SIGTERM)
        assert first.wait(PATIENCE_SECONDS) == 0
    written = [note for note in notes(site.shared) if note.what != "end"]
    assert [note for note in written if note.what == "reset"] == []
    after = written[written.index(Note(who="one", what="refused")) :]
    assert {note.who for note in after[1:]} == {"two"}
