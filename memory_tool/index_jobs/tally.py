"""Counts what is applied to each target, and tells whoever watches."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from memory_tool.generations import Quality
from memory_tool.port_values import ChangeBatch, ChangeRow, TargetBase
from memory_tool.progress import Advance, Built, Watch

TOLD_ROWS: Final = 500
"""Rows between two words while a batch is read."""


@dataclass(slots=True)
class _Work:
    rows: int = 0
    seconds: float = 0.0


class Tally:
    """Rows and seconds for each target and each successor, until it is read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Count from nothing; nobody watches yet."""
        self.watch: Watch = lambda _step: None
        self._clock = clock
        self._work: dict[str, _Work] = {}

    @contextmanager
    def counted(
        self, name: str, target: str, *, batch: ChangeBatch, base: TargetBase, pending: int
    ) -> Iterator[ChangeBatch]:
        """The batch while ``name`` takes it, which is ``target`` or builds it; then it counts."""
        work = self._work.setdefault(name, _Work())
        begun, done = self._clock(), work.rows
        size = sum(clock - base.clocks.get(ns_id, 0) for ns_id, clock in batch.clocks.items())

        def tell(rows: int) -> None:
            self.watch(
                Advance(
                    target=target,
                    building=name != target,
                    applied=done + rows,
                    pending=max(0, pending - rows),
                )
            )

        def rows() -> Iterator[ChangeRow]:
            for number, row in enumerate(batch.rows, start=1):
                if number % TOLD_ROWS == 0:
                    tell(number)
                yield row

        yield dataclasses.replace(batch, rows=rows())
        work.rows += size
        work.seconds += self._clock() - begun
        tell(size)

    def built(
        self, name: str, target: str, *, quality: Quality, verified: bool, since: float
    ) -> None:
        """The successor ``name`` is what ``target`` reads; looking at it began at ``since``."""
        work = self._work.pop(name, _Work())
        seconds = work.seconds + self._clock() - since
        self.watch(Built(target=target, quality=quality, seconds=seconds, verified=verified))
