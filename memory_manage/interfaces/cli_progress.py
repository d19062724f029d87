"""How far long work has come: bars on a terminal, a line now and then elsewhere, on standard error.

The answer alone is on standard output, so a script can read it while people see that it goes on.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

LINE_SECONDS: Final = 5.0
"""Between two lines about the same work, where there is no terminal."""

_MINUTE: Final = 60
_HOUR: Final = 3600


class Shown(Protocol):
    """Whatever shows how far several pieces of work have come."""

    def at(self, what: str, done: int, *, total: int) -> None:
        """So much of a piece of work is done; the total may change."""
        ...


class Progress:
    """How far one piece of work has come."""

    def __init__(self, shown: Shown, what: str, *, total: int) -> None:
        self._shown = shown
        self._what = what
        self._total = total
        self._done = 0
        shown.at(what, 0, total=total)

    def advance(self, count: int = 1) -> None:
        """So much more is done."""
        self._done += count
        self._shown.at(self._what, self._done, total=max(self._total, self._done))


@contextmanager
def progress(total: int, what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show one piece of work of ``total`` parts."""
    with shown(quiet=quiet) as display:
        yield Progress(display, what, total=total)


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[Shown]:
    """Show several pieces of work, each by its name; ``quiet`` shows nothing."""
    if quiet:
        yield _Nothing()
    elif sys.stderr.isatty():
        with _bars() as bars:
            yield bars
    else:
        yield _Lines()


class _Nothing:
    """Shows nothing."""

    def at(self, what: str, done: int, *, total: int) -> None:
        """Nothing."""


class _Lines:
    """A line for each piece of work: when it begins and ends, and now and then in between."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[float, int]] = {}
        self._said: dict[str, tuple[float, int]] = {}

    def at(self, what: str, done: int, *, total: int) -> None:
        """See :class:`Shown`."""
        now = time.monotonic()
        begun, before = self._begun.setdefault(what, (now, done))
        said_at, said = self._said.get(what, (0.0, -1))
        if done == said or (done < total and said >= 0 and now - said_at < LINE_SECONDS):
            return
        self._said[what] = now, done
        line = progress_line(what, done, total=total, fresh=done - before, seconds=now - begun)
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


@contextmanager
def _bars() -> Iterator[Shown]:
    # Here, not above: a display that --help has no use for.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Display  # noqa: PLC0415

    class Bars:
        """One bar for each piece of work."""

        def __init__(self, display: Display) -> None:
            self._display = display
            self._tasks: dict[str, TaskID] = {}

        def at(self, what: str, done: int, *, total: int) -> None:
            """See :class:`Shown`."""
            if what not in self._tasks:
                self._tasks[what] = self._display.add_task(what, total=total)
            self._display.update(self._tasks[what], completed=done, total=total)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Display(*columns, console=Console(stderr=True)) as display:
        yield Bars(display)


def progress_line(what: str, done: int, *, total: int, fresh: int, seconds: float) -> str:
    """A line for people.

    Args:
        what: The work.
        done: How much of it is done.
        total: How much there is.
        fresh: How much of that was done in these seconds: the rest was there before.
        seconds: How long it has taken.
    """
    line = f"{what}: {done:,} of {total:,}"
    if fresh <= 0 or seconds <= 0:
        return line
    rate = fresh / seconds
    if done >= total:
        return f"{line} in {duration(seconds)}, {rate:,.0f}/s"
    return f"{line}, {rate:,.0f}/s, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    """A length of time for people."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"
