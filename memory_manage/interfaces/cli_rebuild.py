"""``threefold rebuild``: offer a period of a job to all, and do it here if nobody else does."""

from typing import Annotated, Final

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_session import print_json, print_lines
from memory_manage.interfaces.cli_worker import background_of, opened_tool, stopping
from memory_tool.errors import InputError

_PERIODS: Final = {"incremental": "in this hour", "full": "on this day"}


@with_groups
def rebuild(
    *,
    incremental: Annotated[
        bool,
        typer.Option("--incremental", help="Apply everything pending; once an hour."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Build every index anew from PostgreSQL; once a day."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Also if it was done in this hour, or on this day."),
    ] = False,
    store: StoreOptions,
) -> None:
    """Bring the indexes up to date, or build them anew.

    Any number of timers on any number of hosts may call it: the first one does the work of a
    period, and what another process holds is left to that. Searches go on meanwhile. During a full
    rebuild the vector index and Elasticsearch answer from the old build; Tantivy is emptied first,
    so that until it is there again keyword searches read PostgreSQL and say so.
    """
    if incremental == full:
        message = "say which: --incremental or --full"
        raise InputError(message)
    kind = "full" if full else "incremental"
    with stopping() as stopped, opened_tool(store, applying=False) as tool:
        background = background_of(tool)
        outcomes = background.do(kind, again=again, may_go_on=lambda: not stopped.is_set())
        groups = [
            {"group": name, "targets": list(background.targets[name]), "outcome": outcome}
            for name, outcome in outcomes.items()
        ]
    if store.as_json:
        print_json({"kind": kind, "groups": groups})
        return
    before = f"done before {_PERIODS[kind]}"
    for name, outcome in outcomes.items():
        said = before if outcome == "done before" else outcome
        print_lines(f"{', '.join(background.targets[name])}: {said}")
