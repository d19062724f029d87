"""Memories that were stored while the embedder was down get their vectors later."""

from collections.abc import Callable, Sequence
from typing import Final

from memory_tool.log import logger
from memory_tool.model import StoredRow
from memory_tool.ports import VectorGaps

BATCH: Final = 100


class Backfill:
    """Completes vectors batch by batch, until none is missing or the embedder fails again."""

    def __init__(self, gaps: VectorGaps, complete: Callable[[Sequence[StoredRow]], int]) -> None:
        """``complete`` embeds and commits rows, and says how many got their vectors."""
        self._gaps = gaps
        self._complete = complete

    def run(self) -> int:
        """How many memories got their vectors."""
        total = 0
        while rows := self._gaps.without_vectors(BATCH):
            done = self._complete(rows)
            total += done
            if done < len(rows):
                break
        if total:
            logger().info("applied", target="missing vectors", pending=total)
        return total
