"""However a history is cut into folds, the index holds what a build at once would."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import (
    ROUNDING,
    VectorHistory,
    check_exact,
    memory_id,
    places,
    units,
)

_VECTORS: Final = units(1000, 16)
_LARGE, _SMALL = 1, 2
_QUERIES: Final = units(3, 16, seed=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happens to a memory, or to the index."""

    kind: Literal["put", "delete", "touch", "fold", "reset"]
    ns_id: int
    number: int
    vectors: tuple[int | None, ...]


steps = st.builds(
    Step,
    kind=st.sampled_from(["put", "put", "put", "delete", "touch", "fold", "reset"]),
    ns_id=st.sampled_from([_LARGE, _SMALL]),
    number=st.integers(0, 90),
    vectors=st.lists(st.none() | st.integers(0, 999), min_size=1, max_size=3).map(tuple),
)


def follow(history: VectorHistory, folder: Folder, *, taken: list[Step]) -> None:
    """Let all steps happen, and fold at the end."""
    target = folder.target()
    for step in taken:
        if step.kind == "fold":
            history.fold(target)
        elif step.kind == "reset":
            target.reset()
        elif step.kind == "put":
            vectors = [None if at is None else _VECTORS[at] for at in step.vectors]
            history.put(step.ns_id, step.number, *vectors)
        elif step.kind == "delete":
            history.delete(step.ns_id, step.number)
        elif history.has(step.ns_id, step.number):
            history.touch(step.ns_id, step.number)
    history.fold(target)


@pytest.mark.parametrize("graph_above", [0, 70, 10_000])
@settings(max_examples=20, deadline=None)
@given(taken=st.lists(steps, max_size=60), within=st.frozensets(st.integers(0, 95)))
def test_folds_add_up_to_a_build(
    graph_above: int, taken: list[Step], within: frozenset[int]
) -> None:
    """Replaced, deleted and returned rows, in any order: nothing is lost, doubled or revived."""
    with tempfile.TemporaryDirectory() as root:
        history = VectorHistory()
        history.put_all(_LARGE, _VECTORS[:60])
        folded = Folder(root=Path(root) / "folds", history=history, graph_above=graph_above)
        history.fold(folded.target())
        follow(history, folded, taken=taken)
        view = folded.index().view(history.published("folder-1"))
        target = folded.target()
        target.reset()
        rebuilt = folded.index().view(history.fold(target))
        members = frozenset(map(memory_id, within))
        for query in _QUERIES:
            for ids in (None, members):
                found = view.search(query, [_LARGE, _SMALL], depth=1000, within=ids)
                expected = history.exact(query, [_LARGE, _SMALL], within=ids)
                check_exact(found, expected, depth=1000)
                again = rebuilt.search(query, [_LARGE, _SMALL], depth=1000, within=ids)
                assert set(places(again)) == set(places(found))
            # Deep enough for a scan above; here a graph of 50 rows is walked.
            best = view.search(query, [_LARGE], depth=1)
            exact = history.exact(query, [_LARGE])
            assert [hit.score for hit in best] == pytest.approx(
                [max(exact.values())] if exact else [], abs=ROUNDING
            )
