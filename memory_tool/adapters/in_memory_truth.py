"""The in-memory truth behind one object: a memory without a server, for tests and trials."""

from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_reader import InMemoryRecordReader
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore


class InMemoryTruth(InMemoryRecordStore, InMemoryRecordReader, InMemoryChangeLog):
    """Every port of a record store. Give it to ``MemoryManage.open(record_store=…)``."""

    def __init__(self, store: InMemoryStore | None = None) -> None:
        """Start empty, or go on with ``store``."""
        shared = store or InMemoryStore()
        InMemoryRecordStore.__init__(self, shared)
        InMemoryRecordReader.__init__(self, shared)
        InMemoryChangeLog.__init__(self, shared)
