"""The ways in which the truth can contradict itself, done to it past its own walls."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memory_tool.findings import Drift
from scripts.drifting.scene import Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthSeed:
    """One way: what was done, what a check has to call it, and how it is done."""

    name: str
    finds: Drift
    sow: Callable[[Scene], None]


def _clock_back(scene: Scene) -> None:
    with scene.sabotage() as truth:
        truth.execute(
            "UPDATE threefold.ns_clock c SET nseq = m.highest - 1"
            " FROM (SELECT ns_id, max(nseq) AS highest FROM threefold.memory GROUP BY ns_id) m"
            " WHERE m.ns_id = c.ns_id AND m.highest > 1"
        )


def _chunk_high(scene: Scene) -> None:
    row = scene.victim(next(iter(scene.liars.values())), chunks=2)
    with scene.sabotage() as truth:
        truth.execute(
            "UPDATE threefold.memory SET chunk_high = 1 WHERE id = %s AND ns_id = %s",
            [row.memory_id, row.ns_id],
        )


def _lost_chunks(scene: Scene) -> None:
    ns_id = next(iter(scene.truth.audit.clocks()))
    with scene.sabotage() as truth:
        truth.execute(
            "INSERT INTO threefold.chunk VALUES"
            " (%s, %s, 0, 0, 1, 'en', 'left behind', '', NULL, 1)",
            [ns_id, uuid.uuid4()],
        )


def _no_chunks(scene: Scene) -> None:
    row = scene.victim(next(iter(scene.liars.values())), chunks=2)
    with scene.sabotage() as truth:
        truth.execute(
            "DELETE FROM threefold.chunk WHERE ns_id = %s AND memory_id = %s",
            [row.ns_id, row.memory_id],
        )


TRUTH_SEEDS: Final = (
    TruthSeed(name="numbers above their clock", finds=Drift.NUMBER_ABOVE_CLOCK, sow=_clock_back),
    TruthSeed(name="chunk_high below the chunks", finds=Drift.CHUNK_HIGH_LOW, sow=_chunk_high),
    TruthSeed(name="chunks of nobody", finds=Drift.LOST_CHUNKS, sow=_lost_chunks),
    TruthSeed(name="a memory without its chunks", finds=Drift.NO_CHUNKS, sow=_no_chunks),
)
