"""The disk of the data folder fills up, with PostgreSQL elsewhere."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.fault.outage import LONG, outage_of
from tests.services.tmpfs import small_disk

_PIECE: Final = 4096
_ROUNDS: Final = 4
_ROUND_SECONDS: Final = 0.3


def fill(folder: Path, *, left: int) -> Path:
    """A file that takes all the space but so many bytes.

    Folds go on meanwhile and take and give back space of their own: so it is taken until there is
    none, more than once, instead of trusting what was free a moment ago.
    """
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for _ in range(_ROUNDS):
            with contextlib.suppress(OSError):
                while file.write(bytes(_PIECE)):
                    pass
            time.sleep(_ROUND_SECONDS)
    os.truncate(path, max(0, path.stat().st_size - left))
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
