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
from memory_tool.adapters.elasticsearch_generations import (
    Generation,
    Generations,
    count_chunks,
)
from memory_tool.adapters.elasticsearch_layout import (
    Document,
    Layout,
    definition,
    documents,
    fingerprint,
)
from memory_tool.errors import Corrupt, ThreefoldError, Unavailable
from memory_tool.log import logger
from memory_tool.log_ports import ChangeFigures, ChangeLog, IndexTarget
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

FORGET_SECONDS: Final = 3_600.0
KEPT_HOURS: Final = 24.0
"""How long the generation before stays for a way back: deleted memories have to be gone from every
file within two days."""

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

    Searches read the generation that the pointer names. A reset leaves that one alone: the next
    batch begins another, which becomes the one to read once it has caught up.
    """

    def __init__(
        self,
        generations: Generations,
        *,
        name: str,
        layout: Layout,
        log: ChangeLog,
        figures: ChangeFigures,
        patience: Patience | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            generations: The family of indices to write.
            name: See :attr:`name`.
            layout: What the index holds.
            log: Tells which generation is read, and how far the truth is.
            figures: Tell what a new generation has to hold.
            patience: When pending changes are due.
        """
        self._connection = generations.connection
        self._generations = generations
        self._name = name
        self._layout = layout
        self._log = log
        self._figures = figures
        self._patience = patience or PATIENCE
        self._applying = threading.Lock()
        self._standing: _Standing | None = None
        self._anew = False
        self._looked_at = self._forgot_at = time.monotonic()

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["vector", "keyword"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return self._layout.kind

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        return self._patience

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        with self._applying:
            if self._anew:
                return _NOTHING
            pointer = self._log.pointer(self._name)
            generation = self._writable(pointer)
            if generation is None:
                return _NOTHING
            control = self._control(generation)
            # Whoever built it may have died before the switch, with nothing left to apply.
            self._publish_if_caught_up(generation, control, pointer=pointer)
            self._forget_older(pointer)
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
            self._publish_if_caught_up(
                standing.generation,
                replace(standing.control, clocks={**standing.control.clocks, **batch.clocks}),
                pointer=self._log.pointer(self._name),
            )
        log.note_progress(self._name, batch.clocks)

    # ── Where it stands ──

    def _read(self, pointer: Pointer | None) -> Generation | None:
        """The generation that searches read."""
        return self._generations.named(pointer.locator) if pointer else None

    def _writable(self, pointer: Pointer | None) -> Generation | None:
        """The generation that a batch goes to: one being built, else the one that is read."""
        read = self._read(pointer)
        if self._standing is not None and (
            read is None or self._standing.generation.number >= read.number
        ):
            return self._standing.generation
        building = self._being_built(above=read.number if read else 0)
        return building or read

    def _being_built(self, *, above: int) -> Generation | None:
        """The newest generation that this store's history can go on with."""
        newer = [there for there in self._generations.all() if there.number > above]
        for generation in reversed(newer):
            try:
                control = self._control(generation)
            except Corrupt:
                continue
            mark = control.stamp.mark
            if mark is not None and self._log.knows(self._name, mark):
                return generation
        return None

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
        if self._layout.kind == "keyword":
            # An index of vectors also depends on their space, which comes with a batch.
            self._check_definition(control.stamp, definition(self._layout, None))
        self._generations.adjust(generation)
        self._standing = _Standing(generation=generation, control=control)
        return control

    def _is_time_to_look(self) -> bool:
        """Whether an index that nobody writes is to be looked at all the same."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        return True

    def _forget_older(self, pointer: Pointer | None) -> None:
        """What was deleted since must not stay in an index that nobody reads."""
        read = self._read(pointer)
        if read is not None and time.monotonic() - self._forgot_at > FORGET_SECONDS:
            self._forgot_at = time.monotonic()
            self._generations.remove_older(read, hours=KEPT_HOURS)

    @contextlib.contextmanager
    def _minding_others(self) -> Iterator[None]:
        """Whoever built a newer index took away the alias of this one: that is no damage."""
        standing = self._standing
        try:
            yield
        except Corrupt as error:
            read = self._read(self._log.pointer(self._name))
            if standing is None or read is None or read.number <= standing.generation.number:
                raise
            message = "another process built a newer index"
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
        wanted = definition(self._layout, batch.space)
        pointer = self._log.pointer(self._name)
        generation = None if self._anew else self._writable(pointer)
        if generation is not None:
            control = self._control(generation)
            # A batch may come twice: then the index stands on its mark already.
            if batch.base_mark is not None or control.stamp.mark == batch.mark:
                self._check_descent(control.stamp, batch, wanted=wanted)
                return generation, control
        elif batch.base_mark is not None:
            message = "the index that the batch builds upon is gone"
            raise ForeignHistory(message)
        return self._made(batch, wanted, above=pointer.generation if pointer else 0)

    def _made(self, batch: ChangeBatch, wanted: Body, *, above: int) -> tuple[Generation, Control]:
        """A new generation, with a stamp that names no batch yet."""
        generation = self._generations.create(wanted, above=above)
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
            self._generations.remove([generation])
            raise

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
            yield from documents(row, self._layout, space=batch.space)

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
        self._log.bury(self._name, self._layout.kind, letters=letters, delivered=delivered)

    def _refresh(self, generation: Generation) -> None:
        """Show what was written, on every copy: only then may the clocks say that it is there."""
        with translated():
            answer = self._connection.patient().indices.refresh(index=generation.index)
        if answer["_shards"]["failed"]:
            message = "Elasticsearch could not show what was written on all copies"
            raise Unavailable(message, store=STORE)

    # ── Which generation is read ──

    def _publish_if_caught_up(
        self, generation: Generation, control: Control, *, pointer: Pointer | None
    ) -> None:
        if pointer is not None and pointer.locator == generation.index:
            return
        mark = control.stamp.mark
        if mark is None or self._log.pending(control.clocks) > self._patience.rows:
            return
        self._verify(generation, control)
        switched = self._log.publish(
            Pointer(
                target=self._name,
                generation=generation.number,
                locator=generation.index,
                mark=mark,
            ),
            base_mark=pointer.mark if pointer else NO_POINTER,
        )
        if not switched:
            message = f"somebody else published {self._name} meanwhile"
            raise Unavailable(message, store=STORE)
        logger().info("index_switched", target=self._name, index=generation.index)
        self._retire(kept=generation, before=pointer)

    def _verify(self, generation: Generation, control: Control) -> None:
        """See that the index holds as many chunks as the truth has.

        Raises:
            Corrupt: It does not: it may not be read, and is built again.
        """
        found = count_chunks(self._connection, generation.index)
        counted = self._figures.count_chunks(self._name, self._layout.kind, clocks=control.clocks)
        if not counted.least <= found <= counted.most:
            self._anew = True
            self._generations.remove([generation])
            message = (
                f"the new index {generation.index} holds {found:,} chunks,"
                f" not {counted.least:,} to {counted.most:,}"
            )
            raise Corrupt(message)

    def _retire(self, *, kept: Generation, before: Pointer | None) -> None:
        """Nobody writes to the others any more; only the one read before stays, for a while."""
        for old in self._generations.all():
            if old.number >= kept.number:
                continue
            self._generations.end_writing(old)
            if before is None or old.index != before.locator:
                self._generations.remove([old])
