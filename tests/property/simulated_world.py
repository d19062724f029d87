"""A world in one thread: several processes, two data folders, one truth, and faults from a seed.

The write path, the read path and the appliers are the real ones; the stores are the in-memory
adapters, which can be set back to any earlier moment.
"""

import contextlib
import random
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_generations import InMemoryGenerations
from memory_tool.adapters.in_memory_inventory import InMemoryInventory
from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordFolder,
    InMemoryKeywordIndex,
    InMemoryKeywordTarget,
)
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore, is_visible
from memory_tool.adapters.in_memory_vector_index import (
    InMemoryVectorFolder,
    InMemoryVectorIndex,
    InMemoryVectorTarget,
)
from memory_tool.arm_calls import ArmCalls
from memory_tool.breaker import Breaker
from memory_tool.errors import Corrupt, NotFound, Unavailable, WriteConflict
from memory_tool.index_jobs.applier import Applier
from memory_tool.index_jobs.numbered import commit_changes
from memory_tool.index_jobs.renewals import Renewals
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.metrics import Metrics
from memory_tool.model import MemoryId, NewMemory, Patch, StoredRow, Tier
from memory_tool.overlay import OverlayMemo
from memory_tool.ports import KeywordIndex, RecordStore
from memory_tool.prepare import PrepareLimits, Preparer
from memory_tool.query import Arm, Query, Strategy, WeightedSum
from memory_tool.read_path import ReadParts, ReadPath, ReadRules
from memory_tool.scope import Namespace, Scope
from memory_tool.write_changes import Move
from memory_tool.write_path import WritePath, WriteRules
from tests.property.simulated_faults import NO_WAIT, Crash, FaultyLog, FaultyStore
from tests.property.simulated_renewal import SimulatedRenewal
from tests.property.simulated_server import (
    NAME,
    SimulatedKeywordIndex,
    SimulatedKeywordTarget,
    SimulatedServer,
)

NAMESPACES: Final = (Namespace(user="a"), Namespace(user="a", agent="x"), Namespace(user="b"))
WORDS: Final = ("蓝色", "预算", "budget", "tea", "tokyo", "invoice")
ALL: Final = 10_000


class Inline(Executor):
    """Runs at once, so that a seed is one history."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":  # noqa: ANN401
        """The call's result, or its error."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asks for the result
            future.set_exception(error)
        return future


@dataclass(slots=True, kw_only=True)
class Folder:
    """The indexes of one host, and the targets that its lease holder feeds."""

    vectors: InMemoryVectorFolder
    keywords: InMemoryKeywordFolder | SimulatedServer
    vector_index: InMemoryVectorIndex
    keyword_index: KeywordIndex
    targets: tuple[IndexTarget, ...]
    distrusted: dict[str, str] = field(default_factory=dict)
    renewed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process: its folder, its two paths, and what it remembers."""

    folder: Folder
    store: RecordStore
    write: WritePath
    read: ReadPath


class World:
    """Everything, driven by one seed."""

    def __init__(self, seed: int, *, server: bool = False) -> None:
        """A fresh truth, two folders, four processes; with ``server`` one keyword index for all."""
        self.rng = random.Random(seed)
        self.server = SimulatedServer(self.rng) if server else None
        self.interrupt: Callable[[Folder], None] = lambda _folder: None
        self._applying: list[Folder] = []
        self.now = datetime(2025, 1, 1, tzinfo=UTC)
        self.truth = InMemoryStore(clock=lambda: self.now)
        self.store = InMemoryRecordStore(self.truth)
        self.log = InMemoryChangeLog(self.truth)
        self.embedder = HashingEmbedder(dimension=16)
        self.folders = [self._folder(name) for name in ("one", "two")]
        self.processes = [self._process(self.folders[number % 2]) for number in range(4)]
        self.acknowledged: dict[MemoryId, str] = {}
        self._serial = 0

    def _folder(self, name: str) -> Folder:
        vectors = InMemoryVectorFolder()
        vector_name = f"vectors:{name}"
        keywords, keyword_index, keyword_target = self._keywords(name)
        return Folder(
            vectors=vectors,
            keywords=keywords,
            vector_index=InMemoryVectorIndex(
                vectors,
                target=vector_name,
                store=self.truth.identity,
                space=self.store.active_space,
            ),
            keyword_index=keyword_index,
            targets=(
                keyword_target,
                InMemoryVectorTarget(
                    vectors, name=vector_name, pointer=lambda: self.log.pointer(vector_name)
                ),
            ),
        )

    def _keywords(
        self, name: str
    ) -> tuple[InMemoryKeywordFolder | SimulatedServer, KeywordIndex, IndexTarget]:
        if self.server is not None:
            target = SimulatedKeywordTarget(self.server, log=self.log, between=self._between)
            return self.server, SimulatedKeywordIndex(self.server), target
        folder = InMemoryKeywordFolder()
        index = InMemoryKeywordIndex(folder, target=f"keywords:{name}")
        return folder, index, InMemoryKeywordTarget(folder, name=f"keywords:{name}")

    def _between(self) -> None:
        """Between two requests to the server the sender may die, or others may be faster."""
        if not self._applying:
            return
        fate = self.rng.random()
        if fate < 0.05:  # one request in twenty
            raise Crash
        if fate < 0.1 and len(self._applying) == 1:  # as many
            (here,) = self._applying
            self.interrupt(here)

    def _process(self, folder: Folder) -> Process:
        store = FaultyStore(self.store, self.rng)
        metrics = Metrics()
        limits = PrepareLimits()
        preparer = Preparer(
            self.embedder,
            space=lambda: self.store.record_space(self.embedder.space),
            limits=limits,
            executor=Inline(),
        )
        parts = ReadParts(
            store=store,
            calls=ArmCalls(
                vector_index=folder.vector_index,
                keyword_index=folder.keyword_index,
                executor=Inline(),
                seconds=5.0,
                breakers={arm: Breaker() for arm in Arm},
                pointer=self.log.pointer,
                distrust=folder.distrusted.__setitem__,
            ),
            embedder=self.embedder,
            memo=OverlayMemo(),
            behind=lambda: None,
        )
        return Process(
            folder=folder,
            store=store,
            write=WritePath(
                store,
                preparer,
                rules=WriteRules(limits=limits, retry=NO_WAIT),
                metrics=metrics,
                committed=lambda: None,
            ),
            read=ReadPath(
                parts,
                rules=ReadRules(retry=NO_WAIT, overlay_rows=self.rng.choice((2, 5000))),
                metrics=metrics,
            ),
        )

    def restart(self, process: Process) -> None:
        """The process dies and another takes its place, remembering nothing."""
        place = self.processes.index(process)
        self.processes[place] = self._process(process.folder)

    def rows(self, *namespaces: Namespace) -> dict[MemoryId, StoredRow]:
        """What may be seen of these namespaces, straight from the truth."""
        return {
            row.memory.id: row
            for space in self.truth.state.namespaces.values()
            if space.namespace in namespaces
            for row in space.rows.values()
            if is_visible(row, self.now)
        }

    def text(self) -> str:
        """A text of a few known words, seldom the same as an earlier one."""
        self._serial += 1
        words = self.rng.sample(WORDS, 2)
        return f"{words[0]} {words[1]} {self.rng.choice((self._serial, 7))}"

    def add(self, process: Process) -> None:
        """One to four memories: plain, keyed, expiring."""
        news = [
            NewMemory(
                content=self.text(),
                key=self.rng.choice((None, None, "k1", "k2")),
                expires_at=self.rng.choice((None, None, self.now + timedelta(hours=2))),
            )
            for _ in range(self.rng.randint(1, 4))
        ]
        try:
            results = process.write.store(self.rng.choice(NAMESPACES), news)
        except Crash:
            # Whether keyed memories were changed is not known to the caller.
            for memory_id, row in self.rows(*NAMESPACES).items():
                if row.memory.key is not None:
                    self.acknowledged.pop(memory_id, None)
            raise
        for new, result in zip(news, results, strict=True):
            if result.id is not None:
                self.acknowledged[result.id] = new.content

    def change(self, process: Process) -> None:
        """Another text or other metadata for a memory that is there."""
        row = self._any_row()
        if row is None:
            return
        text = self.text()
        taken = {other.memory.content for other in self.rows(row.memory.namespace).values()}
        patch = (
            Patch(content=text)
            if text not in taken and self.rng.random() < 0.7  # mostly the text
            else Patch(metadata={"note": self.rng.choice(WORDS)})
        )
        try:
            process.write.revise(row.memory.namespace, row.memory.id, patch=patch)
        except Crash:
            # Whether it was written is not known to the caller, so neither is the text.
            self.acknowledged.pop(row.memory.id, None)
            raise
        if isinstance(patch.content, str):
            self.acknowledged[row.memory.id] = patch.content

    def remove(self, process: Process) -> None:
        """Delete a memory that is there."""
        row = self._any_row()
        if row is not None:
            self.acknowledged.pop(row.memory.id, None)
            process.write.remove(row.memory.namespace, [row.memory.id])

    def move(self, process: Process) -> None:
        """A memory goes to another tier, as a job moves it; what searches find is the same."""
        row = self._any_row()
        if row is not None:
            others = [tier for tier in (Tier.HOT, Tier.WARM) if tier is not row.memory.tier]
            move = Move(memory_id=row.memory.id, tier=self.rng.choice(others), nseq=row.nseq)
            # A job that fails is tried again later, whether it was written or not.
            with contextlib.suppress(Unavailable):
                commit_changes(process.store, row.memory.namespace, changes=[move])

    def _any_row(self) -> StoredRow | None:
        rows = list(self.rows(*NAMESPACES).values())
        return self.rng.choice(rows) if rows else None

    def apply(self, folder: Folder, *, faults: bool = True) -> None:
        """The folder's lease holder brings its targets forward, maybe not to the end."""
        log: ChangeLog = FaultyLog(self.log, self.rng) if faults else self.log
        targets = folder.targets
        if faults:
            targets = tuple(self.rng.sample(targets, self.rng.randint(1, 2)))
            self._applying.append(folder)
        applier = Applier(log, targets, renewals=self._renewals(targets, log=log))
        if folder.renewed:
            folder.renewed = False
            applier.renew(NAME, "asked for")
        for target, reason in folder.distrusted.items():
            applier.distrust(target, reason)
        try:
            applier.run(force=True)
        except Unavailable:
            if self.server is None or not faults:
                raise
        finally:
            if faults:
                self._applying.remove(folder)
        folder.distrusted.clear()

    def _renewals(self, targets: Sequence[IndexTarget], *, log: ChangeLog) -> Renewals:
        """The index on the server is built beside the one that is read, and compared."""
        catalogue = InMemoryGenerations(self.truth)
        found = [
            SimulatedRenewal(target, log=log, catalogue=catalogue)
            for target in targets
            if isinstance(target, SimulatedKeywordTarget)
        ]
        return Renewals(found, catalogue=catalogue, truth=InMemoryInventory(self.truth))

    def go_back(self, folder: Folder) -> None:
        """The index on the server is the one that was read before, if there is one."""
        renewals = self._renewals(folder.targets, log=self.log)
        with contextlib.suppress(NotFound, WriteConflict, Corrupt):
            renewals.go_back(way="daily")

    def search(
        self, process: Process, text: str, *arms: Arm, scope: Namespace
    ) -> dict[MemoryId, str]:
        """Everything that a search finds: text by id."""
        strategy = Strategy(name="sim", arms=arms, fusion=WeightedSum())
        query = Query(text=text, scope=Scope.of(scope), strategy=strategy, limit=ALL, depth=ALL)
        answer = process.read.search(query, lambda hits, _now: hits)
        return {found.memory.id: found.memory.content for found in answer.found}
