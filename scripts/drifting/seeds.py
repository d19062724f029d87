"""Every kind of drift, as something that is done to an index or to the truth."""

import dataclasses
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from memory_tool.findings import Drift
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import ChangeRow
from scripts.drifting.lies import Liar
from scripts.drifting.scene import Scene

UNKNOWN: Final = 999_999
"""The number of a namespace that no store has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A kind of drift.

    Attributes:
        name: What was done, for people.
        finds: What a check has to call it.
        sow: Does it to one index.
        kind: Only to indexes that hold this.
        whole: Whether it spoils the index as a whole, so that other seeds would not be seen.
    """

    name: str
    finds: Drift
    sow: Callable[[Scene, Liar], None]
    kind: Literal["vector", "keyword"] | None = None
    whole: bool = False


def _left_out(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    liar.tell(dataclasses.replace(row, live=False, chunks=()))


def _first_chunk_left_out(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar, chunks=2)
    liar.tell(dataclasses.replace(row, chunks=row.chunks[1:]))


def _other_version(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    liar.tell(dataclasses.replace(row, version=row.version + 1_000))


def _other_namespace(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    liar.tell(dataclasses.replace(row, ns_id=scene.other_namespace(row.ns_id)))


def _orphan(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    liar.tell(dataclasses.replace(row, memory_id=uuid.uuid4().hex))


def _more_ordinals(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    first = row.chunks[0]
    beyond = range(row.chunk_high + 3, row.chunk_high + 6)
    more = tuple(dataclasses.replace(first, ordinal=ordinal) for ordinal in beyond)
    liar.tell(dataclasses.replace(row, chunks=(*row.chunks, *more), chunk_high=beyond.stop))


def _deleted(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    scene.delete(row.memory_id)
    gone = scene.rows(liar)[row.ns_id, row.memory_id]
    liar.tell(dataclasses.replace(row, version=gone.version))


def _hidden(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    with scene.sabotage() as truth:
        # Without a number of its own: no index hears of it.
        truth.execute(
            "UPDATE threefold.memory SET state = 'quarantined' WHERE id = %s AND ns_id = %s",
            [row.memory_id, row.ns_id],
        )


def _other_vector(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    # An index keeps the vector of a version that it has.
    liar.tell(dataclasses.replace(row, live=False, chunks=()))
    liar.tell(_turned(row))


def _turned(row: ChangeRow) -> ChangeRow:
    chunks = tuple(
        dataclasses.replace(chunk, embedding=np.roll(chunk.embedding, 1))
        for chunk in row.chunks
        if chunk.embedding is not None
    )
    return dataclasses.replace(row, chunks=chunks)


def _other_words(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    chunks = tuple(dataclasses.replace(chunk, words="zorblax", bigrams="") for chunk in row.chunks)
    liar.tell(dataclasses.replace(row, chunks=chunks, extra=""))


def _clock_too_high(scene: Scene, liar: Liar) -> None:
    ns_id, (nseq, _) = min(scene.truth.audit.clocks().items())
    liar.tell(clocks={ns_id: nseq + 50})


def _progress_too_high(scene: Scene, liar: Liar) -> None:
    # Not the one whose clock the seed before made too high.
    ns_id, (nseq, _) = max(scene.truth.audit.clocks().items())
    scene.log.note_progress(liar.name, {ns_id: nseq + 9})


def _unknown_namespace(scene: Scene, liar: Liar) -> None:
    row = scene.victim(liar)
    liar.tell(dataclasses.replace(row, ns_id=UNKNOWN), clocks={UNKNOWN: row.nseq})


def _other_mark(scene: Scene, liar: Liar) -> None:
    with scene.sabotage() as truth:
        truth.execute("DELETE FROM threefold.index_mark WHERE target = %s", [liar.name])


def _other_store(_scene: Scene, liar: Liar) -> None:
    liar.rebuilt_as(store="f" * 32)


def _other_space(scene: Scene, liar: Liar) -> None:
    dimension = scene.tool.space.dimension
    liar.rebuilt_as(space=EmbeddingSpace(model="another", dimension=dimension))


def _purged(scene: Scene, _liar: Liar) -> None:
    ns_id = next(iter(scene.truth.audit.clocks()))
    with scene.sabotage() as truth:
        # As if a deletion had been forgotten that the indexes have not seen.
        truth.execute(
            "UPDATE threefold.ns_clock SET nseq = nseq + 1, purged = nseq + 1 WHERE ns_id = %s",
            [ns_id],
        )


SEEDS: Final = (
    Seed(name="a row left out", finds=Drift.MISSING, sow=_left_out),
    Seed(name="a chunk left out", finds=Drift.MISSING, sow=_first_chunk_left_out),
    Seed(name="a version that never was", finds=Drift.WRONG_VERSION, sow=_other_version),
    Seed(name="a row in another namespace", finds=Drift.WRONG_NAMESPACE, sow=_other_namespace),
    Seed(name="a row that nobody wrote", finds=Drift.ORPHAN, sow=_orphan),
    Seed(name="further ordinals", finds=Drift.SURPLUS_ORDINAL, sow=_more_ordinals),
    Seed(name="a deleted memory kept", finds=Drift.DELETED, sow=_deleted),
    Seed(name="a hidden memory kept", finds=Drift.NOT_HELD, sow=_hidden),
    Seed(name="other vectors", finds=Drift.WRONG_VECTOR, sow=_other_vector, kind="vector"),
    Seed(name="other words", finds=Drift.NOT_FOUND, sow=_other_words, kind="keyword"),
    Seed(name="a clock too high", finds=Drift.CLOCK_AHEAD, sow=_clock_too_high),
    Seed(name="progress too high", finds=Drift.PROGRESS_AHEAD, sow=_progress_too_high),
    Seed(
        name="an unknown namespace",
        finds=Drift.UNKNOWN_NAMESPACE,
        sow=_unknown_namespace,
        whole=True,
    ),
    Seed(name="a mark of another history", finds=Drift.FOREIGN_MARK, sow=_other_mark, whole=True),
    Seed(name="an index of another store", finds=Drift.FOREIGN_STORE, sow=_other_store, whole=True),
    Seed(
        name="another embedding space",
        finds=Drift.OTHER_SPACE,
        sow=_other_space,
        kind="vector",
        whole=True,
    ),
    Seed(name="a purge unseen", finds=Drift.BELOW_PURGED, sow=_purged, whole=True),
)
"""What is done to an index."""
