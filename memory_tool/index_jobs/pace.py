"""A job that writes much waits for the indexes, so that searches have little to make up for."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from memory_tool.errors import Unavailable
from memory_tool.job_values import MayGoOn
from memory_tool.log_ports import ChangeFigures

LOOK_EVERY: Final = 500
"""Rows after which it is asked how far the indexes are, which reads the clocks of the store."""

_POLL_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 600.0
"""An index that doesn't come forward for so long won't soon: the job is tried again later."""


class Pace:
    """Lets a job go on while no index lacks more rows than a search makes up for with ease."""

    def __init__(
        self,
        figures: ChangeFigures,
        targets: Callable[[], Iterable[str]],
        *,
        most: int,
        hurry: Callable[[], None],
    ) -> None:
        """Wait where ``targets`` lack more than ``most`` rows; ``hurry`` brings them forward.

        Which they are is asked each time: a change of model follows others.
        """
        self._figures = figures
        self._targets = targets
        self._most = most
        self._hurry = hurry
        self._written = 0

    def wait(self, rows: int, may_go_on: MayGoOn) -> None:
        """So many rows were written: go on when the indexes have nearly all.

        Raises:
            Unavailable: An index doesn't come forward.
        """
        self._written += rows
        if self._written < LOOK_EVERY:
            return
        self._written = 0
        if self._behind() <= self._most:
            return
        self._hurry()
        end = time.monotonic() + _PATIENCE_SECONDS
        while may_go_on() and (behind := self._behind()) > LOOK_EVERY:
            if time.monotonic() > end:
                message = f"the indexes are {behind:,} rows behind and don't come forward"
                raise Unavailable(message, store="indexes")
            time.sleep(_POLL_SECONDS)

    def _behind(self) -> int:
        return max((self._figures.lag(target).rows for target in self._targets()), default=0)
