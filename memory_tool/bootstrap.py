"""The composition root of the hands: settings in, tool out. Only it and its parts know adapters."""

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.assembly import Background, Stores
from memory_tool.bootstrap_embedders import Embedders
from memory_tool.bootstrap_erase import eraser_of
from memory_tool.bootstrap_indexes import GivenIndexes, Indexes
from memory_tool.bootstrap_spaces import Made, recorded_space, with_changes
from memory_tool.bootstrap_truth import Truth, given_truth, postgres_truth
from memory_tool.bootstrap_upkeep import ageing_of
from memory_tool.errors import SettingsError, Unavailable
from memory_tool.index_jobs.backfill import Backfill
from memory_tool.index_jobs.check_store import daily_checks
from memory_tool.index_jobs.erase import Erase
from memory_tool.job_values import STORE, Duty
from memory_tool.log import logger, stay_quiet_by_default
from memory_tool.log_ports import IndexTarget
from memory_tool.model import EmbeddingSpace
from memory_tool.ports import Embedder, KeywordIndex, RecordStore, VectorIndex
from memory_tool.settings import Settings
from memory_tool.space_ports import SideStructure
from memory_tool.space_values import FIRST_SPACE
from memory_tool.text.tokenise import TOKENISER_VERSION
from memory_tool.tool import MemoryTool
from memory_tool.validation import check_space
from memory_tool.write_changes import Decide
from memory_tool.write_plan import decide_duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Parts that the caller brings instead of those that the settings name.

    A record store also has the ports RecordReader and SpaceRegistry; if it has ChangeLog too, the
    indexes follow it. An index that is also an :class:`~memory_tool.log_ports.IndexTarget` is fed
    from the log, by one process of the data folder; ``shared_targets`` are fed by one process of
    all hosts. ``side`` are made anew for a new embedding space. ``stores`` replaces everything.
    """

    embedder: Embedder | None = None
    record_store: RecordStore | None = None
    vector_index: VectorIndex | None = None
    keyword_index: KeywordIndex | None = None
    shared_targets: tuple[IndexTarget, ...] = ()
    side: tuple[SideStructure, ...] = ()
    stores: Stores | None = None


NOTHING_GIVEN: Final = Given()


def open_tool(
    settings: Settings,
    given: Given = NOTHING_GIVEN,
    *,
    decide: Decide = decide_duplicates,
    on_progress: Callable[[str], None] = lambda _line: None,
) -> MemoryTool:
    """Open the stores that the settings name and join them.

    Args:
        settings: What to open.
        given: Parts to use instead.
        decide: The brain's rule for duplicates and conflicts on write.
        on_progress: Hears of steps that take seconds, such as a first start.

    Raises:
        MissingExtra: An embedded store or the offline embedder is not installed.
        SpaceMismatch: The embedder is of another space than the store; one that is down now tells
            it at its first vector.
        Unavailable: A server can't be reached.
        SettingsError: A setting, the data folder or a database role is wrong.
    """
    stay_quiet_by_default()
    stores = given.stores or _open_stores(settings, given, on_progress=on_progress)
    tool = MemoryTool(stores, settings, decide=decide)
    if stores.background is not None:
        if stores.gaps is not None:
            fill = Backfill(stores.gaps, tool.complete).run_on
            stores.background.also(Duty(kind="vectors", target=STORE, every="minute", run=fill))
        for duty in daily_checks(lambda: tool.stores):
            stores.background.also(duty)
        if settings.applying:
            stores.background.start()
    logger().info("opened", where=dict(stores.where))
    return tool


def _open_stores(settings: Settings, given: Given, *, on_progress: Callable[[str], None]) -> Stores:
    # Whatever was opened is closed again, in the reverse order, if the rest can't be.
    with ExitStack() as opened:
        if given.record_store is None:
            # First the server: where it runs as another user it makes the folder for both to enter.
            truth = postgres_truth(settings, opened, on_progress=on_progress)
        else:
            truth = given_truth(given.record_store)
        server = _elasticsearch(settings, truth)
        if server is not None:
            opened.callback(server.close)
        stores = _joined(settings, given, truth=truth, server=server)
        for close in stores.closing:
            opened.callback(close)
        return dataclasses.replace(stores, closing=(opened.pop_all().close,))


def _elasticsearch(settings: Settings, truth: Truth) -> ElasticsearchIndexes | None:
    if not settings.elasticsearch_url:
        return None
    if truth.following is None:
        message = "elasticsearch_url needs a record_store with the port ChangeLog"
        raise SettingsError(message)
    server = ElasticsearchIndexes(settings, store=truth.identity, tokeniser=TOKENISER_VERSION)
    server.check()
    return server


def _joined(
    settings: Settings, given: Given, *, truth: Truth, server: ElasticsearchIndexes | None
) -> Stores:
    embedders = Embedders(settings, given.embedder)
    recorded = recorded_space(truth)
    embedder = embedders.opened(recorded)
    space = _space_in_use(embedder, recorded.space if recorded else None)
    number = recorded.number if recorded else FIRST_SPACE
    log = truth.following.log if truth.following else None
    if log is None and (given.vector_index is None or given.keyword_index is None):
        message = "a record_store without the port ChangeLog needs both indexes to be given"
        raise SettingsError(message)
    indexes = Indexes(
        settings,
        GivenIndexes(
            vector=given.vector_index, keyword=given.keyword_index, shared=given.shared_targets
        ),
        truth=truth,
        server=server,
    )
    background = indexes.background()
    ageing = None
    if truth.ageing is not None and truth.figures is not None and background is not None:
        ageing = ageing_of(truth.ageing, settings, figures=truth.figures, background=background)
    stores = Stores(
        records=truth.records,
        reader=truth.reader,
        spaces=truth.spaces,
        vector_index=indexes.vector_index(number),
        keyword_index=indexes.keyword_index,
        embedder=embedder,
        space=number,
        recorded=indexes.recorded(number),
        pointer=log.pointer if log else lambda _target: None,
        figures=truth.figures,
        gaps=truth.gaps,
        exchange=truth.exchange,
        background=background,
        eraser=_eraser(settings, truth, indexes=indexes, background=background, side=given.side),
        ageing=ageing,
        truth_side=truth.side,
        inspected=indexes.inspected(number),
        where={
            "records": truth.shown,
            **indexes.where,
            "embedder": space.name
            if space
            else f"{settings.embedder or 'given'} (not reached yet)",
            "data": str(settings.data_dir),
        },
        closing=(embedders.close,),
    )
    made = Made(
        settings=settings, truth=truth, embedders=embedders, indexes=indexes, side=given.side
    )
    return with_changes(stores, made)


def _eraser(
    settings: Settings,
    truth: Truth,
    *,
    indexes: Indexes,
    background: Background | None,
    side: Sequence[SideStructure],
) -> Erase | None:
    if truth.erasing is None or truth.following is None or background is None:
        return None
    return eraser_of(
        settings,
        truth.erasing,
        background=background,
        jobs=truth.following.jobs,
        leave_spaces=indexes.leave_kept,
        side=side,
    )


def _space_in_use(embedder: Embedder, recorded: EmbeddingSpace | None) -> EmbeddingSpace | None:
    """The space of the store; ``None`` in a new one whose embedder is down.

    A worker needs no model, and searches and writes go on without: so nobody is kept from opening
    by an embedder that is down. It is held against the record before its first vector.

    Raises:
        SpaceMismatch: The embedder answers and is of another space.
    """
    try:
        made = embedder.space
    except Unavailable as error:
        logger().warning("embedder_unavailable", reason=str(error))
        return recorded
    if recorded is not None:
        check_space(recorded, made)
    return made
