"""Damage is looked for before a search meets it."""

from collections.abc import Callable

from memory_tool.errors import Corrupt
from memory_tool.index_jobs.target_group import TargetGroup
from memory_tool.job_ports import Scrubbed
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.port_values import Pointer


class Scrub:
    """Reads a whole index; what is found damaged is built anew."""

    def __init__(
        self,
        index: Scrubbed,
        *,
        pointer: Callable[[str], Pointer | None],
        group: TargetGroup,
    ) -> None:
        """``pointer`` tells the generation to read, ``group`` has the index among its targets."""
        self._index = index
        self._pointer = pointer
        self._group = group

    def run(self, may_go_on: MayGoOn) -> None:
        """Read it."""
        target = self._index.target
        try:
            # A worker searches nothing, so nothing was viewed before.
            self._index.view(self._pointer(target))
            self._index.scrub()
        except Corrupt as error:
            logger().warning("index_distrusted", target=target, reason=str(error))
            self._group.rebuild(may_go_on, targets=[target], reason=str(error))
