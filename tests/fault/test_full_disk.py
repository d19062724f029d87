"""The disk of the data folder fills up, with PostgreSQL elsewhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fault.outage import LONG, outage_of
from tests.services.tmpfs import small_disk


def fill(folder: Path, *, left: int) -> Path:
    """A file that takes all the space but so many bytes."""
    path = folder / "filler"
    state = os.statvfs(folder)
    path.write_bytes(bytes(state.f_bavail * state.f_frsize - left))
    return path


@pytest.mark.parametrize("left", [0, pytest.param(60_000, marks=LONG)])
def test_a_disk_that_fills_up_in_the_middle_of_folds(
    left: int, database_url: str, record_property: Callable[[str, object], None]
) -> None:
    """Writes are accepted and answers whole, from the last good files and the truth.

    The log says what is wrong, once; when there is space again, all goes on by itself.
    """
    with (
        small_disk(24) as disk,
        outage_of(
            f"disk full but for {left:,} bytes",
            record_property,
            data_dir=disk / "d",
            database_url=database_url,
            hnsw_min_rows=20,
        ) as outage,
    ):
        outage.traffic.let_pass(2.0)
        filler = fill(disk, left=left)
        outage.traffic.let_pass(6.0)
        lag = outage.memory.health().lag
        assert max(index["rows"] for index in lag.values()) > 0
        assert 1 <= outage.events.counts["target_failed"] <= 6
        filler.unlink()
        outage.traffic.let_pass(1.0)
        outage.end()
        assert set(outage.journal.notes) == {""}
        assert outage.events.counts["target_reset"] == 0
