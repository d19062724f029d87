"""Ids as pairs of numbers, and the search for them in sorted runs."""

import numpy as np
import pytest

from memory_tool.adapters.faiss_manifest import Block
from memory_tool.adapters.faiss_rows import Ids, RowTable

A, B, C, D = "0" * 31 + "1", "0" * 31 + "2", "0" * 15 + "1" + "0" * 16, "f" * 32


def table(*ids: str, dead: int | None = None) -> RowTable:
    """Rows of these ids, all of ordinal 0 and version 1, one of them dead."""
    flags = np.zeros(len(ids), np.bool_)
    if dead is not None:
        flags[dead] = True
    return RowTable(
        ids=Ids.of(ids),
        ordinals=np.zeros(len(ids), np.uint16),
        versions=np.ones(len(ids), np.int64),
        dead=flags,
    )


def test_ids_come_back_as_they_were() -> None:
    """Every bit counts, leading zeros too."""
    assert Ids.of([A, D, C]).texts() == [A, D, C]
    assert Ids.from_bytes(Ids.of([A, D, C]).to_bytes()).texts() == [A, D, C]


@pytest.mark.parametrize("strange", ["", "1", "0" * 33, "0" * 16, "g" * 32, " " * 32, "F" * 32])
def test_a_text_that_is_no_id_is_left_out(strange: str) -> None:
    """Two halves must not make a whole, nor shift all ids behind them."""
    assert Ids.of([strange, A, strange, B]).texts() == [A, B]


def test_ids_that_begin_alike_are_two() -> None:
    """The first half is searched, the second one decides."""
    rows, places = table(A, B, B, D).find(Block(ns_id=1, clock=1, start=0, runs=(4,)), Ids.of([B]))
    assert (rows.tolist(), places.tolist()) == ([1, 2], [0, 0])


def test_every_run_of_the_block_is_searched_and_no_other_row() -> None:
    """Rows of neighbours have the same ids; dead rows are not there any more."""
    rows = table(A, D, A, C, A, B, D, dead=4)
    block = Block(ns_id=1, clock=1, start=2, runs=(2, 2))
    found, places = rows.find(block, Ids.of([D, C, B, A]))
    assert sorted(zip(found.tolist(), places.tolist(), strict=True)) == [(2, 3), (3, 1), (5, 2)]
    for wanted in ([D, C, B, A], [A, B, C, D, "1" * 32, "2" * 32]):
        members = rows.members(block, frozenset(wanted), ids=Ids.of(wanted))
        assert sorted(members.tolist()) == [2, 3, 5]
