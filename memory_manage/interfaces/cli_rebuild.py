"""``threefold rebuild``: offer a period of a job to all, and do it here if nobody else does."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_progress import duration, shown
from memory_manage.interfaces.cli_session import print_json, print_lines
from memory_manage.interfaces.cli_worker import background_of, opened_tool, stopping
from memory_tool.errors import InputError, Unavailable

if TYPE_CHECKING:
    from memory_tool.assembly import Background
    from memory_tool.progress import Advance, Built

_PERIODS: Final = {"incremental": "in this hour", "full": "on this day"}
_WAIT: Final = "left to another process"
_STOPPED: Final = "stopped; the next one goes on from here"


class Way(enum.StrEnum):
    """Where to go back to."""

    HOURLY = "hourly"
    DAILY = "daily"


@with_groups
def rebuild(
    *,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental", help="Apply everything pending, compare with PostgreSQL; once an hour."
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Build every index anew from PostgreSQL; once a day."),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="Read the indexes again that were read before."),
    ] = False,
    to: Annotated[
        Way, typer.Option(help="With --rollback: as of the last hour, or the last full build.")
    ] = Way.HOURLY,
    again: Annotated[
        bool,
        typer.Option("--again", help="Also if it was done in this hour, or on this day."),
    ] = False,
    store: StoreOptions,
) -> None:
    """Bring the indexes up to date, build them anew, or go back to earlier ones.

    Any number of timers on any number of hosts may call it: the first one does the work of a
    period, and what another process holds is left to that. Searches and writes go on meanwhile:
    a new index is built beside the one that is read, which follows until the new one has caught up,
    was compared with PostgreSQL and takes its place. Killed, it goes on where it was.
    """
    kind = _kind(incremental=incremental, full=full, rollback=rollback, way=to)
    report = _Report()
    with stopping() as stopped, opened_tool(store, applying=False) as tool:
        background = background_of(tool)
        with report.watching(background, building=full, quiet=store.as_json):
            outcomes = background.do(
                kind, again=again or rollback, may_go_on=lambda: not stopped.is_set()
            )
        groups = [
            {"group": name, "targets": list(background.targets[name]), "outcome": outcome}
            for name, outcome in outcomes.items()
        ]
    if store.as_json:
        print_json({"kind": kind, "groups": groups, **report.to_dict()})
        return
    print_lines(*report.lines())
    said = {
        "done before": f"done before {_PERIODS.get(kind, '')}",
        "left to another process": _STOPPED if stopped.is_set() else _WAIT,
    }
    for name, outcome in outcomes.items():
        print_lines(f"{', '.join(background.targets[name])}: {said.get(outcome, outcome)}")
    _check_gone_back(outcomes.values(), asked=rollback)


def _check_gone_back(outcomes: Iterable[str], *, asked: bool) -> None:
    """Nobody may believe that the indexes of before are read when they are not.

    Raises:
        Unavailable: Another process was told to, and may refuse.
    """
    if asked and "left to another process" in outcomes:
        message = "a worker holds an index and was told to go back: its log says what came of it"
        raise Unavailable(message, store="indexes")


def _kind(*, incremental: bool, full: bool, rollback: bool, way: Way) -> str:
    wanted = {"incremental": incremental, "full": full, f"back-{way}": rollback}
    named = [kind for kind, asked in wanted.items() if asked]
    if len(named) != 1:
        message = "say which: --incremental, --full or --rollback"
        raise InputError(message)
    return named[0]


class _Report:
    """What was done here, for the answer."""

    def __init__(self) -> None:
        self._built: list[Built] = []
        self._applied: dict[str, int] = {}

    @contextmanager
    def watching(self, background: "Background", *, building: bool, quiet: bool) -> Iterator[None]:
        """Show how far each target has come, and remember what becomes of it."""
        # Here, not above: what is told stands on NumPy, which takes time that --help does not have.
        from memory_tool.progress import Built  # noqa: PLC0415

        with shown(quiet=quiet) as display:

            def hear(step: "Advance | Built") -> None:
                if isinstance(step, Built):
                    self._built.append(step)
                    return
                if not step.building:
                    self._applied[step.target] = step.applied
                if step.building == building:
                    display.at(step.target, step.applied, total=step.applied + step.pending)

            background.watch(hear)
            yield

    def to_dict(self) -> Mapping[str, Any]:
        """For scripts."""
        return {
            "built": [
                {
                    "target": one.target,
                    **asdict(one.quality),
                    "seconds": round(one.seconds, 3),
                    "verified": one.verified,
                }
                for one in self._built
            ],
            "applied": self._applied,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        for one in self._built:
            quality = one.quality
            recall = ""
            if quality.recall is not None:
                recall = f", recall@10 {quality.recall:.3f} at width {quality.width}"
            compared = "the same as PostgreSQL" if one.verified else "not compared"
            yield (
                f"{one.target}: generation {quality.generation}, {quality.rows:,} chunks,"
                f" {quality.kind}{recall}, {compared}, {duration(one.seconds)}"
            )
        for target, rows in self._applied.items():
            if target not in {one.target for one in self._built}:
                yield f"{target}: {rows:,} changes applied"
