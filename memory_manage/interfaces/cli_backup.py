"""``threefold backup`` and ``threefold restore``: a store saved as a folder, and back."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_progress import Progress, shown
from memory_manage.interfaces.cli_session import print_json, print_lines
from memory_tool.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory_tool.index_jobs.backup import Steps

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the backup.")]


@with_groups
def backup(
    folder: FolderArgument,
    *,
    with_indexes: Annotated[
        bool,
        typer.Option(
            "--with-indexes",
            help="Also the published vector and keyword index of this data folder.",
        ),
    ] = False,
    store: StoreOptions,
) -> None:
    """Save one moment of the store, of all namespaces, as a new folder. Writes go on meanwhile.

    The folder has its name only when it is whole and on the disk. Indexes on a server are never in
    it: they are rebuilt from it.
    """
    # Here, not above: psycopg takes a second that --help does not have.
    from memory_tool.bootstrap_backup import make_backup  # noqa: PLC0415

    with _steps("bytes saved", store) as steps:
        manifest = make_backup(_settings(store), folder, with_indexes=with_indexes, steps=steps)
    if store.as_json:
        print_json(
            {
                "folder": str(folder.absolute()),
                "store": manifest.store,
                "made_at": manifest.made_at.isoformat(),
                "memories": manifest.memories,
                "bytes": manifest.length,
                "files": len(manifest.all_files),
            }
        )
    else:
        print_lines(f"saved {manifest.memories:,} memories, {manifest.length:,} bytes: {folder}")


@with_groups
def restore(
    folder: FolderArgument,
    *,
    verify_only: Annotated[
        bool, typer.Option("--verify-only", help="Only read it all and say whether it is whole.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Go on though memories are lost that are newer than the backup."
        ),
    ] = False,
    store: StoreOptions,
) -> None:
    """Verify a backup, then make it the content of the store, all or nothing.

    Reads and writes wait meanwhile. What the erase ledger names stays erased. Indexes notice that
    the store went back, and are rebuilt by whoever applies to them; searches are right before.
    """
    from memory_tool.bootstrap_backup import restore_backup, verify_backup  # noqa: PLC0415 - as above

    if verify_only:
        with _steps("bytes read", store) as steps:
            manifest = verify_backup(folder, steps=steps)
        if store.as_json:
            print_json({"whole": True, "memories": manifest.memories, "bytes": manifest.length})
        else:
            print_lines(f"whole: {manifest.memories:,} memories, {manifest.length:,} bytes")
        return
    with _steps("bytes read and restored", store) as steps:
        restored = restore_backup(_settings(store), folder, replace=replace, steps=steps)
    if store.as_json:
        print_json(
            {"memories": restored.memories, "lost": restored.lost, "erased": restored.erased}
        )
    else:
        print_lines(
            f"restored {restored.memories:,} memories; {restored.lost:,} newer ones were lost,"
            f" {restored.erased:,} erased again"
        )


def _settings(store: StoreOptions) -> Settings:
    return load_settings({"data_dir": store.data_dir, "database_url": store.database_url})


@contextmanager
def _steps(what: str, store: StoreOptions) -> "Iterator[Steps]":
    """Show how far the work has come, once it is known how much there is."""
    from memory_tool.index_jobs.backup import Steps  # noqa: PLC0415 - loads NumPy

    with shown(quiet=store.as_json) as display:
        begun: list[Progress] = []

        def advance(done: int) -> None:
            begun[-1].advance(done)

        yield Steps(
            begin=lambda total: begun.append(Progress(display, what, total=total)), advance=advance
        )
