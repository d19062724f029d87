"""``threefold tiers``: where memories are kept by their age, and moving them now."""

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_output import print_fields
from memory_manage.interfaces.cli_progress import shown
from memory_manage.interfaces.cli_session import print_json
from memory_manage.interfaces.cli_worker import opened_tool, stopping
from memory_tool.errors import InputError

if TYPE_CHECKING:
    from memory_tool.assembly import Ageing


@with_groups
def tiers(
    *,
    run: Annotated[
        bool, typer.Option("--run", help="Move now what is due, and not in the night.")
    ] = False,
    store: StoreOptions,
) -> None:
    """Count memories by tier, and what the archive of cold ones weighs.

    Hot memories are in both indexes, warm ones in the vector index with their words in PostgreSQL,
    cold ones as a summary with their text in an archive. Searches answer from all. Each night, or
    with --run, memories move to where their last change or use puts them: settings hot_days and
    warm_days. Broken off, it goes on where it was the next time.
    """
    with stopping() as stopped, opened_tool(store, applying=False) as tool:
        ageing = tool.stores.ageing
        if ageing is None:
            message = "this record store knows no tiers"
            raise InputError(message)
        moved = _moved(ageing, stopped, quiet=store.as_json) if run else None
        figures = ageing.figures()
    told: dict[str, Any] = {
        "memories": dict(figures.memories),
        "archive": {
            "on": ageing.archives,
            "files": figures.files,
            "bytes": figures.size,
            "stale": figures.stale,
        },
    }
    if moved is not None:
        told["moved"] = moved
    if store.as_json:
        print_json(told)
        return
    stale = f", {figures.stale:,} of them with lines that have to go" if figures.stale else ""
    lines = {tier: f"{count:,}" for tier, count in figures.memories.items()}
    lines["archive"] = f"{figures.files:,} files, {figures.size:,} bytes{stale}"
    if not ageing.archives:
        lines["archiving"] = "off: archive_dir names no folder that every host reaches"
    if moved is not None:
        lines["moved"] = f"{moved:,}"
    print_fields(lines)


def _moved(ageing: "Ageing", stopped: threading.Event, *, quiet: bool) -> int:
    with shown(quiet=quiet) as display:
        return ageing.move(
            lambda: not stopped.is_set(),
            lambda moved, known: display.at("moving", moved, total=known),
        )
