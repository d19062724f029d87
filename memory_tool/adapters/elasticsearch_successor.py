"""An Elasticsearch index that is being built: followed batch by batch, and read by nobody."""

import time
from typing import Final

from memory_tool.adapters.elasticsearch_connection import Body
from memory_tool.adapters.elasticsearch_control import Control, read_stamp
from memory_tool.adapters.elasticsearch_generations import Generation
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.errors import Corrupt
from memory_tool.generations import successor_name
from memory_tool.log_ports import ChangeLog
from memory_tool.port_values import ChangeBatch

LOOK_SECONDS: Final = 60.0
"""How often an index is looked for that another process began and left. Whoever asks for a rebuild
looks at once."""


class ElasticsearchSuccessor(ElasticsearchTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`."""

    def __init__(self, target: ElasticsearchTarget, log: ChangeLog) -> None:
        """Touch nothing yet; it becomes what ``target`` is to read."""
        super().__init__(
            target.generations,
            name=successor_name(target.name),
            layout=target.layout,
            log=log,
            patience=target.patience,
        )
        self._target = target
        self._begun_here = False
        self._found: Generation | None = None
        self._looked_for_at: float | None = None

    def begin(self) -> None:
        """Begin with the next batch, unless one was begun before."""
        self._looked_for_at = None
        self._begun_here = True

    def begun(self) -> bool:
        """Whether there is one."""
        return self._begun_here or self.built() is not None

    def built(self) -> Generation | None:
        """The index so far: the newest whose mark the truth knows of a successor."""
        if self._found is None and self._is_time_to_search():
            self._found = self._search()
        return self._found

    def looked_for(self) -> Generation | None:
        """The same, looked for now."""
        self._looked_for_at = None
        return self.built()

    def mark_of(self, generation: Generation) -> str | None:
        """The mark of what was built.

        Raises:
            Corrupt: It is gone, or no longer what was written.
        """
        with self._applying:
            return self._control(generation).stamp.mark

    def end(self) -> None:
        """It is none any more; an index that is read is left alone."""
        self._begun_here = False
        self._found = self._standing = None
        self._looked_for_at = time.monotonic()

    def close(self) -> None:
        """Forget which index it is: another process may go on with it, or end it."""
        self._found = self._standing = None
        self._looked_for_at = None

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        former = self.built()
        super().reset()
        self.end()
        self.begin()
        if former is not None:
            self.generations.remove([former])

    def _written(self) -> Generation | None:
        return self.built()

    def _made(self, batch: ChangeBatch, wanted: Body) -> tuple[Generation, Control]:
        made = super()._made(batch, wanted)
        self._found = made[0]
        return made

    def number_read(self) -> int:
        """See :meth:`ElasticsearchTarget.number_read`."""
        return self._target.number_read()

    def _applied(self, generation: Generation, *, mark: str) -> None:
        """It is read when whoever builds it says so."""

    def _is_time_to_search(self) -> bool:
        now = time.monotonic()
        if self._looked_for_at is not None and now - self._looked_for_at < LOOK_SECONDS:
            return False
        self._looked_for_at = now
        return True

    def _search(self) -> Generation | None:
        for generation in reversed(self.generations.all()):
            try:
                mark = read_stamp(self._connection, generation.index).stamp.mark
            except Corrupt:
                continue
            if mark is not None and self._log.knows(self._name, mark):
                return generation
        return None
