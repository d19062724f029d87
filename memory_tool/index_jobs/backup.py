"""A store saved as a folder, and a folder turned into a store again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memory_tool.backup_manifest import BackupManifest, SavedFile, SavedTable
from memory_tool.backup_ports import (
    BackupDraft,
    BackupSource,
    Dump,
    IndexFiles,
    Restored,
    RestoreTarget,
    RestoreWish,
    SavedBackup,
    TableShape,
)
from memory_tool.erase_ledger import encoded_line, parsed_lines
from memory_tool.erase_ports import EraseLedger
from memory_tool.erase_values import LedgerLine
from memory_tool.errors import Corrupt
from memory_tool.job_ports import Lease
from memory_tool.log import logger

ARCHIVES: Final = "archives/"
"""Where the files of the archive lie within a backup."""

LEDGER: Final = "erase-ledger.jsonl"
"""The erase ledger within a backup."""

README: Final = "README.txt"
_EXPLAINED: Final = """\
A backup of a Threefold store. It can be read without Threefold.

manifest.json says what each file has to be: its length, its SHA-256, and for a table its columns
and rows. tables/NAME.tsv.zst is a table as PostgreSQL's COPY writes text, with a first line of
column names, compressed by zstd. To look into one:

    zstd -dc tables/memory.tsv.zst | less

To load one into a table of the same columns:

    zstd -dc tables/memory.tsv.zst | psql -c "COPY memory FROM STDIN WITH (FORMAT text, HEADER)"

chunk.embedding holds IEEE half floats, little endian. archives/ holds memories that were archived,
indexes/ files of the search indexes, which can always be made anew from the tables.

To restore it: threefold restore THIS-FOLDER
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a store has beside its database.

    Attributes:
        folder: Identity of the data folder.
        ledger: The orders to erase, which no restore takes back.
        archive: The folder of the archive.
        indexes: The indexes whose files may be saved.
        lease: Held by whoever brings these indexes forward.
    """

    folder: str
    ledger: EraseLedger
    archive: Path
    lease: Lease
    indexes: Sequence[IndexFiles] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Hears how a long work goes: how many bytes there are, and how many are done."""

    begin: Callable[[int], None] = lambda _total: None
    advance: Callable[[int], None] = lambda _done: None


QUIET: Final = Steps()


def back_up(
    source: BackupSource, draft: BackupDraft, *, beside: Beside, steps: Steps = QUIET
) -> BackupManifest:
    """Save one moment of the store, with the indexes that ``beside`` names.

    Raises:
        Corrupt: A file that belongs into it is damaged.
        Unavailable: The database can't be reached, or the folder not be written.
    """
    # Before the moment: so the truth of that moment knows the marks that the files carry.
    files = list(_saved_indexes(draft, beside.indexes))
    with source.dump() as dump:
        moment = dump.moment
        # First of all: a file that is written anew stays for a while under its old name.
        files.extend(_saved_archives(draft, moment.archives, folder=beside.archive))
        steps.begin(sum(table.size for table in moment.tables))
        files.append(draft.note(README, _EXPLAINED.encode()))
        # After the moment began: what is erased meanwhile is in the file at least.
        erased = "".join(map(encoded_line, beside.ledger.lines()))
        files.append(draft.note(LEDGER, erased.encode()))
        tables = tuple(_saved(dump, draft, table=table, steps=steps) for table in moment.tables)
    manifest = BackupManifest(
        store=moment.store,
        folder=beside.folder if beside.indexes else "",
        made_at=moment.made_at,
        memories=moment.memories,
        schema=moment.schema,
        sequences=moment.sequences,
        tables=tables,
        files=tuple(files),
    )
    draft.finish(manifest)
    logger().info("backed_up", memories=manifest.memories, bytes=manifest.length)
    return manifest


def _saved_indexes(draft: BackupDraft, indexes: Sequence[IndexFiles]) -> Iterator[SavedFile]:
    for index in indexes:
        with index.published() as files:
            for name, path in files.items():
                yield draft.link(name, path)


def _saved_archives(
    draft: BackupDraft, archives: Mapping[str, str], *, folder: Path
) -> Iterator[SavedFile]:
    for name, sha256 in sorted(archives.items()):
        file = draft.link(f"{ARCHIVES}{name}", folder / name)
        if file.sha256 != sha256:
            message = f"the archive file {name} is damaged"
            raise Corrupt(message, command="threefold tiers")
        yield file


def _saved(dump: Dump, draft: BackupDraft, *, table: TableShape, steps: Steps) -> SavedTable:
    rows, left = 0, table.size

    def counted() -> Iterator[bytes]:
        nonlocal rows, left
        for piece in dump.rows(table):
            # A line break within a value is written as two other characters.
            rows += piece.count(b"\n")
            # As text a table may be longer or shorter than on the disk.
            step = min(left, len(piece))
            left -= step
            steps.advance(step)
            yield piece

    file = draft.write(f"tables/{table.name}", counted())
    steps.advance(left)
    # The first line names the columns.
    return SavedTable(name=table.name, columns=table.columns, rows=rows - 1, file=file)


def restore(
    target: RestoreTarget,
    backup: SavedBackup,
    *,
    beside: Beside,
    replace: bool,
    steps: Steps = QUIET,
) -> Restored:
    """Verify a backup, then make it the content of the store.

    What the erase ledger names, the one beside the store or the backup's, stays erased. Indexes are
    put back where they belong to this folder; others are noticed by their marks and rebuilt.

    Raises:
        Corrupt: The backup is damaged, or of a newer version.
        WouldLose: The store is newer, and ``replace`` was not said.
        Unavailable: The database can't be reached, or others use it.
    """
    manifest = backup.manifest
    steps.begin(manifest.length + sum(table.file.length for table in manifest.tables))
    backup.verify(steps.advance)
    known, saved = beside.ledger.lines(), _saved_erasures(backup)
    names = {line.name for line in known}
    missing = [line for line in saved if line.name not in names]

    def put_files_back() -> None:
        if missing:
            beside.ledger.append(missing)
        for file in manifest.files:
            if file.name.startswith(ARCHIVES):
                backup.put(file, beside.archive / file.name.removeprefix(ARCHIVES))
        if manifest.folder == beside.folder:
            _put_back(backup, beside)

    wish = RestoreWish(
        replace=replace,
        erased=[line for line in (*known, *missing) if line.store == manifest.store],
        before_commit=put_files_back,
        written=steps.advance,
    )
    restored = target.restore(backup, wish)
    logger().info("restored", memories=restored.memories, erased=restored.erased)
    return restored


def _put_back(backup: SavedBackup, beside: Beside) -> None:
    """Whoever applies to the indexes at this moment goes on with what it has, and rebuilds it."""
    if not beside.lease.try_acquire():
        return
    try:
        for index in beside.indexes:
            # Behind or foreign as long as nothing is committed: both are noticed and harmless.
            index.put_back(backup)
    finally:
        beside.lease.release()


def _saved_erasures(backup: SavedBackup) -> tuple[LedgerLine, ...]:
    for file in backup.manifest.files:
        if file.name == LEDGER:
            text = backup.path(file).read_bytes().decode(errors="replace")
            return parsed_lines(text, name=f"{LEDGER} of the backup")
    return ()
