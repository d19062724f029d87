"""The composition root of the brain: arguments and settings in, parts out."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from memory_manage.measuring import MeasuredCalibration
from memory_tool.assembly import Stores
from memory_tool.bootstrap import Given, open_tool
from memory_tool.settings import load_settings
from memory_tool.tool import MemoryTool

_GIVEN: Final = ("record_store", "vector_index", "keyword_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What :class:`~memory_manage.manager.MemoryManage` is made of."""

    tool: MemoryTool


def open_parts(
    arguments: Mapping[str, Any],
    *,
    stores: Stores | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Parts:
    """Open what the arguments name; see :meth:`memory_manage.manager.MemoryManage.open`."""
    values = dict(arguments)
    given = {name: values.pop(name) for name in _GIVEN if values.get(name) is not None}
    embedder = values.get("embedder")
    if embedder is not None and not isinstance(embedder, str):
        given["embedder"] = values.pop("embedder")
    settings = load_settings(values)
    side = (MeasuredCalibration(),)
    tool = open_tool(
        settings, Given(stores=stores, side=side, **given), on_progress=on_progress or _say
    )
    return Parts(tool=tool)


def _say(line: str) -> None:
    sys.stderr.write(f"threefold: {line}\n")
