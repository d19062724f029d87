"""Rows of deleted memories go for good once every index has let go of them."""

from typing import Final

from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.tier_ports import Tombstones

_BATCH: Final = 1_000


class Purge:
    """Removes rows of deleted memories, some hours after they were deleted."""

    def __init__(self, tombstones: Tombstones, *, hours: float) -> None:
        """Do nothing yet."""
        self._tombstones = tombstones
        self._hours = hours

    def run(self, may_go_on: MayGoOn) -> None:
        """Batch after batch, until nothing is left that may go."""
        total = 0
        while may_go_on() and (removed := self._tombstones.purge(self._hours, _BATCH)):
            total += removed
        if total:
            logger().info("purged", rows=total)
