"""The brain of Threefold: one long-term memory for AI agents."""

from memory_manage.manager import MemoryManage
from memory_tool.model import NewMemory

__all__ = ["MemoryManage", "NewMemory"]
