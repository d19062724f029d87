"""The part of the composition root that joins ageing: tiers, expiry, purging, the archive, use."""

from dataclasses import dataclass
from itertools import chain

from memory_tool.adapters.archive_folder import ArchiveFolder
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_forgetting import PostgresTombstones, PostgresUseLog
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_tiers import PostgresArchiveRegister, PostgresTiers
from memory_tool.archive_ports import Archive
from memory_tool.assembly import Ageing, Background
from memory_tool.index_jobs.archive_upkeep import ArchiveUpkeep
from memory_tool.index_jobs.expiry import Expiry
from memory_tool.index_jobs.pace import Pace
from memory_tool.index_jobs.purge import Purge
from memory_tool.index_jobs.tiers import TierParts, Tiers
from memory_tool.job_values import STORE, Duty
from memory_tool.log_ports import ChangeFigures
from memory_tool.settings import Settings
from memory_tool.text.summary import summarise
from memory_tool.tier_ports import Summarise, TierRules, UseLog


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeingStores:
    """Where ageing reads and writes."""

    worker: PostgresPool
    archive: Archive
    use: UseLog

    @property
    def records(self) -> PostgresRecordStore:
        """The truth as jobs write it."""
        return PostgresRecordStore(self.worker, self.archive)


def ageing_stores(settings: Settings, *, app: PostgresPool, worker: PostgresPool) -> AgeingStores:
    """The stores of ageing that the settings name."""
    return AgeingStores(
        worker=worker,
        archive=ArchiveFolder(settings.archive_folder),
        use=PostgresUseLog(app),
    )


def forgetting_duties(stores: AgeingStores, settings: Settings) -> tuple[Duty, ...]:
    """What is past leaves the store, hour by hour."""
    tombstones = PostgresTombstones(stores.worker)
    expiry = Expiry(tombstones, stores.records)
    purge = Purge(tombstones, hours=settings.purge_hours)
    archive = ArchiveUpkeep(stores.archive, PostgresArchiveRegister(stores.worker))
    return (
        Duty(kind="expire", target=STORE, every="hour", run=expiry.run),
        Duty(kind="purge", target=STORE, every="hour", run=purge.run),
        Duty(kind="archive", target=STORE, every="hour", run=archive.run),
    )


def ageing_of(
    stores: AgeingStores,
    settings: Settings,
    *,
    figures: ChangeFigures,
    background: Background,
    summary: Summarise = summarise,
) -> Ageing:
    """Ageing of a store, whose nightly moves ``background`` does from now on."""

    def forward() -> None:
        background.hurry()
        if not background.alive():
            # A command has no threads that would do it.
            background.apply_now()

    store = PostgresTiers(stores.worker)
    tiers = Tiers(
        TierParts(store=store, records=stores.records, archive=stores.archive, summarise=summary),
        rules=TierRules(
            hot_days=settings.hot_days,
            warm_days=settings.warm_days if settings.archives else None,
        ),
        pace=Pace(
            figures,
            lambda: chain.from_iterable(background.targets.values()),
            most=settings.overlay_rows // 2,
            hurry=forward,
        ),
    )
    background.also(Duty(kind="tiers", target=STORE, every="day", run=tiers.run))
    return Ageing(
        figures=store.figures, move=tiers.move, use=stores.use, archives=settings.archives
    )
