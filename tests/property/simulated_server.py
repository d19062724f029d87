"""The protocol of an index on a server, step by step, without a server.

Unlike a folder's, its batches are not atomic: stamp, documents, refresh and clocks are requests of
their own. A writer may die between any two, its last requests may arrive late, and what a search
sees is older than what was written. Elasticsearch itself is tested elsewhere; this is about the
order of requests, which ``memory_tool.adapters.elasticsearch_control`` explains.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordView,
    KeywordState,
)
from memory_tool.empty_views import EmptyKeywordView
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import MemoryId
from memory_tool.port_values import (
    NO_POINTER,
    ChangeBatch,
    ChangeRow,
    ChunkTokens,
    ForeignHistory,
    Patience,
    Pointer,
    TargetBase,
)
from memory_tool.ports import KeywordIndex, KeywordView

NAME: Final = "server:keyword"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One index as it was written: nothing in it is ever changed.

    Attributes:
        mark: Of the batch that was begun last.
        writes: How often the stamp was written: what a compare-and-set compares.
        documents: Version and chunks of each row; no chunks where it has to be gone.
        lineage: Changes when the index is restored.
        open: Whether its write alias is there.
    """

    mark: str | None = None
    writes: int = 0
    clocks: Mapping[int, int] = field(default_factory=dict)
    documents: Mapping[tuple[int, MemoryId], tuple[int, tuple[ChunkTokens, ...]]] = field(
        default_factory=dict
    )
    lineage: int = 0
    open: bool = True


@dataclass(slots=True)
class Index:
    """One index: what was written, what searches see of it, and the lineage it was made with."""

    written: Written = field(default_factory=Written)
    seen: Written = field(default_factory=Written)
    made: int = 0


class SimulatedServer:
    """Indexes by name, requests that are still under way, and snapshots.

    Stamp and clocks are in one shard, documents in another: each is shown, and saved, on its own.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.indexes: dict[str, Index] = {}
        self.late: list[Callable[[], None]] = []
        self.meanwhile: Callable[[], None] = self.arrive
        self._unfinished: list[dict[str, Written]] = []
        self._lineages = 0

    def dump(self) -> Mapping[str, Written]:
        """A snapshot, in the middle of a batch or not: its documents are saved now."""
        snapshot = {name: index.written for name, index in self.indexes.items()}
        self._unfinished.append(snapshot)
        return snapshot

    def restore(self, dump: Mapping[str, Written]) -> None:
        """The indexes of a snapshot, and no others; each under a new lineage."""
        self._lineages += 1
        made = {name: index.made for name, index in self.indexes.items()}
        self.indexes = {}
        for name, written in dump.items():
            restored = replace(written, lineage=self._lineages)
            self.indexes[name] = Index(
                written=restored, seen=restored, made=made.get(name, written.lineage)
            )

    def arrive(self) -> None:
        """Some of the requests under way arrive, in any order; searches see some of the news."""
        self.rng.shuffle(self.late)
        while self.late and self.rng.random() < 0.5:  # one after the other, maybe
            self.late.pop()()
        for index in self.indexes.values():
            if self.rng.random() < 0.3:  # now and then
                self.show(index, documents=self.rng.random() < 0.5)  # either shard

    def finish_snapshots(self) -> None:
        """The shard of stamps and clocks is saved last, whatever was written meanwhile."""
        for snapshot in self._unfinished:
            for name, saved in snapshot.items():
                index = self.indexes.get(name)
                if index is not None and index.written.lineage == saved.lineage:
                    snapshot[name] = replace(index.written, documents=saved.documents)
        self._unfinished.clear()

    def show(self, index: Index, *, documents: bool) -> None:
        """Searches see what was written to one of the shards."""
        if documents:
            index.seen = replace(index.seen, documents=index.written.documents)
        else:
            index.seen = replace(index.written, documents=index.seen.documents)

    def write(self, name: str, row: ChangeRow) -> None:
        """One versioned document through the write alias; what is known or older changes nothing.

        Raises:
            Corrupt: The alias is gone.
        """
        index = self.indexes.get(name)
        if index is None or not index.written.open:
            message = "the alias is gone"
            raise Corrupt(message)
        key = (row.ns_id, row.memory_id)
        if index.written.documents.get(key, (0, ()))[0] >= row.version:
            return
        documents = {**index.written.documents, key: (row.version, tuple(_tokens(row)))}
        index.written = replace(index.written, documents=documents)


def _tokens(row: ChangeRow) -> list[ChunkTokens]:
    return [
        ChunkTokens(
            ns_id=row.ns_id,
            memory_id=row.memory_id,
            ordinal=chunk.ordinal,
            keyword_nseq=row.version,
            words=chunk.words,
            bigrams=chunk.bigrams,
            extra=row.extra,
        )
        for chunk in (row.chunks if row.live else ())
    ]


class SimulatedKeywordIndex(KeywordIndex):
    """See :class:`memory_tool.ports.KeywordIndex`."""

    def __init__(self, server: SimulatedServer) -> None:
        self._server = server

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.KeywordIndex.target`."""
        return NAME

    def view(self, pointer: Pointer | None = None) -> KeywordView:
        """See :meth:`memory_tool.ports.KeywordIndex.view`."""
        if pointer is None:
            return EmptyKeywordView()
        index = self._server.indexes.get(pointer.locator)
        if index is None:
            message = "the index is missing"
            raise Corrupt(message)
        # The clocks first, then the hits, the stamp last: each shard shows news in its own time.
        clocks = index.seen.clocks
        self._server.meanwhile()
        chunks = {key: chunks for key, (_, chunks) in index.seen.documents.items() if chunks}
        self._server.meanwhile()
        return InMemoryKeywordView(KeywordState(mark=index.seen.mark, clocks=clocks, chunks=chunks))

    def close(self) -> None:
        """Nothing to let go of."""


class SimulatedKeywordTarget(IndexTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`; ``between`` comes between two requests."""

    def __init__(
        self,
        server: SimulatedServer,
        *,
        log: ChangeLog,
        between: Callable[[], None],
        name: str = NAME,
    ) -> None:
        self.server = server
        self.between = between
        self._log = log
        self._name = name
        self._anew = False

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["keyword"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return "keyword"

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        return Patience(rows=1, seconds=0.0)

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        index = None if self._anew else self.written()
        if index is None:
            return TargetBase(mark=None, clocks={})
        written = self.checked(index)
        return TargetBase(mark=written.mark, clocks=written.clocks)

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        self._anew = True

    def close(self) -> None:
        """Nothing is held."""

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.apply`."""
        name = self._begun(batch)
        index = self.server.indexes[name]
        writes = index.written.writes
        for row in batch.rows:
            self._send(name, row)
        self.between()
        self.server.show(index, documents=True)
        self.between()
        if self.server.indexes.get(name) is not index or index.written.writes != writes:
            message = "another process writes this index"
            raise Unavailable(message, store=NAME)
        index.written = replace(index.written, clocks={**index.written.clocks, **batch.clocks})
        self._anew = False
        self.between()
        self.server.show(index, documents=False)
        self.applied(name, index.written)
        log.note_progress(self._name, batch.clocks)

    def _send(self, name: str, row: ChangeRow) -> None:
        try:
            self.between()
        except BaseException:
            # The request was on its way when its sender died.
            self.server.late.append(lambda: _quietly(self.server, name, row=row))
            raise
        self.server.write(name, row)

    def _begun(self, batch: ChangeBatch) -> str:
        name = None if self._anew else self.written()
        if batch.base_mark is None or name is None:
            if batch.base_mark is not None:
                message = "the index that the batch builds upon is gone"
                raise ForeignHistory(message)
            name = f"{self._generation() + 1:06d}-{self.server.rng.random()}"
            self.server.indexes[name] = Index()
        index = self.server.indexes[name]
        if not index.written.open:
            message = "the alias is gone"
            raise Corrupt(message)
        if index.written.mark not in (batch.base_mark, batch.mark):
            message = "the index moved on since the batch was read"
            raise Unavailable(message, store=NAME)
        index.written = replace(index.written, mark=batch.mark, writes=index.written.writes + 1)
        self.server.show(index, documents=False)
        return name

    def written(self) -> str | None:
        """The index that a batch goes to: the one that is read."""
        pointer = self._log.pointer(NAME)
        return pointer.locator if pointer else None

    def checked(self, name: str) -> Written:
        """What was written to an index that is the one it was."""
        index = self.server.indexes.get(name)
        if index is None or index.written.lineage != index.made:
            message = "the index is missing or was restored"
            raise Corrupt(message)
        return index.written

    def _generation(self) -> int:
        pointer = self._log.pointer(NAME)
        return max(
            [pointer.generation if pointer else 0, *(int(n[:6]) for n in self.server.indexes)]
        )

    def applied(self, name: str, written: Written) -> None:
        """What was made from nothing is read from now on."""
        pointer = self._log.pointer(NAME)
        if pointer is None or pointer.locator != name:
            publish(self._log, name, written=written)


def publish(log: ChangeLog, name: str, *, written: Written) -> Pointer:
    """Make an index the one that is read.

    Raises:
        Unavailable: Somebody else was faster.
    """
    pointer = log.pointer(NAME)
    mark = written.mark or ""
    new = Pointer(target=NAME, generation=int(name[:6]), locator=name, mark=mark)
    if not log.publish(new, base_mark=pointer.mark if pointer else NO_POINTER):
        message = "somebody else published meanwhile"
        raise Unavailable(message, store=NAME)
    return new


def _quietly(server: SimulatedServer, name: str, *, row: ChangeRow) -> None:
    try:
        server.write(name, row)
    except Corrupt:
        return
