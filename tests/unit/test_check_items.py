"""What two sides of a namespace disagree about, and what a repair makes of findings."""

from collections.abc import Mapping, Sequence

import pytest

from memory_tool.findings import TRUTH, Drift, Finding, Level, confirmed, each_once
from memory_tool.index_jobs.check_items import Disagreement, disagreements
from memory_tool.index_jobs.check_queries import shares
from memory_tool.index_jobs.repair import BATCH, redeliveries, to_rebuild
from memory_tool.inventory import Entry

A, B = "a" * 32, "b" * 32


def finding(
    drift: Drift, *, memory_id: str | None = A, highest: int = 0, chunks: int = 0
) -> Finding:
    """A finding about an index."""
    return Finding(
        drift=drift,
        target="index",
        ns_id=1,
        memory_id=memory_id,
        highest=highest,
        chunks=chunks,
    )


def test_sides_that_agree_in_any_order_have_nothing_to_say() -> None:
    """An index tells in the order of its files."""
    entries = [Entry(A, 0, 1), Entry(A, 1, 1), Entry(B, 0, 2)]
    assert list(disagreements(entries, reversed(entries))) == []


def test_entries_are_gathered_by_memory() -> None:
    """One memory is delivered again as a whole, whatever is wrong with it."""
    wanted = [Entry(A, 0, 3), Entry(A, 1, 3), Entry(B, 0, 2)]
    there = [Entry(A, 0, 1), Entry(A, 2, 1), Entry(B, 0, 2)]
    assert list(disagreements(wanted, there)) == [
        Disagreement(
            memory_id=A,
            lacking=(Entry(A, 0, 3), Entry(A, 1, 3)),
            beside=(Entry(A, 0, 1), Entry(A, 2, 1)),
        )
    ]


def test_an_entry_that_is_there_twice_is_one_too_many() -> None:
    """A search would find it twice."""
    once = Entry(A, 0, 1)
    (one,) = disagreements([once], [once, once])
    assert (one.lacking, one.beside) == ((), (once,))


def test_only_what_two_looks_found_is_told() -> None:
    """What was under way at the first is settled at the second; the words may differ."""
    passing, lasting = finding(Drift.ORPHAN), finding(Drift.MISSING, highest=1)
    again = finding(Drift.MISSING, highest=2)
    assert confirmed([passing, lasting], [again, finding(Drift.DELETED)]) == [again]


def test_a_memory_is_named_once_for_all_its_chunks() -> None:
    """It is repaired as a whole."""
    first, second = finding(Drift.WRONG_VECTOR, chunks=1), finding(Drift.WRONG_VECTOR, chunks=2)
    assert each_once([first, second, finding(Drift.ORPHAN)]) == [first, finding(Drift.ORPHAN)]


def test_fresh_numbers_lie_above_everything_that_was_met() -> None:
    """An index refuses a version that it knows, or an older one."""
    (one,) = redeliveries(
        [
            finding(Drift.WRONG_VERSION, highest=70, chunks=2),
            finding(Drift.SURPLUS_ORDINAL, highest=9, chunks=12),
            finding(Drift.CLOCK_AHEAD, memory_id=None, highest=90),
            finding(Drift.PROGRESS_AHEAD, memory_id=None, highest=99),
        ]
    )
    assert (one.ns_id, one.above, dict(one.memories)) == (1, 90, {A: 12})


def test_a_clock_is_raised_though_no_memory_is_concerned() -> None:
    """Else the index would miss what is written next."""
    (one,) = redeliveries([finding(Drift.CLOCK_AHEAD, memory_id=None, highest=5)])
    assert (one.above, dict(one.memories)) == (5, {})


def test_many_memories_are_redelivered_in_paced_batches() -> None:
    """A batch holds its namespace while it runs."""
    many = [finding(Drift.MISSING, memory_id=f"{number:032x}") for number in range(BATCH + 1)]
    assert [len(one.memories) for one in redeliveries(many)] == [BATCH, 1]


def test_an_index_that_does_not_take_what_it_is_given_is_built_anew() -> None:
    """Of the truth no finding ever rebuilds anything."""
    missing, foreign = finding(Drift.MISSING), finding(Drift.FOREIGN_MARK, memory_id=None)
    of_truth = Finding(drift=Drift.CHUNK_HIGH_LOW, target=TRUTH, ns_id=1, memory_id=A)
    assert to_rebuild([missing, of_truth], again=False) == frozenset()
    assert to_rebuild([missing, of_truth], again=True) == {"index"}
    assert to_rebuild([foreign], again=False) == {"index"}


@pytest.mark.parametrize(
    ("entries", "total", "expected"),
    [
        ({1: 3, 2: 4, 3: 0}, 10, {1: 10, 2: 10}),
        ({1: 900, 2: 100}, 10, {1: 9, 2: 1}),
        ({1: 1_000, 2: 1}, 10, {1: 9, 2: 1}),
        (dict.fromkeys(range(50), 1), 2, {0: 1, 1: 1}),
    ],
)
def test_a_sample_is_shared_out_by_size(
    entries: Mapping[int, int], total: int, expected: Mapping[int, int]
) -> None:
    """All of a small store, and of a large one as much of each namespace as it is large."""
    assert shares(entries, total) == expected


def test_levels_are_cumulative() -> None:
    """Named as the command names them, from coarse to fine."""
    names: Sequence[str] = [level.name.lower() for level in sorted(Level)]
    assert names == ["counts", "fingerprints", "items", "queries", "orphans"]


def test_a_finding_says_places_and_never_content() -> None:
    """What it is not about is left out."""
    told = finding(Drift.CLOCK_AHEAD, memory_id=None, highest=5).to_dict()
    assert told == {"drift": "clock too high", "target": "index", "namespace": 1}
