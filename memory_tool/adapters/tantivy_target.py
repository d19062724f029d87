"""The keyword index in a folder, as the applier writes it."""

import contextlib
import threading
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

from tantivy import IndexWriter, Searcher

from memory_tool.adapters.tantivy_control import (
    Stamp,
    bundle_of,
    read_all_clocks,
    read_clocks,
    read_stamp,
    write_clocks,
    write_stamp,
)
from memory_tool.adapters.tantivy_folder import (
    CURRENT,
    STORE,
    Opened,
    TantivyFolder,
    reading,
    writing,
)
from memory_tool.adapters.tantivy_schema import SCHEMA_VERSION, chunk_documents, memory_term
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.log_ports import ChangeLog
from memory_tool.port_values import ChangeBatch, ChangeRow, Patience, TargetBase

WRITER_BYTES: Final = 50_000_000
"""Memory in which the writer collects documents. A batch of 50 needs far less; a rebuild makes a
segment of about 100,000 chunks from it. The driver refuses less than 15 MB."""

PATIENCE: Final = Patience(rows=50, seconds=0.2)
"""A commit costs 6 to 60 ms whatever it holds: 50 rows a commit make 5,800 rows a second, single
ones 170."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldWriter:
    """A writer, whose lock is freed when it is forgotten, and the sub-folder that it writes."""

    folder: Path
    writer: IndexWriter


class TantivyTarget:
    """An :class:`~memory_tool.log_ports.IndexTarget` that keeps a Tantivy folder.

    One process writes a folder at a time: the first ``apply`` takes the driver's lock, ``close``,
    ``reset`` or the end of the process frees it.
    """

    def __init__(self, folder: Path, *, name: str, tokeniser: int, names: str = CURRENT) -> None:
        """Name the folder; nothing is touched yet.

        Args:
            folder: The folder of this index alone.
            name: The name under which the truth keeps the target's marks and progress.
            tokeniser: Version of the tokeniser that made the tokens of the rows.
            names: The file that names the index to write: the one that is read, or that is built.
        """
        self.path = folder
        self.tokeniser = tokeniser
        self._folder = TantivyFolder(folder, names=names)
        self._name = name
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._held: _HeldWriter | None = None

    @property
    def name(self) -> str:
        """The name under which the truth keeps its marks and progress."""
        return self._name

    @property
    def kind(self) -> Literal["keyword"]:
        """``keyword``."""
        return "keyword"

    @property
    def patience(self) -> Patience:
        """50 rows or 0.2 seconds."""
        return PATIENCE

    def base(self) -> TargetBase:
        """Where the last commit stands.

        Raises:
            Corrupt: The files are damaged, or made by another version.
            Unavailable: The files can't be read.
        """
        with self._lock:
            opened = self._opened = self._folder.follow(self._opened)
            stamp = read_stamp(opened.searcher, self.tokeniser) if opened else None
            if opened is None or stamp is None:
                return TargetBase(mark=None, clocks={})
            with reading("the clocks can't be read"):
                return TargetBase(mark=stamp.mark, clocks=read_all_clocks(opened.searcher, stamp))

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """Write the rows, the clocks and the mark of ``batch`` in one commit.

        Raises:
            Corrupt: The files are damaged, made by another version or of another store.
            Unavailable: Another process writes, the files can't be written, or the index is no
                longer the base of the batch.
        """
        with self._lock:
            try:
                self._commit(batch)
            except BaseException:
                # What was added before the failure must not come along with the next commit.
                self._end_writer()
                raise
        log.note_progress(self._name, batch.clocks)

    def reset(self) -> None:
        """Replace the index by an empty one; searches keep what they have open.

        Raises:
            Unavailable: The files can't be written.
        """
        with self._lock:
            self._held = None
            self._folder.start_afresh()

    def finish(self) -> None:
        """Wait until small segments are joined, and give the folder to others."""
        with self._lock:
            self._end_writer()
            self._opened = None

    def close(self) -> None:
        """Give the folder to other processes. May be called twice."""
        with self._lock:
            self._held = None
            self._opened = None

    def _end_writer(self) -> None:
        """Free the lock though a kept error may hold on to the writer through its frames."""
        held, self._held = self._held, None
        if held is not None:
            with contextlib.suppress(ValueError, OSError):
                held.writer.wait_merging_threads()

    def _commit(self, batch: ChangeBatch) -> None:
        opened, writer = self._start_writing()
        stamp = read_stamp(opened.searcher, self.tokeniser)
        _check_base(stamp, batch)
        ns_ids = set(batch.clocks)
        for row in batch.rows:
            ns_ids.add(row.ns_id)
            with writing():
                _replace(writer, row, known=stamp is not None)
        with writing():
            added = _move_clocks(writer, opened.searcher, ns_ids=ns_ids, clocks=batch.clocks)
            write_stamp(
                writer,
                Stamp(
                    mark=batch.mark,
                    store=batch.store,
                    tokeniser=self.tokeniser,
                    schema=SCHEMA_VERSION,
                    namespaces=added + (stamp.namespaces if stamp else 0),
                ),
            )
            writer.commit()

    def _start_writing(self) -> tuple[Opened, IndexWriter]:
        opened = self._folder.follow_or_start(self._opened)
        if self._held is None or self._held.folder != opened.commit.folder:
            self._held = None
            with writing():
                writer = opened.index.writer(WRITER_BYTES, num_threads=1)
            self._held = _HeldWriter(folder=opened.commit.folder, writer=writer)
            # Another process may have committed before the lock was ours.
            opened = self._folder.follow_or_start(opened)
        self._opened = opened
        return opened, self._held.writer


def _check_base(stamp: Stamp | None, batch: ChangeBatch) -> None:
    if stamp and stamp.store != batch.store:
        message = f"the index belongs to the store {stamp.store}, not to {batch.store}"
        raise Corrupt(message)
    mark = stamp.mark if stamp else None
    # A batch may come twice: then the index stands on its mark already.
    if mark not in (batch.base_mark, batch.mark):
        message = "the index moved on since the batch was read"
        raise Unavailable(message, store=STORE)


def _replace(writer: IndexWriter, row: ChangeRow, *, known: bool) -> None:
    # An index without a stamp is empty. Deletes of what is not there cost a fifth of a rebuild.
    if known:
        writer.delete_documents_by_term("memory", memory_term(row.ns_id, row.memory_id))
    for document in chunk_documents(row):
        writer.add_document(document)


def _move_clocks(
    writer: IndexWriter,
    searcher: Searcher,
    *,
    ns_ids: AbstractSet[int],
    clocks: Mapping[int, int],
) -> int:
    """Write the bundles of these namespaces and return how many of them are new."""
    added = 0
    for bundle, members in groupby(sorted(ns_ids), key=bundle_of):
        before = read_clocks(searcher, bundle)
        # A namespace of a row without a clock is noted all the same: filters rely on it.
        after = before | {ns_id: clocks.get(ns_id, before.get(ns_id, 0)) for ns_id in members}
        write_clocks(writer, bundle, clocks=after)
        added += len(after) - len(before)
    return added
