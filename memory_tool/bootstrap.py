"""The composition root of the hands: settings in, tool out. Only it and its parts know adapters."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_vector_index import FaissVectorIndex
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.adapters.host_folder import FolderLease, open_folder
from memory_tool.adapters.offline_embedder import REVISION, OfflineEmbedder
from memory_tool.adapters.openai_embedder import OpenAIEmbedder
from memory_tool.adapters.sentence_transformer_embedder import SentenceTransformerEmbedder
from memory_tool.assembly import Stores
from memory_tool.bootstrap_truth import Truth, given_truth, postgres_truth
from memory_tool.bootstrap_upkeep import ageing_of
from memory_tool.errors import MissingExtra, SettingsError, Unavailable
from memory_tool.index_jobs.backfill import Backfill
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.following import FolderTargets, background_of
from memory_tool.job_values import STORE, Duty
from memory_tool.log import logger, stay_quiet_by_default
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.model import EmbeddingSpace
from memory_tool.port_values import Patience
from memory_tool.ports import Embedder, KeywordIndex, RecordStore, VectorIndex
from memory_tool.settings import Settings
from memory_tool.text.tokenise import TOKENISER_VERSION
from memory_tool.tool import MemoryTool
from memory_tool.validation import check_space
from memory_tool.write_changes import Decide
from memory_tool.write_plan import decide_duplicates

OFFLINE: Final = "offline"
HASHING: Final = "hashing"
_OPENAI: Final = "openai:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Parts that the caller brings instead of those that the settings name.

    A record store also has the ports RecordReader and SpaceRegistry; if it has ChangeLog too, the
    indexes follow it. An index that is also an :class:`~memory_tool.log_ports.IndexTarget` is fed
    from the log, by one process of the data folder; ``shared_targets`` are fed by one process of
    all hosts. ``stores`` replaces everything.
    """

    embedder: Embedder | None = None
    record_store: RecordStore | None = None
    vector_index: VectorIndex | None = None
    keyword_index: KeywordIndex | None = None
    shared_targets: tuple[IndexTarget, ...] = ()
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
        if given.embedder is None and isinstance(stores.embedder, OpenAIEmbedder):
            opened.callback(stores.embedder.close)
        return dataclasses.replace(stores, closing=(opened.pop_all().close,))


def _elasticsearch(settings: Settings, truth: Truth) -> ElasticsearchIndexes | None:
    if not settings.elasticsearch_url:
        return None
    if truth.following is None or truth.figures is None:
        message = "elasticsearch_url needs a record_store with the ports ChangeLog, ChangeFigures"
        raise SettingsError(message)
    server = ElasticsearchIndexes(settings, store=truth.identity, tokeniser=TOKENISER_VERSION)
    server.check()
    return server


def _joined(
    settings: Settings, given: Given, *, truth: Truth, server: ElasticsearchIndexes | None
) -> Stores:
    identity = open_folder(settings.data_dir)
    recorded = truth.spaces.active_space()
    embedder = given.embedder or _embedder(settings, recorded)
    space = _space_in_use(embedder, recorded)
    log = truth.following.log if truth.following else None
    if log is None and (given.vector_index is None or given.keyword_index is None):
        message = "a record_store without the port ChangeLog needs both indexes to be given"
        raise SettingsError(message)
    vectors = server if settings.vector_backend == "elasticsearch" else None
    vector_index = given.vector_index or _vector_index(
        settings, vectors, truth=truth, identity=identity
    )
    keyword_index = given.keyword_index or _keyword_index(settings, server, identity=identity)
    parts = _Indexes(
        identity=identity, server=server, vector_index=vector_index, keyword_index=keyword_index
    )
    background = _background(settings, given, truth=truth, indexes=parts)
    ageing = None
    if truth.ageing is not None and truth.figures is not None and background is not None:
        ageing = ageing_of(truth.ageing, settings, figures=truth.figures, background=background)
    return Stores(
        records=truth.records,
        reader=truth.reader,
        spaces=truth.spaces,
        vector_index=vector_index,
        keyword_index=keyword_index,
        embedder=embedder,
        pointer=log.pointer if log else lambda _target: None,
        figures=truth.figures,
        gaps=truth.gaps,
        exchange=truth.exchange,
        background=background,
        ageing=ageing,
        where={
            "records": truth.shown,
            "keywords": _shown(given.keyword_index, server, embedded="Tantivy"),
            "vectors": _shown(given.vector_index, vectors, embedded="FAISS"),
            "embedder": space.name
            if space
            else f"{settings.embedder or 'given'} (not reached yet)",
            "data": str(settings.data_dir),
        },
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


def _vector_index(
    settings: Settings, server: ElasticsearchIndexes | None, *, truth: Truth, identity: str
) -> VectorIndex:
    space = _Remembered(truth.spaces.active_space)
    if server is not None:
        return server.vector_index(space)
    return FaissVectorIndex(
        settings.data_dir / "vectors",
        target=f"faiss:{identity}",
        store=truth.identity,
        space=space,
    )


def _keyword_index(
    settings: Settings, server: ElasticsearchIndexes | None, *, identity: str
) -> KeywordIndex:
    if server is not None:
        return server.keyword_index()
    try:
        from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex  # noqa: PLC0415 - extra `local`
    except ImportError as error:
        message = "Tantivy is not installed: pip install 'threefold[local]'"
        raise MissingExtra(message) from error
    return TantivyKeywordIndex(
        settings.data_dir / "keywords",
        target=f"tantivy:{identity}",
        tokeniser=TOKENISER_VERSION,
    )


def _shown(given: object, server: ElasticsearchIndexes | None, *, embedded: str) -> str:
    if given is not None:
        return "given"
    return server.shown if server is not None else embedded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Indexes:
    """The indexes with what their targets are made from."""

    identity: str
    server: ElasticsearchIndexes | None
    vector_index: VectorIndex
    keyword_index: KeywordIndex


def _background(
    settings: Settings, given: Given, *, truth: Truth, indexes: _Indexes
) -> BackgroundApplier | None:
    if truth.following is None:
        return None
    folder = FolderTargets(
        name=f"folder:{indexes.identity}",
        lease=FolderLease(settings.data_dir),
        targets=[
            *_keyword_targets(settings, given, indexes=indexes),
            *_vector_targets(settings, given, log=truth.following.log, indexes=indexes),
        ],
        vector_index=indexes.vector_index,
    )
    shared = [
        *_server_targets(settings, given, truth=truth, server=indexes.server),
        *given.shared_targets,
    ]
    return background_of(truth.following, folder, shared=shared)


def _server_targets(
    settings: Settings, given: Given, *, truth: Truth, server: ElasticsearchIndexes | None
) -> Iterator[IndexTarget]:
    """The indexes on a server, which one process of all hosts brings forward."""
    if server is None or truth.following is None or truth.figures is None:
        return
    log = truth.following.log
    if given.keyword_index is None:
        yield server.target("keyword", log=log, figures=truth.figures)
    if given.vector_index is None and settings.vector_backend == "elasticsearch":
        yield server.target("vector", log=log, figures=truth.figures)


class _Remembered:
    """The recorded space, asked for until there is one: it never changes while a store is open."""

    def __init__(self, ask: Callable[[], EmbeddingSpace | None]) -> None:
        self._ask = ask
        self._space: EmbeddingSpace | None = None

    def __call__(self) -> EmbeddingSpace | None:
        if self._space is None:
            self._space = self._ask()
        return self._space


def _vector_targets(
    settings: Settings, given: Given, *, log: ChangeLog, indexes: _Indexes
) -> list[IndexTarget]:
    if given.vector_index is not None:
        return [given.vector_index] if isinstance(given.vector_index, IndexTarget) else []
    if settings.vector_backend == "elasticsearch":
        return []
    name = indexes.vector_index.target
    return [
        FaissTarget(
            settings.data_dir / "vectors",
            name=name,
            pointer=lambda: log.pointer(name),
            policy=GraphPolicy(
                above=settings.hnsw_min_rows, ef_construction=settings.hnsw_ef_construction
            ),
            patience=Patience(rows=settings.fold_rows, seconds=settings.fold_seconds),
        )
    ]


def _keyword_targets(settings: Settings, given: Given, *, indexes: _Indexes) -> list[IndexTarget]:
    if given.keyword_index is not None:
        return [given.keyword_index] if isinstance(given.keyword_index, IndexTarget) else []
    if indexes.server is not None:
        return []
    from memory_tool.adapters.tantivy_target import TantivyTarget  # noqa: PLC0415 - extra `local`

    return [
        TantivyTarget(
            settings.data_dir / "keywords",
            name=indexes.keyword_index.target,
            tokeniser=TOKENISER_VERSION,
        )
    ]


def _embedder(settings: Settings, recorded: EmbeddingSpace | None) -> Embedder:
    """The embedder that the settings name, else the one of the recorded space, else the offline."""
    name = settings.embedder or (OFFLINE if recorded is None else _name_of(recorded))
    if name == HASHING:
        return HashingEmbedder()
    if name == OFFLINE:
        return OfflineEmbedder()
    if name.startswith(_OPENAI):
        if not settings.embedder_url:
            message = f"embedder {name!r} needs embedder_url, the base address of the endpoint"
            raise SettingsError(message)
        return OpenAIEmbedder(
            base_url=settings.embedder_url,
            model=name.removeprefix(_OPENAI),
            api_key=settings.embedder_key,
            batch=settings.embed_batch,
        )
    # Whoever names a model wants it: fetching it is then no surprise.
    return SentenceTransformerEmbedder(
        model=name, allow_download=bool(settings.embedder), batch=settings.embed_batch
    )


def _name_of(space: EmbeddingSpace) -> str:
    if space.model == HASHING:
        return HASHING
    return OFFLINE if space.revision == REVISION else space.model
