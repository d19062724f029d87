"""Memories that were stored while the embedder was down get their vectors later."""

from collections.abc import Callable, Sequence
from typing import Final

from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.log_ports import VectorGaps
from memory_tool.model import StoredRow

BATCH: Final = 100


class Backfill:
    """Completes vectors one batch a call, so that whoever calls it never waits long for it."""

    def __init__(self, gaps: VectorGaps, complete: Callable[[Sequence[StoredRow]], int]) -> None:
        """``complete`` embeds and commits rows, and says how many got their vectors."""
        self._gaps = gaps
        self._complete = complete

    def run(self) -> int:
        """How many memories of the next batch got their vectors; more may be missing."""
        rows = self._gaps.without_vectors(BATCH)
        done = self._complete(rows) if rows else 0
        if done:
            logger().info("applied", target="missing vectors", pending=done)
        return done

    def run_on(self, may_go_on: MayGoOn) -> None:
        """Batch after batch, while they help."""
        while may_go_on() and self.run():
            pass
