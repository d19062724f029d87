"""The part of the composition root that opens the truth, and all that follows from it."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from memory_tool.adapters.host_folder import open_folder, process_name
from memory_tool.adapters.in_memory_jobs import InMemoryJobs
from memory_tool.adapters.postgres_address import address_of, shown_address
from memory_tool.adapters.postgres_audit import PostgresAudit
from memory_tool.adapters.postgres_binaries import EmbeddedPostgresError, PostgresNotInstalled
from memory_tool.adapters.postgres_change_figures import PostgresChangeFigures
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_exchange import PostgresExchange
from memory_tool.adapters.postgres_generations import PostgresGenerations
from memory_tool.adapters.postgres_inventory import PostgresInventory
from memory_tool.adapters.postgres_jobs import PostgresJobs
from memory_tool.adapters.postgres_lease import PostgresLease
from memory_tool.adapters.postgres_migrations import check_schema, migrate
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_repair import PostgresRepair
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from memory_tool.adapters.postgres_terms import PostgresTerms
from memory_tool.adapters.postgres_upkeep import PostgresUpkeep
from memory_tool.bootstrap_erase import EraseDoors, erase_doors
from memory_tool.bootstrap_renewals import renewal_of
from memory_tool.bootstrap_upkeep import AgeingStores, ageing_stores, forgetting_duties
from memory_tool.errors import MissingExtra, SettingsError, Unavailable
from memory_tool.exchange_ports import Exchange
from memory_tool.index_jobs.following import Following
from memory_tool.inspection_ports import TruthSide
from memory_tool.inventory_ports import TruthInventory
from memory_tool.job_values import STORE, Duty
from memory_tool.log_ports import ChangeFigures, ChangeLog, VectorGaps
from memory_tool.ports import Identified, RecordReader, RecordStore, SpaceRegistry
from memory_tool.renewal_ports import GenerationCatalogue
from memory_tool.settings import Settings
from memory_tool.space_ports import SpaceKeeper

WORKER_POOL_MIN: Final = 8
"""Least size of the worker's pool, whatever ``pool_size`` says: an applier reads changes on one
connection and commits their mark on a second. With fewer than two for each of three groups (the
folder, the server, shared targets) they wait for each other until they give up, and no index
advances; two more are for pointers and leases, which must not wait for a long read. Connections
that nobody needs are not opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The database as each of the three roles reaches it."""

    app: str
    worker: str
    owner: str
    shown: str
    folder: Path | None = None
    forget_log: Callable[[], None] | None = None
    revive: Callable[[], None] | None = None
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The record store with its other doors; without a log the indexes are somebody else's care.

    Attributes:
        side: What a check and a repair need, where the store keeps it.
    """

    records: RecordStore
    reader: RecordReader
    spaces: SpaceRegistry
    following: Following | None
    figures: ChangeFigures | None
    gaps: VectorGaps | None
    exchange: Exchange | None
    identity: str
    shown: str
    keeper: SpaceKeeper | None
    inventory: TruthInventory | None
    erasing: EraseDoors | None = None
    ageing: AgeingStores | None = None
    side: TruthSide | None = None


def postgres_truth(
    settings: Settings, opened: ExitStack, *, on_progress: Callable[[str], None]
) -> Truth:
    """The PostgreSQL that the settings name, embedded or a server; ``opened`` closes it."""
    database = database_of(settings, on_progress)
    opened.callback(database.close)
    if settings.migrate:
        migrate(database.owner)
    else:
        check_schema(database.app)
    app, worker = (
        PostgresPool(address, size=size, pooled=settings.pooled, revive=database.revive)
        for address, size in (
            (database.app, settings.pool_size),
            (database.worker, max(settings.pool_size, WORKER_POOL_MIN)),
        )
    )
    for pool in (app, worker):
        pool.open()
        opened.callback(pool.close)
    ageing = ageing_stores(settings, app=app, worker=worker)
    records, log = PostgresRecordStore(app, ageing.archive), PostgresChangeLog(worker)
    identity = log.identity()
    return Truth(
        records=records,
        reader=PostgresRecordReader(app, records),
        spaces=records,
        following=_following(settings, log, ageing=ageing),
        figures=PostgresChangeFigures(worker),
        gaps=log,
        exchange=PostgresExchange(app, worker, records=records),
        identity=identity,
        shown=database.shown,
        keeper=PostgresSpaces(worker, ageing.archive),
        inventory=PostgresInventory(worker),
        erasing=erase_doors(
            settings,
            worker=worker,
            owner=database.owner,
            identity=identity,
            server_folder=database.folder,
            forget_log=database.forget_log,
        ),
        ageing=ageing,
        side=TruthSide(
            inventory=PostgresInventory(worker),
            contents=PostgresInventory(worker, of_contents=True),
            audit=PostgresAudit(worker),
            repair=PostgresRepair(worker),
            log=log,
        ),
    )


def _following(settings: Settings, log: ChangeLog, *, ageing: AgeingStores) -> Following:
    pool = ageing.worker
    holder, seconds, upkeep = process_name(), settings.lease_seconds, PostgresUpkeep(pool)
    catalogue, terms = PostgresGenerations(pool), PostgresTerms(pool)
    recount = Duty(
        kind="terms",
        target=STORE,
        every="day",
        run=lambda _go_on: terms.recount(),
        by_itself=settings.daily_rebuild,
    )
    forget = Duty(
        kind="receipts", target=STORE, every="hour", run=lambda _go_on: upkeep.forget_old()
    )
    return Following(
        log=log,
        jobs=PostgresJobs(pool, holder=holder, seconds=seconds),
        registry=upkeep,
        lease_of=lambda name: PostgresLease(pool, name=name, holder=holder, seconds=seconds),
        duties=(forget, recount, *forgetting_duties(ageing, settings)),
        renewal_of=partial(renewal_of, log=log, catalogue=catalogue),
        catalogue=catalogue,
        truth=PostgresInventory(pool),
        daily=settings.daily_rebuild,
    )


def given_truth(store: RecordStore) -> Truth:
    """A record store that the caller brings.

    Raises:
        SettingsError: It lacks a port.
    """
    if not isinstance(store, RecordReader) or not isinstance(store, SpaceRegistry):
        message = "a record_store also needs the ports RecordReader and SpaceRegistry"
        raise SettingsError(message)
    return Truth(
        records=store,
        reader=store,
        spaces=store,
        following=_given_following(store),
        figures=store if isinstance(store, ChangeFigures) else None,
        gaps=store if isinstance(store, VectorGaps) else None,
        exchange=None,
        identity=store.identity() if isinstance(store, Identified) else "",
        shown=f"given ({type(store).__name__})",
        keeper=store if isinstance(store, SpaceKeeper) else None,
        inventory=store if isinstance(store, TruthInventory) else None,
    )


def _given_following(store: RecordStore) -> Following | None:
    if not isinstance(store, ChangeLog):
        return None
    following = Following(
        log=store,
        jobs=InMemoryJobs(),
        truth=store if isinstance(store, TruthInventory) else None,
    )
    if not isinstance(store, GenerationCatalogue):
        return following
    anew = partial(renewal_of, log=store, catalogue=store)
    return replace(following, catalogue=store, renewal_of=anew)


def database_of(settings: Settings, on_progress: Callable[[str], None]) -> Database:
    """The database that the settings name; an embedded one is started.

    Raises:
        MissingExtra: It should be embedded and is not installed.
        Unavailable: The embedded one does not start.
        SettingsError: The data folder can't be used.
    """
    url = settings.database_url
    if url:
        # A folder that can't be used is told before a server is asked.
        open_folder(settings.data_dir)
        return Database(
            app=address_of(url, Role.APP, given=url),
            worker=address_of(url, Role.WORKER, given=settings.worker_database_url),
            owner=address_of(url, Role.OWNER, given=settings.owner_database_url),
            shown=shown_address(url),
        )
    server = EmbeddedPostgres(settings.data_dir, on_progress=on_progress)
    try:
        server.start()
    except PostgresNotInstalled as error:
        raise MissingExtra(str(error)) from error
    except EmbeddedPostgresError as error:
        raise Unavailable(str(error)) from error
    return Database(
        app=server.conninfo(role=Role.APP),
        worker=server.conninfo(role=Role.WORKER),
        owner=server.conninfo(role=Role.OWNER),
        shown="embedded PostgreSQL",
        folder=server.folder(),
        forget_log=server.forget_log,
        revive=server.ensure_running,
        close=server.close,
    )
