"""Memories move to the tier that their age asks for, batch by batch, while searches go on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from memory_tool.archive_ports import Archive, ArchiveRecord
from memory_tool.index_jobs.numbered import commit_changes
from memory_tool.index_jobs.pace import Pace
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.model import Status, Tier, WriteResult
from memory_tool.port_values import ArchiveFile, ChunkWords
from memory_tool.ports import RecordStore
from memory_tool.text.tokenise import tokenise
from memory_tool.tier_ports import DueMove, Summarise, TierRules, TierStore
from memory_tool.write_changes import Move

BATCH: Final = 500
"""Memories of one transaction, which holds the namespace's lock: about 50 ms."""

_LOOK: Final = 20_000
"""Due memories that are fetched at once, by numbers only."""

_BATCH_BYTES: Final = 64 * 1024 * 1024
"""Most text of one batch: it is in memory while it is packed."""


OnBatch: TypeAlias = Callable[[int, int], None]


def _unheard(_moved: int, _known: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TierParts:
    """What moving takes; ``records`` sees all namespaces."""

    store: TierStore
    records: RecordStore
    archive: Archive
    summarise: Summarise


class Tiers:
    """Moves what is due. Broken off at any moment, each memory is in one tier, whole."""

    def __init__(self, parts: TierParts, *, rules: TierRules, pace: Pace) -> None:
        """Do nothing yet; ``pace`` waits for the indexes between batches."""
        self._parts = parts
        self._rules = rules
        self._pace = pace

    def run(self, may_go_on: MayGoOn) -> None:
        """Move what is due."""
        self.move(may_go_on)

    def move(self, may_go_on: MayGoOn, on_batch: OnBatch = _unheard) -> int:
        """Move what is due; how many memories were moved.

        ``on_batch`` hears after each batch how many were moved, of how many that are known.

        Raises:
            Unavailable: The store, the archive or an index can't be reached: what was moved so far
                stays moved.
            Corrupt: The archive doesn't keep what is written.
        """
        moved = 0
        while may_go_on():
            due = self._parts.store.due(self._rules, _LOOK)
            known = moved + len(due)
            done = 0
            for batch in self._batches(due, may_go_on):
                done += batch
                on_batch(moved + done, known)
            moved += done
            # What could not be moved now is still due, and the next look would find it again.
            if not done or len(due) < _LOOK:
                break
        self._parts.store.recount()
        logger().info("tiers_moved", memories=moved)
        return moved

    def _batches(self, due: Sequence[DueMove], may_go_on: MayGoOn) -> Iterator[int]:
        """Move batch by batch; how many of each were moved."""
        for batch in _batches(due):
            if not may_go_on():
                break
            done = self._move(batch)
            yield done
            self._pace.wait(done, may_go_on)

    def _move(self, batch: Sequence[DueMove]) -> int:
        first = batch[0]
        file: ArchiveFile | None = None
        if first.tier is Tier.COLD:
            file, moves = self._packed(batch)
        else:
            moves = [Move(memory_id=one.memory_id, tier=one.tier, nseq=one.nseq) for one in batch]
        if not moves:
            return 0
        results = commit_changes(self._parts.records, first.namespace, changes=moves, archived=file)
        for result in results:
            if result.status is Status.FAILED:
                logger().warning("tier_move_failed", memory=result.id, reason=result.error)
        return sum(map(_is_moved, results))

    def _packed(self, batch: Sequence[DueMove]) -> tuple[ArchiveFile | None, list[Move]]:
        """An archive file of the batch, safe on the disk, and the moves that rely on it."""
        ns_id = batch[0].ns_id
        looked_at = {one.memory_id: one.nseq for one in batch}
        found = self._parts.store.records(ns_id, list(looked_at))
        # What was changed since may no longer be due.
        records = [record for record in found if record.nseq == looked_at[record.id]]
        if not records:
            return None, []
        file = self._parts.archive.write(ns_id, records)
        return file, [self._cold_move(record, file) for record in records]

    def _cold_move(self, record: ArchiveRecord, file: ArchiveFile) -> Move:
        text = record.content
        summary = self._parts.summarise(text)
        if not summary.strip() or len(summary) >= len(text):
            # Nothing is gained by a summary that is no shorter.
            summary = text
        return Move(
            memory_id=record.id,
            tier=Tier.COLD,
            nseq=record.nseq,
            summary=summary,
            tokens=() if summary == text else _tokens_of(summary, record),
            archive=file.places[record.id],
        )


def _tokens_of(summary: str, record: ArchiveRecord) -> tuple[ChunkWords, ...]:
    """All words at the first chunk: the others keep their vectors only."""
    tokens = tokenise(summary)
    words, bigrams = " ".join(tokens.words), " ".join(tokens.bigrams)
    return tuple(
        ChunkWords(
            ordinal=chunk.ordinal,
            words="" if number else words,
            bigrams="" if number else bigrams,
        )
        for number, chunk in enumerate(record.chunks)
    )


def _is_moved(result: WriteResult) -> bool:
    return result.status is Status.UPDATED


def _batches(due: Sequence[DueMove]) -> Iterator[Sequence[DueMove]]:
    """The moves of one namespace to one tier, as many as go into one transaction."""
    # Up before down: what is wanted comes first.
    order = sorted(due, key=lambda one: (_ORDER[one.tier], one.ns_id))
    for _, group in groupby(order, key=attrgetter("tier", "ns_id")):
        batch: list[DueMove] = []
        weight = 0
        for one in group:
            if batch and (len(batch) >= BATCH or weight + one.weight > _BATCH_BYTES):
                yield batch
                batch, weight = [], 0
            batch.append(one)
            weight += one.weight
        yield batch


_ORDER: Final = {Tier.HOT: 0, Tier.WARM: 1, Tier.COLD: 2}
