"""The brain of Threefold: one long-term memory for AI agents."""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_manage.async_manager import AsyncMemoryManage
    from memory_manage.manager import MemoryManage
    from memory_tool.model import NewMemory

__all__ = ["AsyncMemoryManage", "MemoryManage", "NewMemory"]

_HOMES: Final = {
    "AsyncMemoryManage": "memory_manage.async_manager",
    "MemoryManage": "memory_manage.manager",
    "NewMemory": "memory_tool.model",
}


def __getattr__(name: str) -> object:
    """Load a name when it is asked for: ``threefold --help`` doesn't wait for NumPy and FAISS."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_HOMES[name]), name)
