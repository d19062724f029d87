"""Reading without searching, as patient as the paths are with a store that is away for a moment."""

from collections.abc import Mapping, Sequence

from memory_tool.model import Memory, MemoryId, StoredRow
from memory_tool.port_values import PageRequest
from memory_tool.ports import RecordReader
from memory_tool.retry import RetryPolicy, retrying
from memory_tool.scope import Scope


class PatientReader(RecordReader):
    """See :class:`memory_tool.ports.RecordReader`. Reading again does no harm."""

    def __init__(self, reader: RecordReader, policy: RetryPolicy) -> None:
        self._reader = reader
        self._policy = policy

    def fetch(self, scope: Scope, ids: Sequence[MemoryId]) -> Mapping[MemoryId, StoredRow]:
        """See :meth:`memory_tool.ports.RecordReader.fetch`."""
        return retrying(self._policy, "fetch")(self._reader.fetch, scope, ids)

    def page(self, scope: Scope, request: PageRequest) -> tuple[StoredRow, ...]:
        """See :meth:`memory_tool.ports.RecordReader.page`."""
        return retrying(self._policy, "page")(self._reader.page, scope, request)

    def history(self, scope: Scope, memory_id: MemoryId) -> tuple[Memory, ...]:
        """See :meth:`memory_tool.ports.RecordReader.history`."""
        return retrying(self._policy, "history")(self._reader.history, scope, memory_id)

    def deleted(self, scope: Scope, ids: Sequence[MemoryId]) -> frozenset[MemoryId]:
        """See :meth:`memory_tool.ports.RecordReader.deleted`."""
        return retrying(self._policy, "deleted")(self._reader.deleted, scope, ids)

    def counts(self) -> Mapping[str, int]:
        """See :meth:`memory_tool.ports.RecordReader.counts`."""
        return retrying(self._policy, "counts")(self._reader.counts)
