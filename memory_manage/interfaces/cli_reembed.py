"""``threefold reembed``: change the embedding model of a store while it is in use."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_progress import shown
from memory_manage.interfaces.cli_session import note, print_json, print_lines
from memory_manage.interfaces.cli_worker import stopping
from memory_tool.errors import InputError, SpaceMismatch, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory_manage.interfaces.cli_progress import Shown
    from memory_tool.assembly import ChangeOfModel
    from memory_tool.job_values import MayGoOn
    from memory_tool.space_values import KnownSpace, Step
    from memory_tool.tool import MemoryTool


@with_groups
def reembed(
    *,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The new model, as the setting `embedder` would name it."),
    ] = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Change back to the space before.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget the space before, or give up a change begun."),
    ] = False,
    store: StoreOptions,
) -> None:
    """Make every vector anew with another model, from the stored texts, while the old ones serve.

    Searches and writes go on, and compare vectors of one model only at any moment. When all vectors
    and their indexes are there and were checked, the store is switched to them in one step. Other
    processes follow without a restart, unless their settings name another model. The old vectors
    are kept for --rollback until --forget, or until the next change. What is interrupted goes on
    when it is run again, or in whichever process brings indexes forward.
    """
    if sum((model is not None, rollback, forget)) != 1:
        message = "say which: --model NAME, --rollback or --forget"
        raise InputError(message)
    with stopping() as stopped, _opened(store) as tool:
        change = _change_of(tool)
        if forget:
            _forget(change, lambda: not stopped.is_set(), store=store)
            return
        coming = change.back() if model is None else change.begin(model)
        with shown(quiet=store.as_json) as display:
            done = change.run(
                lambda: not stopped.is_set(),
                lambda step: _say(step, display, quiet=store.as_json),
            )
        active = tool.stores.active() == coming.number
    _report(coming, done=done and active, store=store)


def _say(step: "Step", display: "Shown", *, quiet: bool) -> None:
    if step.every:
        display.at(step.what, step.done, total=step.every)
    elif not quiet:
        note(step.what)


def _forget(change: "ChangeOfModel", may_go_on: "MayGoOn", *, store: StoreOptions) -> None:
    count = change.forget(may_go_on)
    if store.as_json:
        print_json({"forgotten": count})
    else:
        print_lines(f"forgotten: {count} embedding space{'' if count == 1 else 's'}")


def _report(coming: "KnownSpace", *, done: bool, store: StoreOptions) -> None:
    if not done:
        message = "it is not done yet: run it again to go on, or leave it to the store's workers"
        raise Unavailable(message)
    if store.as_json:
        print_json({"space": coming.space.name, "number": coming.number, "active": True})
        return
    print_lines(f"the store searches vectors of {coming.space.name} now")
    if coming.state == "active":
        print_lines("it did before: nothing had to be done")
        return
    print_lines(
        "the ones before are kept: threefold reembed --rollback goes back,"
        " threefold reembed --forget lets go of them",
    )


def _ignore(_line: str) -> None:
    pass


def _change_of(tool: "MemoryTool") -> "ChangeOfModel":
    change = tool.stores.change_of_model
    if change is None:
        message = "the embedding model of this store can't be changed in place"
        raise InputError(message)
    return change


@contextmanager
def _opened(store: StoreOptions) -> "Iterator[MemoryTool]":
    # Here, not above: NumPy, FAISS and psycopg take a second that --help does not have.
    from memory_manage.bootstrap import open_parts  # noqa: PLC0415

    arguments = {
        "data_dir": store.data_dir,
        "database_url": store.database_url,
        "applying": False,
    }
    try:
        parts = open_parts(arguments, on_progress=_ignore)
    except SpaceMismatch:
        # The settings name the new model already: what is recorded is opened all the same.
        parts = open_parts({**arguments, "embedder": ""}, on_progress=_ignore)
    with parts.tool as tool:
        yield tool
