"""Indexes are built anew while they are searched and written to, and can be set back."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from memory_tool.adapters.faiss_successor import FaissSuccessor
from memory_tool.adapters.postgres_server import Role
from memory_tool.errors import Corrupt, NotFound, ThreefoldError, Unavailable, WriteConflict
from memory_tool.index_jobs.target_group import BACK, ERASED, FULL, INCREMENTAL
from memory_tool.progress import Advance, Built
from tests.integration.renewed_site import (
    BATCH,
    LEASE_SECONDS,
    Site,
    batches_into,
    build_in_small_batches,
    damage,
    site_at,
)
from tests.services.postgres import Database, Server

if TYPE_CHECKING:
    from tests.services.elasticsearch import ElasticsearchServer

CHECKOUT: Final = Path(__file__).resolve().parents[2]
ROWS: Final = 5 * BATCH


BOTH: Final = pytest.mark.parametrize("stack", ["files", "server"], indirect=True)
"""FAISS and Tantivy in a folder, or two indices on an Elasticsearch."""


@pytest.fixture
def postgres(embedded_postgres: Server) -> Server:
    """One is enough: this is about indexes."""
    return embedded_postgres


@pytest.fixture
def stack(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """Settings of where the indexes are."""
    if getattr(request, "param", "files") == "files":
        return {"hnsw_min_rows": 50}
    server: ElasticsearchServer = request.getfixturevalue("elasticsearch")
    return {
        "elasticsearch_url": server.url,
        "elasticsearch_user": server.user,
        "elasticsearch_password": server.password,
        "elasticsearch_prefix": request.getfixturevalue("index_prefix"),
        "elasticsearch_replicas": 0,
        "vector_backend": "elasticsearch",
        "arm_seconds": 10.0,
    }


@pytest.fixture
def site(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack: Mapping[str, Any],
) -> Iterator[Site]:
    """A hundred memories of one user in both indexes."""
    build_in_small_batches(monkeypatch)
    settings: dict[str, Any] = {
        "data_dir": str(tmp_path / "data"),
        "database_url": database.conninfo(Role.APP),
        "worker_database_url": database.conninfo(Role.WORKER),
        "owner_database_url": database.conninfo(Role.OWNER),
        "embedder": "hashing",
        "lease_seconds": LEASE_SECONDS,
        **stack,
    }
    with site_at(settings) as one:
        one.store(ROWS)
        assert one.tool.apply_now()
        yield one


def age(database: Database, by: timedelta) -> None:
    """Let all that is kept be so much older."""
    with database.connection(Role.WORKER) as connection:
        connection.execute(
            "UPDATE threefold.index_generation"
            " SET made_at = made_at - %(by)s, left_at = left_at - %(by)s",
            {"by": by},
        )


def _no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


def hour(site: Site) -> None:
    """The job of one hour."""
    outcomes = site.background.do(INCREMENTAL, again=True, may_go_on=lambda: True)
    assert set(outcomes.values()) == {"done"}


@BOTH
def test_searches_and_writes_go_on_while_an_index_is_built(site: Site) -> None:
    """At no moment is an index empty, partial or left behind: what is read follows meanwhile."""
    before = site.marks()
    seen: list[tuple[int, int]] = []
    steps: list[Advance | Built] = []

    def look() -> bool:
        site.check()
        seen.append(site.clocks())
        if len(steps) % 3 == 0:
            site.store(1)
            site.remove(1)
        return True

    site.background.watch(steps.append)
    site.background.do(FULL, again=True, may_go_on=look)
    built = [step for step in steps if isinstance(step, Built)]
    assert {step.target for step in built} == set(site.targets)
    assert all(step.verified for step in built)
    assert min(min(clocks) for clocks in seen) >= ROWS
    assert seen == sorted(seen), "what searches read never goes back"
    assert seen[len(seen) // 2] > seen[0], "it follows while its successor is built"
    assert all(old != new for old, new in zip(before, site.marks(), strict=True))
    site.check()


def test_a_build_tells_what_it_made(site: Site) -> None:
    """Rows, and how well the graph finds them, by which it may be judged later."""
    words, vectors = sorted(site.rebuild(), key=lambda step: step.target, reverse=True)
    assert (words.target, vectors.target) == site.targets
    assert vectors.quality.rows == ROWS
    assert vectors.quality.recall is not None
    assert vectors.quality.recall >= 0.98
    assert (vectors.quality.width or 0) >= 64
    assert words.quality.recall is None


def test_a_stopped_build_goes_on_where_it_was(site: Site) -> None:
    """A worker is told to end in the middle; the next one builds only what is missing."""
    left = iter(range(3))
    site.background.do(FULL, again=True, may_go_on=lambda: next(left, None) is not None)
    read: list[Advance] = []
    with site_at(site.settings) as other:
        other.background.watch(batches_into(read))
        other.background.do(FULL, again=False, may_go_on=lambda: True)
    assert {step.target for step in read} == set(site.targets)
    assert min(step.applied + step.pending for step in read) < ROWS
    site.check()


def test_a_full_build_that_meets_a_mend_builds_the_others_too(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun before is brought to its end; it says nothing of the others."""
    before = site.marks()
    with monkeypatch.context() as patch:
        patch.setattr(FaissSuccessor, "apply", _no_room)
        with pytest.raises(OSError, match="No space"):
            site.background.mend([site.targets[1]], "damaged")
    assert site.marks() == before
    assert {step.target for step in site.rebuild()} == set(site.targets)
    assert all(old != new for old, new in zip(before, site.marks(), strict=True))
    site.check()


def test_a_stopped_build_does_not_repeat_what_it_had_done(site: Site) -> None:
    """Each of two large indexes is built once, however often the worker ends."""
    built: list[str] = []

    def hear(step: Advance | Built) -> None:
        if isinstance(step, Built):
            built.append(step.target)

    site.background.watch(hear)
    site.background.do(FULL, again=True, may_go_on=lambda: not built)
    assert len(built) == 1
    with site_at(site.settings) as other:
        other.background.watch(hear)
        assert set(other.background.once(lambda: True).values()) == {True}
    assert sorted(built) == sorted(site.targets)


def test_a_build_after_an_erasure_goes_on_with_none_from_before(
    site: Site, database: Database
) -> None:
    """It may hold what is to go, and so may everything that is kept for a way back."""
    site.rebuild()
    hour(site)
    left = iter(range(5))
    site.background.do(FULL, again=True, may_go_on=lambda: next(left, None) is not None)
    erased_at = datetime.now(UTC)
    read: list[Advance] = []
    site.background.watch(batches_into(read))
    site.background.do(ERASED, again=True, may_go_on=lambda: True)
    assert {step.target for step in read} == set(site.targets)
    for target in site.targets:
        assert sum(step.target == target for step in read) >= ROWS // BATCH, "all of it"
    with database.connection(Role.WORKER) as connection:
        kept = connection.execute(
            "SELECT target, bool_and(made_at > %(erased_at)s), bool_or(origin = 'full')"
            " FROM threefold.index_generation GROUP BY target ORDER BY target",
            {"erased_at": erased_at},
        ).fetchall()
    assert kept == [(target, True, True) for target in sorted(site.targets)]
    site.check()


@BOTH
def test_killed_builds_go_on_until_they_are_read(site: Site) -> None:
    """SIGKILL at any step: nothing is lost, every search is whole, and no batch is built twice."""
    rng = random.Random(7)
    kills = [rng.randint(1, 4) for _ in range(3)]
    before = site.marks()
    steps = 0
    for kill_at in [*kills, 1_000]:
        command = [
            sys.executable,
            "-m",
            "tests.integration.renewed_site",
            json.dumps(dict(site.settings)),
        ]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for number, line in enumerate(child.stdout, start=1):
                steps += line.startswith("Advance")
                if number == kill_at:
                    break
            child.kill()
        site.store(2, user=1)
        site.check()
    assert all(old != new for old, new in zip(before, site.marks(), strict=True))
    at_once = 2 * (ROWS // BATCH + len(kills))
    assert steps <= at_once + 2 * len(kills) + 6, "each kill costs at most the batch at hand"
    assert site.tool.apply_now()
    site.check()
    leftovers = [path.name for path in Path(site.settings["data_dir"]).rglob("tmp-*")]
    assert leftovers == []


@pytest.mark.parametrize(
    ("stack", "way"),
    [("files", "hourly"), ("files", "daily"), ("server", "daily")],
    indirect=["stack"],
)
def test_a_roll_back_reads_the_generation_before(site: Site, database: Database, way: str) -> None:
    """Whatever was written since is brought forward from there, and searches see it at once."""
    site.rebuild()
    hour(site)
    then = site.clocks()
    age(database, timedelta(hours=2))
    site.store(5)
    assert site.tool.apply_now()
    hour(site)
    site.store(1)
    assert site.tool.apply_now()
    outcomes = site.background.do(f"back-{way}", again=True, may_go_on=lambda: True)
    assert set(outcomes.values()) == {"done"}
    assert site.clocks() == then
    site.check()
    assert site.tool.apply_now()
    assert min(site.clocks()) == ROWS + 6
    site.check()


@BOTH
def test_there_is_no_way_back_to_what_lacks_a_purge(site: Site, database: Database) -> None:
    """A deleted memory whose row is gone would come back for ever."""
    site.rebuild()
    hour(site)
    age(database, timedelta(hours=2))
    site.remove(1)
    assert site.tool.apply_now()
    marks = site.marks()
    with database.connection(Role.WORKER) as connection:
        connection.execute("DELETE FROM threefold.memory WHERE state = 'deleted'")
        connection.execute("UPDATE threefold.ns_clock SET purged = nseq")
    with pytest.raises(WriteConflict, match="purged since"):
        site.background.do(BACK["daily"], again=True, may_go_on=lambda: True)
    assert site.marks()[1] == marks[1]
    site.check()


def test_none_is_set_back_if_one_is_damaged(site: Site, database: Database) -> None:
    """Of two indexes one of which is an old one, half of what is asked for would be undone."""
    site.rebuild()
    age(database, timedelta(hours=2))
    site.store(BATCH)
    assert site.tool.apply_now()
    marks = site.marks()
    damage(site)
    with pytest.raises(Corrupt):
        site.background.do(BACK["daily"], again=True, may_go_on=lambda: True)
    assert site.marks()[0] == marks[0]


def test_a_way_back_that_is_not_there_is_said(site: Site) -> None:
    """And nothing is set back, nor tried again every minute."""
    marks = site.marks()
    with pytest.raises(NotFound, match="no daily generation"):
        site.background.do(BACK["daily"], again=True, may_go_on=lambda: True)
    assert site.marks() == marks


def test_kept_generations_go_in_time_though_nothing_happens(site: Site, database: Database) -> None:
    """What is deleted has to be gone from every file within two days."""
    site.rebuild()
    hour(site)
    folder = Path(site.settings["data_dir"])
    assert list(folder.rglob("*.kept"))
    age(database, timedelta(hours=41))
    hour(site)
    age(database, timedelta(hours=41))
    hour(site)
    kept = [*folder.rglob("*.kept"), *folder.rglob("gen-*")]
    assert len(kept) == 2, "what is read, and a copy of it that was made now"
    site.check()


def test_the_hourly_job_finds_what_no_search_can_notice(site: Site, database: Database) -> None:
    """A memory that an index lacks is simply not found: only comparing tells."""
    with database.connection(Role.WORKER) as connection:
        connection.execute(
            "UPDATE threefold.memory SET vector_nseq = vector_nseq - 1"
            " WHERE vector_nseq = (SELECT max(vector_nseq) FROM threefold.memory)"
        )
    before = site.marks()
    hour(site)
    assert site.tool.apply_now()
    words, vectors = site.marks()
    assert words == before[0]
    assert vectors != before[1]
    site.check()


def test_the_hourly_job_builds_damaged_files_anew(site: Site) -> None:
    """And does all else that is due: what is kept goes in time."""
    before = site.marks()
    damage(site)
    hour(site)
    assert site.tool.apply_now()
    assert site.marks()[1] != before[1]
    site.check()


def test_the_timetable_builds_what_was_not_built_lately(site: Site, database: Database) -> None:
    """Each day by itself, so that deleted memories leave the files; no young build is repeated."""
    young = site.marks()
    assert set(site.background.once(lambda: True).values()) == {True}
    assert site.marks() == young
    age(database, timedelta(hours=21))
    with database.connection(Role.WORKER) as connection:
        # As if it were tomorrow.
        connection.execute("DELETE FROM threefold.job")
    assert set(site.background.once(lambda: True).values()) == {True}
    assert all(old != new for old, new in zip(young, site.marks(), strict=True))
    site.check()


def test_a_full_disk_ends_a_build_and_the_old_index_serves(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When there is room again, it goes on."""
    before = site.marks()
    with monkeypatch.context() as patch:
        patch.setattr("memory_tool.adapters.faiss_files.force", _no_room)
        with pytest.raises(ThreefoldError) as caught:
            site.background.do(FULL, again=True, may_go_on=lambda: True)
        assert isinstance(caught.value, Unavailable)
        assert "No space left" in str(caught.value)
        assert site.marks()[1] == before[1]
        site.check()
    site.rebuild()
    assert site.marks()[1] != before[1]
    site.check()


def test_damage_of_a_build_is_found_before_it_is_read(site: Site) -> None:
    """It begins again; what is read stays."""
    left = iter(range(4))
    site.background.do(FULL, again=True, may_go_on=lambda: next(left, None) is not None)
    (building,) = (Path(site.settings["data_dir"]) / "vectors").rglob("building")
    number = json.loads(building.read_text())["generation"]
    damaged = building.parent / f"gen-{number:06}" / "ids.u64"
    damaged.write_bytes(b"\xaa" + damaged.read_bytes()[1:])
    site.check()
    with site_at(site.settings) as other:
        other.stored.update(site.stored)
        other.background.do(FULL, again=True, may_go_on=lambda: True)
        other.check()
    site.check()
