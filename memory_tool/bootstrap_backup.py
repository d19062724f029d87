"""The composition root of backups: settings and a folder in, a backup or a restored store out."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memory_tool.adapters.backup_folder import FolderBackup, backup_draft
from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.adapters.faiss_saved import FaissFiles
from memory_tool.adapters.faiss_spaces import space_folder
from memory_tool.adapters.host_folder import FolderLease, open_folder
from memory_tool.adapters.postgres_backup import PostgresBackupSource
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_migrations import check_schema, migrate
from memory_tool.adapters.postgres_restore import PostgresRestoreTarget
from memory_tool.adapters.postgres_spaces import PostgresSpaces
from memory_tool.backup_manifest import BackupManifest
from memory_tool.backup_ports import IndexFiles, Restored
from memory_tool.bootstrap_indexes import vector_target
from memory_tool.bootstrap_truth import Database, database_of
from memory_tool.index_jobs.backup import QUIET, Beside, Steps, back_up, restore
from memory_tool.log import stay_quiet_by_default
from memory_tool.port_values import Pointer
from memory_tool.settings import Settings
from memory_tool.space_values import followed

OnProgress = Callable[[str], None]


def make_backup(
    settings: Settings,
    folder: Path,
    *,
    with_indexes: bool = False,
    steps: Steps = QUIET,
    on_progress: OnProgress = lambda _line: None,
) -> BackupManifest:
    """Save the store that the settings name as a new folder; see :func:`.back_up`.

    Raises:
        InputError: The folder is there already.
    """
    stay_quiet_by_default()
    with (
        backup_draft(folder.absolute()) as draft,
        _database(settings, on_progress) as database,
        _worker(settings, database) as pool,
    ):
        beside = _beside(settings, pool, with_indexes=with_indexes)
        return back_up(PostgresBackupSource(pool), draft, beside=beside, steps=steps)


def verify_backup(folder: Path, *, steps: Steps = QUIET) -> BackupManifest:
    """Read a whole backup and compare it with its manifest; no store is opened.

    Raises:
        NotFound: There is no such folder.
        Corrupt: The backup is damaged, or none.
    """
    backup = FolderBackup.opened(folder.absolute())
    steps.begin(backup.manifest.length)
    backup.verify(steps.advance)
    return backup.manifest


def restore_backup(
    settings: Settings,
    folder: Path,
    *,
    replace: bool = False,
    steps: Steps = QUIET,
    on_progress: OnProgress = lambda _line: None,
) -> Restored:
    """Make a backup the content of the store that the settings name; see :func:`.restore`."""
    stay_quiet_by_default()
    backup = FolderBackup.opened(folder.absolute())
    with (
        _database(settings, on_progress) as database,
        _worker(settings, database) as pool,
    ):
        beside = _beside(settings, pool, with_indexes=True)
        target = PostgresRestoreTarget(database.owner)
        return restore(target, backup, beside=beside, replace=replace, steps=steps)


@contextmanager
def _database(settings: Settings, on_progress: OnProgress) -> Iterator[Database]:
    with ExitStack() as opened:
        database = database_of(settings, on_progress)
        opened.callback(database.close)
        if settings.migrate:
            migrate(database.owner)
        else:
            check_schema(database.app)
        yield database


@contextmanager
def _worker(settings: Settings, database: Database) -> Iterator[PostgresPool]:
    pool = PostgresPool(database.worker, pooled=settings.pooled, revive=database.revive)
    pool.open()
    try:
        yield pool
    finally:
        pool.close()


def _beside(settings: Settings, pool: PostgresPool, *, with_indexes: bool) -> Beside:
    identity = open_folder(settings.data_dir)
    return Beside(
        folder=identity,
        ledger=EraseLedgerFile(settings.erase_ledger),
        archive=settings.archive_folder,
        lease=FolderLease(settings.data_dir),
        indexes=tuple(_indexes(settings, pool, identity=identity)) if with_indexes else (),
    )


def _indexes(settings: Settings, pool: PostgresPool, *, identity: str) -> Iterator[IndexFiles]:
    """The indexes in the data folder; those on a server are rebuilt from the truth."""
    if settings.vector_backend == "faiss":
        root = settings.data_dir / "vectors"
        yield FaissFiles(root, published=lambda: _published(root, pool, folder=identity))
    if not settings.elasticsearch_url:
        from memory_tool.adapters.tantivy_saved import TantivyFiles  # noqa: PLC0415 - extra `local`

        yield TantivyFiles(settings.data_dir / "keywords")


def _published(root: Path, pool: PostgresPool, *, folder: str) -> Mapping[Path, Pointer]:
    """Which generation of each space is searched, by the space's folder."""
    log, found = PostgresChangeLog(pool), {}
    store = log.identity()
    for number in followed(PostgresSpaces(pool).spaces()):
        pointer = log.pointer(vector_target(store, folder, space=number))
        if pointer is not None:
            found[space_folder(root, store, space=number)] = pointer
    return found
