"""What a tool is made of, and how its two paths are joined from it."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from memory_tool.arm_calls import ArmCalls
from memory_tool.bm25 import FieldParameters
from memory_tool.breaker import Breaker
from memory_tool.erase_values import Receipt
from memory_tool.exchange_ports import Exchange
from memory_tool.inspection_ports import Inspected, TruthSide
from memory_tool.job_values import Duty, MayGoOn, Outcome
from memory_tool.log_ports import ChangeFigures, VectorGaps
from memory_tool.metrics import Metrics
from memory_tool.model import EmbeddingSpace, Json, MemoryId
from memory_tool.overlay import OverlayMemo
from memory_tool.patient_reader import PatientReader
from memory_tool.port_values import Pointer
from memory_tool.ports import (
    Embedder,
    KeywordIndex,
    RecordReader,
    RecordStore,
    SpaceRegistry,
    VectorIndex,
)
from memory_tool.prepare import PrepareLimits, Preparer
from memory_tool.progress import Watch
from memory_tool.query import Arm
from memory_tool.read_path import ReadParts, ReadPath, ReadRules
from memory_tool.retry import RetryPolicy
from memory_tool.settings import Settings
from memory_tool.space_values import FIRST_SPACE, KnownSpace, SpaceChanged, Step
from memory_tool.tier_ports import TierFigures, UseLog
from memory_tool.write_changes import Decide
from memory_tool.write_path import WritePath, WriteRules


class Background(Protocol):
    """Whoever brings the indexes forward while callers read and write."""

    @property
    def targets(self) -> Mapping[str, Sequence[str]]:
        """The targets, in the groups that one process at a time brings forward."""
        ...

    def start(self) -> None:
        """Begin. Called once, or never by a process that leaves it to others."""
        ...

    def alive(self) -> bool:
        """Whether it was started and goes on."""
        ...

    def wake(self) -> None:
        """There is something to apply."""
        ...

    def distrust(self, target: str, reason: str) -> None:
        """A search found an index that must be rebuilt; whoever applies to it is told."""
        ...

    def also(self, duty: Duty) -> None:
        """Do this too, for the store as a whole."""
        ...

    def mend(self, targets: Sequence[str], reason: str) -> bool:
        """Build these indexes anew now; ``False`` when another process has to, which is told."""
        ...

    def whenever(self, changed: Callable[[], None]) -> None:
        """Call this whenever other embedding spaces are followed than before."""
        ...

    def hurry(self) -> None:
        """A search found the indexes far behind; whoever applies to them is told."""
        ...

    def apply_now(self) -> bool:
        """Apply everything pending; ``False`` when another process does it."""
        ...

    def once(self, may_go_on: MayGoOn) -> Mapping[str, bool]:
        """Apply everything, do what is due: for each group whether it was done here."""
        ...

    def do(self, kind: str, *, again: bool, may_go_on: MayGoOn) -> Mapping[str, Outcome]:
        """Offer a kind of job for every group and do it here, unless another process does."""
        ...

    def watch(self, watch: Watch) -> None:
        """Tell of each step from now on, in the thread that takes it."""
        ...

    def stop(self) -> None:
        """Stop after the batch at hand: others go on. May be called twice."""
        ...

    def close(self) -> None:
        """Stop, but apply a large backlog first. May be called twice."""
        ...


class ChangeOfModel(Protocol):
    """Changes the embedding model of a store in place; what it leaves half done it goes on with."""

    def begin(self, model: str) -> KnownSpace:
        """Name the model to change to. The space that it makes may be active already."""
        ...

    def back(self) -> KnownSpace:
        """Change back to the space before."""
        ...

    def run(self, may_go_on: MayGoOn, said: Callable[[Step], None]) -> bool:
        """Do it, unless another process does; whether it was done here. ``said`` hears how far."""
        ...

    def forget(self, may_go_on: MayGoOn) -> int:
        """Forget every space but the active one; how many there were."""
        ...


class Erasing(Protocol):
    """Whoever erases with proof."""

    def run(
        self,
        targets: Sequence[tuple[int, MemoryId | None]],
        *,
        pieces: Sequence[str] = (),
        say: Callable[[str], None] = ...,
    ) -> Receipt:
        """Erase memories, or whole namespaces where no memory is named, from every place."""
        ...

    def unfinished(self) -> bool:
        """Whether an order waits for a place."""
        ...


class MoveDue(Protocol):
    """Moves memories that are not in the tier of their age."""

    def __call__(self, may_go_on: MayGoOn, on_batch: Callable[[int, int], None] = ...) -> int:
        """How many were moved; ``on_batch`` hears so many were, of how many that are known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """What becomes of memories with time.

    Attributes:
        figures: How many memories are in each tier, and what the archive weighs.
        move: Moves what is due, and says how many memories that were.
        use: Where uses are counted.
        archives: Whether memories become cold: not where no archive is named that all hosts reach.
    """

    figures: Callable[[], TierFigures]
    move: MoveDue
    use: UseLog
    archives: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Everything that a tool works with, made by a composition root or by a test.

    Attributes:
        space: The number of the space that embedder and vector index are of.
        recorded: That space itself; ``None`` until it is recorded. By default the active one.
        active: The number of the space that is active by now; ``None`` until one is recorded.
        for_active: These stores with embedder and vector index of that space; ``None`` where the
            space of a store never changes.
        prepare: Makes ready what the space that is being built will need here.
        side: The content of a side structure for a space, by name and number.
        change_of_model: Changes the embedding model in place, where the record store can.
        pointer: Which generation of a target is to be read now.
        figures: How far the indexes are behind, for health.
        gaps: Which memories wait for their vectors.
        exchange: Reads memories out whole, for export; ``None`` where the store can't.
        background: Applies to the indexes; ``None`` when somebody else does.
        eraser: Erases with proof; ``None`` where a record store was given that can't.
        ageing: Tiers and use; ``None`` where the store knows neither.
        truth_side: What a check needs of the truth, where that can be had.
        inspected: The indexes that a check can look at closely.
        where: What is in use and where the data lies, for people: name to description.
        closing: Called last when the tool is closed, in this order.
    """

    records: RecordStore
    reader: RecordReader
    spaces: SpaceRegistry
    vector_index: VectorIndex
    keyword_index: KeywordIndex
    embedder: Embedder
    space: int = FIRST_SPACE
    recorded: Callable[[], EmbeddingSpace | None] | None = None
    active: Callable[[], int | None] = lambda: None
    for_active: "Callable[[Stores], Stores] | None" = None
    prepare: Callable[[], None] = lambda: None
    side: Callable[[str, int], Json] = lambda _name, _space: None
    change_of_model: ChangeOfModel | None = None
    pointer: Callable[[str], Pointer | None] = lambda _target: None
    figures: ChangeFigures | None = None
    gaps: VectorGaps | None = None
    exchange: Exchange | None = None
    background: Background | None = None
    eraser: Erasing | None = None
    ageing: Ageing | None = None
    truth_side: TruthSide | None = None
    inspected: tuple[Inspected, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    closing: tuple[Callable[[], None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What both paths of one tool use; ``arms`` runs calls of indexes only."""

    settings: Settings
    executor: Executor
    arms: Executor
    metrics: Metrics
    breakers: Mapping[Arm, Breaker]

    @property
    def retry(self) -> RetryPolicy:
        """How patient both are."""
        settings = self.settings
        return RetryPolicy(attempts=settings.retry_attempts, seconds=settings.retry_seconds)


def write_path_of(
    stores: Stores,
    shared: Shared,
    *,
    embedder: Embedder,
    space: Callable[[], EmbeddingSpace],
    decide: Decide,
) -> WritePath:
    """The way down; ``space`` is the recorded one, ``decide`` the rule for duplicates."""

    def confirm() -> None:
        if stores.active() not in (None, stores.space):
            raise SpaceChanged

    settings, background = shared.settings, stores.background
    limits = PrepareLimits(
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap,
        content_bytes=settings.content_bytes,
        metadata_bytes=settings.metadata_bytes,
    )
    return WritePath(
        stores.records,
        Preparer(embedder, space=space, limits=limits, executor=shared.executor, confirm=confirm),
        rules=WriteRules(
            limits=limits,
            retry=shared.retry,
            group_items=settings.group_items,
            decide=decide,
            space=stores.space,
        ),
        metrics=shared.metrics,
        committed=background.wake if background else lambda: None,
    )


def reader_of(stores: Stores, shared: Shared) -> RecordReader:
    """Reading by id and page by page."""
    return PatientReader(stores.reader, shared.retry)


def read_path_of(stores: Stores, shared: Shared, *, embedder: Embedder) -> ReadPath:
    """The way up."""
    settings, background = shared.settings, stores.background
    return ReadPath(
        ReadParts(
            store=stores.records,
            calls=ArmCalls(
                vector_index=stores.vector_index,
                keyword_index=stores.keyword_index,
                executor=shared.arms,
                seconds=settings.arm_seconds,
                breakers=shared.breakers,
                pointer=stores.pointer,
                distrust=background.distrust if background else lambda _target, _reason: None,
            ),
            embedder=embedder,
            memo=OverlayMemo(),
            space=stores.space,
            behind=background.hurry if background else lambda: None,
        ),
        rules=ReadRules(
            retry=shared.retry,
            bm25=FieldParameters.parsed(settings.elasticsearch_bm25),
            overlay_rows=settings.overlay_rows,
            within_ids=settings.within_ids,
        ),
        metrics=shared.metrics,
    )
