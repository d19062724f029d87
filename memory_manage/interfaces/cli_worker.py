"""``threefold worker``: a process that brings indexes forward and does jobs, and nothing else."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from memory_manage.interfaces.cli_errors import OK, UNAVAILABLE
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_session import print_json, print_lines
from memory_tool.errors import InputError
from memory_tool.heartbeat import beat, fall_silent, silent_since
from memory_tool.settings import Settings, load_settings

if TYPE_CHECKING:
    from types import FrameType

    from memory_tool.assembly import Background
    from memory_tool.job_values import MayGoOn
    from memory_tool.tool import MemoryTool

_BEATS: Final = 4
"""Heartbeats in a lease: one that comes late is no death."""

Handler = Callable[[int, "FrameType | None"], object] | int | None


@with_groups
def worker(
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="Apply everything pending, do the jobs that are due, end."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only say whether the folder's worker is alive: status 0, else 4."
        ),
    ] = False,
    store: StoreOptions,
) -> None:
    """Bring the indexes forward and do the jobs of the store, until SIGTERM or Ctrl-C.

    Any number may run, on any number of hosts: one of them at a time applies to an index, and the
    others take over when it ends. Each data folder whose indexes are in files needs one, unless its
    own processes do it (THREEFOLD_APPLYING).
    """
    if once and check:
        message = "--once and --check are two commands: give one of them"
        raise InputError(message)
    settings = _settings(store)
    if check:
        raise typer.Exit(_checked(settings, as_json=store.as_json))
    with stopping() as stopped:
        if once:
            with opened_tool(store, applying=False) as tool:
                _apply_once(background_of(tool), lambda: not stopped.is_set(), store=store)
        else:
            # Here, not above: structlog takes time that --help and --check do not have.
            from memory_tool.log import log_as_json  # noqa: PLC0415

            log_as_json()
            with opened_tool(store, applying=True) as tool:
                targets = background_of(tool).targets
                _say_started(targets=[name for group in targets.values() for name in group])
                serve(tool, stopped)


def serve(tool: "MemoryTool", stopped: threading.Event) -> None:
    """Give signs of life while the tool's background works; stop it without a backlog's delay."""
    background, settings = background_of(tool), tool.settings
    try:
        while not stopped.is_set():
            if background.alive():
                beat(settings.data_dir)
            stopped.wait(settings.lease_seconds / _BEATS)
        background.stop()
    finally:
        fall_silent(settings.data_dir)


@contextmanager
def stopping() -> "Iterator[threading.Event]":
    """An event that SIGTERM and SIGINT set; a second signal ends the process at once."""
    stopped = threading.Event()

    def stop(number: int, _frame: "FrameType | None") -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    before: dict[signal.Signals, Handler] = {
        number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def background_of(tool: "MemoryTool") -> "Background":
    """What applies in the background of an opened tool.

    Raises:
        InputError: Its record store has no log to follow.
    """
    background = tool.stores.background
    if background is None:
        message = "this record store has no log that a worker could follow"
        raise InputError(message)
    return background


@contextmanager
def opened_tool(store: StoreOptions, *, applying: bool) -> "Iterator[MemoryTool]":
    """The hands alone, with or without threads that apply, closed afterwards."""
    # Here, not above: NumPy, FAISS and psycopg take a second that --help and --check do not have.
    from memory_manage.bootstrap import open_parts  # noqa: PLC0415

    arguments = {
        "data_dir": store.data_dir,
        "database_url": store.database_url,
        "applying": applying,
    }
    with open_parts(arguments, on_progress=lambda _line: None).tool as tool:
        yield tool


def _settings(store: StoreOptions) -> Settings:
    return load_settings({"data_dir": store.data_dir, "database_url": store.database_url})


def _checked(settings: Settings, *, as_json: bool) -> int:
    silence = silent_since(settings.data_dir)
    alive = silence is not None and silence <= settings.lease_seconds
    if as_json:
        print_json({"alive": alive, "silent_seconds": silence})
    elif silence is None:
        print_lines(f"no worker runs on {settings.data_dir}")
    else:
        said = "is alive" if alive else "is gone or stands still"
        print_lines(
            f"the worker of {settings.data_dir} {said}: {silence:.1f} s since its last sign"
        )
    return OK if alive else UNAVAILABLE


def _apply_once(background: "Background", may_go_on: "MayGoOn", *, store: StoreOptions) -> None:
    done = background.once(may_go_on)
    groups = [
        {"group": name, "targets": list(background.targets[name]), "applied": here}
        for name, here in done.items()
    ]
    if store.as_json:
        print_json({"groups": groups})
        return
    for name, here in done.items():
        said = "applied" if here else "left to the process that holds it"
        print_lines(f"{', '.join(background.targets[name])}: {said}")


def _say_started(*, targets: list[str]) -> None:
    print_lines(f"threefold worker: follows the log with {', '.join(targets)}")
