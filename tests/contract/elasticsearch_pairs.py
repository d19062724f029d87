"""Indexes on a real Elasticsearch with the targets that feed them, for the contracts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_tool.adapters.elasticsearch_connection import Access
from memory_tool.port_values import NO_POINTER, Pointer
from memory_tool.ports import KeywordIndex, KeywordView
from tests.contract.keyword_rows import NotedProgress
from tests.services.elasticsearch import ElasticsearchServer


def access_of(server: ElasticsearchServer) -> Access:
    """How the server of the tests is reached."""
    return Access(
        hosts=tuple(server.url.split(",")), user=server.user, password=server.password, seconds=20.0
    )


@dataclass(slots=True)
class PointerLog(NotedProgress):
    """A change log that keeps a pointer, and for which every target is up to date."""

    pointers: dict[str, Pointer] = field(default_factory=dict)

    def pending(self, clocks: Mapping[int, int]) -> int:
        """Nothing."""
        return 0

    def knows(self, target: str, mark: str) -> bool:
        """Every mark."""
        return True

    def pointer(self, target: str) -> Pointer | None:
        """See :meth:`memory_tool.log_ports.ChangeLog.pointer`."""
        return self.pointers.get(target)

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """See :meth:`memory_tool.log_ports.ChangeLog.publish`."""
        current = self.pointers.get(pointer.target)
        if base_mark is not None and base_mark != (current.mark if current else NO_POINTER):
            return False
        self.pointers[pointer.target] = pointer
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class PointedKeywordIndex(KeywordIndex):
    """An index that is always asked for what the log's pointer names, as the read path does."""

    index: KeywordIndex
    log: PointerLog

    @property
    def target(self) -> str:
        """See :attr:`memory_tool.ports.KeywordIndex.target`."""
        return self.index.target

    def view(self, pointer: Pointer | None = None) -> KeywordView:
        """See :meth:`memory_tool.ports.KeywordIndex.view`."""
        return self.index.view(pointer or self.log.pointer(self.target))

    def close(self) -> None:
        """See :meth:`memory_tool.ports.KeywordIndex.close`."""
        self.index.close()
