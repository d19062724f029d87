"""Looks whether the index of a space finds what it holds, before searches are switched to it."""

from typing import Final

import numpy as np

from memory_tool.errors import Corrupt
from memory_tool.inventory import differing
from memory_tool.inventory_ports import IndexInventory, TruthInventory
from memory_tool.model import Vector
from memory_tool.port_values import StoredVectors
from memory_tool.ports import VectorView
from memory_tool.query import Candidate
from memory_tool.space_ports import VectorSamples

SAMPLES: Final = 64
"""Chunks that are looked for by their own vector."""

EXACT: Final = 16
"""Of these, how many have their ten nearest compared with those of an exact search."""

EXACT_ROWS: Final = 20_000
"""Vectors of the largest namespace that is compared so; the graph of a larger one was measured when
it was written."""

_NEAREST: Final = 10
_LEAST: Final = 0.95
"""Share that has to be found: an index that was built right finds .97 and more of its graphs, and
all of what it scans."""

_SAME: Final = 0.002
"""Cosines this near are of the same text in half floats, or as good."""


def check_entries(inventory: IndexInventory, truth: TruthInventory, *, target: str) -> None:
    """Compare by fingerprints what an index holds with what it has to hold.

    Raises:
        Corrupt: They differ.
    """
    # The index first: what it takes up in between then counts as moving.
    clocks = inventory.clocks
    settled = truth.settled(target, "vector", clocks=clocks)
    found = inventory.fingerprints(leaving_out=settled.moving)
    wrong = differing(settled.fingerprints, found)
    if wrong:
        message = f"{target} does not hold what it has to in {len(wrong):,} namespaces"
        raise Corrupt(message, command="threefold rebuild --full")


def check_index(view: VectorView, vectors: VectorSamples, *, space: int) -> None:
    """Ask an index for chunks by their own vectors, and for their neighbours.

    Raises:
        Corrupt: It misses too many.
    """
    sample = vectors.sample(space, SAMPLES)
    known = [
        (reference, vector)
        for reference, vector in zip(sample.references, sample.vectors, strict=True)
        if reference.version <= view.clock(reference.ns_id)
    ]
    if not known:
        return
    found = [_unit(vector) for _, vector in known]
    answers = [
        view.search(vector, [reference.ns_id], depth=_NEAREST)
        for (reference, _), vector in zip(known, found, strict=True)
    ]
    themselves = [
        _finds_itself(reference, answer)
        for (reference, _), answer in zip(known, answers, strict=True)
    ]
    _check("of the chunks are not found by their own vector", themselves)
    recalls = [
        recall
        for (reference, _), vector, answer in list(zip(known, found, answers, strict=True))[:EXACT]
        if (stored := vectors.namespace(space, reference.ns_id, limit=EXACT_ROWS)) is not None
        and (recall := _recall(answer, vector, held=_held(stored, view))) is not None
    ]
    _check("of the nearest chunks are missed", recalls)


def _check(what: str, shares: list[float]) -> None:
    share = sum(shares) / len(shares) if shares else 1.0
    if share < _LEAST:
        message = f"the index of the new embedding space is bad: {1 - share:.0%} {what}"
        raise Corrupt(message, command="threefold rebuild --full")


def _finds_itself(reference: Candidate, answer: tuple[Candidate, ...]) -> float:
    place = reference[:3]
    # Ten others that are as near say the same text.
    return float(any(one[:3] == place or one.score >= 1 - _SAME for one in answer))


def _held(stored: StoredVectors, view: VectorView) -> Vector:
    """The vectors that the index has to hold: what was written since, it can't find."""
    held = [one.version <= view.clock(one.ns_id) for one in stored.references]
    vectors: Vector = stored.vectors[np.array(held, bool)]
    return vectors


def _recall(answer: tuple[Candidate, ...], vector: Vector, *, held: Vector) -> float | None:
    """The share of the nearest that was found; ``None`` where there are none."""
    scores = np.sort(np.einsum("nd,d->n", held, vector))[::-1][:_NEAREST]
    if not len(scores):
        return None
    least = float(scores[-1]) - _SAME
    return min(1.0, sum(one.score >= least for one in answer) / len(scores))


def _unit(vector: Vector) -> Vector:
    unit: Vector = vector / np.linalg.norm(vector)
    return unit.astype(np.float32)
