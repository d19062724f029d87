"""An Elasticsearch index as the applier writes it: versioned documents under an own write alias."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from memory_tool.adapters.elasticsearch_bulk import write_documents
from memory_tool.adapters.elasticsearch_connection import (
    STORE,
    Body,
    translated,
)
from memory_tool.adapters.elasticsearch_control import (
    BUNDLE,
    Control,
    Stamp,
    check_lineage,
    lineage_of,
    read_control,
    read_stamp,
    stamp_place,
    write_clocks,
    write_stamp,
)
from memory_tool.adapters.elasticsearch_generations import Generation, Generations
from memory_tool.adapters.elasticsearch_layout import (
    Document,
    Layout,
    definition,
    documents,
    fingerprint,
)
from memory_tool.errors import Corrupt, ThreefoldError, Unavailable
from memory_tool.log import logger
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.port_values import (
    NO_POINTER,
    ChangeBatch,
    DeadLetter,
    ForeignHistory,
    Patience,
    Pointer,
    TargetBase,
)

LOOK_SECONDS: Final = 5.0
"""How long the lineage of an index that nobody writes is believed. A restored snapshot may claim
clocks whose documents it lacks, and searches don't look at lineages."""

PATIENCE: Final = Patience(rows=1_000, seconds=30.0)
"""A fifth of what a search may fetch itself, and the refresh interval of the mission."""

_NOTHING: Final = TargetBase(mark=None, clocks={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The generation that is written, as it was read or written last."""

    generation: Generation
    control: Control


class ElasticsearchTarget(IndexTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`. Any number of processes may try; one goes on.

    It brings forward the generation that searches read, which the pointer names. Where there is
    none, or after a reset, the next batch makes one.
    """

    def __init__(
        self,
        generations: Generations,
        *,
        name: str,
        layout: Layout,
        log: ChangeLog,
        patience: Patience | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            generations: The family of indices to write.
            name: See :attr:`name`.
            layout: What the index holds.
            log: Tells which generation is read, and how far the truth is.
            patience: When pending changes are due.
        """
        self.generations = generations
        self.layout = layout
        self._connection = generations.connection
        self._name = name
        self._log = log
        self._patience = patience or PATIENCE
        self._applying = threading.Lock()
        self._standing: _Standing | None = None
        self._anew = False
        self._looked_at = time.monotonic()

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return self.layout.kind

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        return self._patience

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        with self._applying:
            if self._anew:
                return _NOTHING
            generation = self._written()
            if generation is None:
                return _NOTHING
            control = self._control(generation)
            return TargetBase(mark=control.stamp.mark, clocks=control.clocks)

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        with self._applying:
            self._anew = True
            self._standing = None

    def close(self) -> None:
        """Nothing is held between two batches."""

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.apply`. Searches may see parts of a batch.

        Raises:
            ForeignHistory: The batch builds upon another base, store or embedding space.
            Corrupt: The index is gone.
            InvalidEmbedding: A vector of the batch can't be stored.
            Unavailable: The server takes not all of it, or another process writes.
        """
        with self._applying, self._minding_others():
            standing, self._standing = self._begun(batch), None
            letters = write_documents(
                self._connection,
                standing.generation.alias,
                documents=self._documents(batch),
            )
            self._bury(letters, above=standing.control.clocks, upto=batch.clocks)
            self._refresh(standing.generation)
            write_clocks(
                self._connection,
                standing.generation.alias,
                control=standing.control,
                clocks=batch.clocks,
            )
            self._applied(standing.generation, mark=batch.mark)
        log.note_progress(self._name, batch.clocks)

    # ── Where it stands ──

    def _written(self) -> Generation | None:
        """The generation that a batch goes to: the one that searches read."""
        pointer = self._log.pointer(self._name)
        return self.generations.named(pointer.locator) if pointer else None

    def _control(self, generation: Generation) -> Control:
        """Stamp and clocks. While nobody else wrote, the clocks read last still hold.

        Raises:
            Corrupt: It can't be gone on with.
        """
        known = self._standing
        if known is not None and known.generation == generation:
            now = read_stamp(self._connection, generation.index)
            if stamp_place(now) == stamp_place(known.control) and not self._is_time_to_look():
                return known.control
        control = read_control(self._connection, generation.index)
        check_lineage(control.stamp, lineage_of(self._connection, generation.index))
        if self.layout.kind == "keyword":
            # An index of vectors also depends on their space, which comes with a batch.
            self._check_definition(control.stamp, definition(self.layout, None))
        self.generations.adjust(generation)
        self._standing = _Standing(generation=generation, control=control)
        return control

    def _is_time_to_look(self) -> bool:
        """Whether an index that nobody writes is to be looked at all the same."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        return True

    @contextlib.contextmanager
    def _minding_others(self) -> Iterator[None]:
        """Whoever switched to another index took away the alias of this one: that is no damage."""
        standing = self._standing
        try:
            yield
        except Corrupt as error:
            now = self._written()
            # One that was only just made may be the loser of two that began at once.
            if now is None or (standing is not None and now == standing.generation):
                raise
            message = "another process switched to another index"
            raise Unavailable(message, store=STORE) from error

    # ── One batch ──

    def _begun(self, batch: ChangeBatch) -> _Standing:
        """The generation with the mark of this batch in its stamp."""
        generation, control = self._found_or_made(batch)
        highest = max((ns_id // BUNDLE + 1 for ns_id in batch.clocks), default=0)
        stamp = replace(control.stamp, mark=batch.mark, bundles=max(control.stamp.bundles, highest))
        write_stamp(self._connection, generation.alias, stamp=stamp, place=stamp_place(control))
        # From here on it is found again by its mark: whatever fails now, nothing starts anew.
        self._anew = False
        return _Standing(generation=generation, control=replace(control, stamp=stamp))

    def _found_or_made(self, batch: ChangeBatch) -> tuple[Generation, Control]:
        wanted = definition(self.layout, batch.space)
        generation = None if self._anew else self._written()
        if generation is not None:
            control = self._control(generation)
            # A batch may come twice: then the index stands on its mark already.
            if batch.base_mark is not None or control.stamp.mark == batch.mark:
                self._check_descent(control.stamp, batch, wanted=wanted)
                return generation, control
        elif batch.base_mark is not None:
            message = "the index that the batch builds upon is gone"
            raise ForeignHistory(message)
        return self._made(batch, wanted)

    def _made(self, batch: ChangeBatch, wanted: Body) -> tuple[Generation, Control]:
        """A new generation, with a stamp that names no batch yet."""
        generation = self.generations.create(wanted, above=self.number_read())
        logger().info("index_created", target=self._name, index=generation.index)
        stamp = Stamp(
            mark=None,
            store=batch.store,
            fingerprint=fingerprint(wanted),
            lineage=lineage_of(self._connection, generation.index),
        )
        try:
            write_stamp(self._connection, generation.alias, stamp=stamp, place=None)
            return generation, read_stamp(self._connection, generation.index)
        except ThreefoldError:
            # Without a stamp nobody would ever go on with it.
            self.generations.remove([generation])
            raise

    def number_read(self) -> int:
        """The number of the generation that searches read."""
        pointer = self._log.pointer(self._name)
        return pointer.generation if pointer else 0

    def _check_descent(self, stamp: Stamp, batch: ChangeBatch, *, wanted: Body) -> None:
        # A batch may come twice: then the index stands on its mark already.
        if stamp.mark not in (batch.base_mark, batch.mark):
            message = "the index moved on since the batch was read"
            raise Unavailable(message, store=STORE)
        if stamp.store != batch.store:
            message = "the index belongs to another store"
            raise ForeignHistory(message)
        if stamp.fingerprint != fingerprint(wanted):
            message = "the index was made with other fields or another embedding space"
            raise ForeignHistory(message)

    def _check_definition(self, stamp: Stamp, wanted: Body) -> None:
        if stamp.fingerprint != fingerprint(wanted):
            message = "the index was made with other fields, knobs or another tokeniser"
            raise Corrupt(message)

    def _documents(self, batch: ChangeBatch) -> Iterator[Document]:
        for row in batch.rows:
            yield from documents(row, self.layout, space=batch.space)

    def _bury(
        self,
        letters: Sequence[DeadLetter],
        *,
        above: Mapping[int, int],
        upto: Mapping[int, int],
    ) -> None:
        if letters:
            reasons = sorted({letter.reason for letter in letters})
            logger().warning("rows_refused", target=self._name, rows=len(letters), reasons=reasons)
        delivered = {ns_id: (above.get(ns_id, 0), clock) for ns_id, clock in upto.items()}
        self._log.bury(self._name, self.layout.kind, letters=letters, delivered=delivered)

    def _refresh(self, generation: Generation) -> None:
        """Show what was written, on every copy: only then may the clocks say that it is there."""
        with translated():
            answer = self._connection.patient().indices.refresh(index=generation.index)
        if answer["_shards"]["failed"]:
            message = "Elasticsearch could not show what was written on all copies"
            raise Unavailable(message, store=STORE)

    def _applied(self, generation: Generation, *, mark: str) -> None:
        """What was made from nothing is read from now on."""
        before = self._log.pointer(self._name)
        if before is not None and before.locator == generation.index:
            return
        was_first = before is not None and before.generation >= generation.number
        if was_first or not published(
            self._log, self._name, generation=generation, mark=mark, before=before
        ):
            # Of two that began at once the other was first: what this one made nobody reads.
            self._standing = None
            self.generations.remove([generation])
            message = f"somebody else published {self._name} meanwhile"
            raise Unavailable(message, store=STORE)
        logger().info("index_switched", target=self._name, index=generation.index)
        read_before = before.locator if before else None
        self.generations.retire(kept={generation.index, read_before}, written={generation.index})


def publish(log: ChangeLog, target: str, *, generation: Generation, mark: str) -> Pointer | None:
    """Make a generation the one to read; the pointer that stood before.

    Raises:
        Unavailable: Somebody else published meanwhile.
    """
    before = log.pointer(target)
    if not published(log, target, generation=generation, mark=mark, before=before):
        message = f"somebody else published {target} meanwhile"
        raise Unavailable(message, store=STORE)
    return before


def published(
    log: ChangeLog, target: str, *, generation: Generation, mark: str, before: Pointer | None
) -> bool:
    """Make a generation the one to read if that still is ``before``; whether it was."""
    pointer = Pointer(
        target=target, generation=generation.number, locator=generation.index, mark=mark
    )
    return log.publish(pointer, base_mark=before.mark if before else NO_POINTER)
