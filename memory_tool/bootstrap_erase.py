"""The part of the composition root that joins what erasing takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_tool.adapters.archive_folder import ArchiveFolder
from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.adapters.file_scan import FolderScan
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_erase import PostgresErase, PostgresRewrite
from memory_tool.adapters.postgres_targets import PostgresTargets
from memory_tool.adapters.postgres_terms import PostgresTerms
from memory_tool.adapters.postgres_tiers import PostgresArchiveRegister
from memory_tool.archive_ports import Archive
from memory_tool.assembly import Background
from memory_tool.erase_ports import EraseLedger, EraseTruth, Rewriting
from memory_tool.erase_values import Place
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.index_jobs.archive_upkeep import ArchiveUpkeep
from memory_tool.index_jobs.erase import Erase, ErasePlaces, replay
from memory_tool.index_jobs.erase_indexes import ErasedFrom, EraseIndexes
from memory_tool.job_ports import Jobs
from memory_tool.settings import Settings
from memory_tool.space_ports import SideStructure
from memory_tool.tier_ports import ArchiveRegister

_ORPHAN_SECONDS = 120.0
"""Between a file of the archive and the commit that names it lie seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseDoors:
    """What erasing needs of a PostgreSQL.

    Attributes:
        server_folder: Where the files of a server of our own lie.
        forget_log: Lets go of the log of changes of a server of our own; ``None`` for another's.
    """

    ledger: EraseLedger
    truth: EraseTruth
    tables: Rewriting
    words: Callable[[], None]
    targets: PostgresTargets
    archive: Archive
    register: ArchiveRegister
    identity: str
    server_folder: Path | None
    forget_log: Callable[[], None] | None


def erase_doors(
    settings: Settings,
    *,
    worker: PostgresPool,
    owner: str,
    identity: str,
    server_folder: Path | None,
    forget_log: Callable[[], None] | None,
) -> EraseDoors:
    """Open them, and carry out what the ledger orders and a restored database lacks.

    Raises:
        Corrupt: The ledger was lost or damaged.
    """
    doors = EraseDoors(
        ledger=EraseLedgerFile(settings.erase_ledger),
        truth=PostgresErase(worker),
        tables=PostgresRewrite(owner),
        words=PostgresTerms(worker).recount,
        targets=PostgresTargets(worker),
        archive=ArchiveFolder(settings.archive_folder),
        register=PostgresArchiveRegister(worker),
        identity=identity,
        server_folder=server_folder,
        forget_log=forget_log,
    )
    replay(doors.ledger, doors.truth, store=identity, mend=settings.erase_ledger_lost == "accept")
    return doors


def eraser_of(
    settings: Settings,
    doors: EraseDoors,
    *,
    background: Background,
    jobs: Jobs,
    leave_spaces: Callable[[], Sequence[str]],
    side: Sequence[SideStructure],
) -> Erase:
    """Everything that erases, joined; ``leave_spaces`` removes indexes that nobody follows."""
    # Whoever reads a file at this moment is told that it is gone, and shows a summary.
    archives = ArchiveUpkeep(
        doors.archive, doors.register, patience=0.0, orphan_seconds=_ORPHAN_SECONDS
    )
    folders = [settings.data_dir, settings.archive_folder]
    if doors.server_folder is not None:
        folders.append(doors.server_folder)
    indexes = EraseIndexes(
        ErasedFrom(
            background=background,
            jobs=jobs,
            targets=doors.targets,
            leave_spaces=lambda: doors.targets.leave(leave_spaces()),
        )
    )
    return Erase(
        doors.ledger,
        doors.truth,
        store=doors.identity,
        places=ErasePlaces(
            side=side,
            archives=lambda: _archive_places(archives),
            indexes=indexes.run,
            words=doors.words,
            tables=doors.tables,
            server_log=lambda: _log_place(doors.forget_log),
        ),
        files=FolderScan(folders, said_elsewhere=doors.truth.said_elsewhere),
    )


def _archive_places(archives: ArchiveUpkeep) -> Sequence[Place]:
    try:
        archives.run(lambda: True)
        # What was written anew a moment ago is removed now.
        damaged = archives.sweep(lambda: True)
    except (Corrupt, Unavailable) as error:
        return [Place(name="archives", state="waiting", said=str(error))]
    if damaged:
        said = f"damaged, and can't be written anew: {', '.join(damaged)}"
        return [Place(name="archives", state="waiting", said=said)]
    return [Place(name="archives", state="done", said="no file holds a line without a memory")]


def _log_place(forget: Callable[[], None] | None) -> Place:
    if forget is None:
        said = "the server's own: its log of changes, standbys and backups forget in their own time"
        return Place(name="server", state="not ours", said=said)
    forget()
    said = "the log of changes up to now is removed"
    return Place(name="server", state="done", said=said)
