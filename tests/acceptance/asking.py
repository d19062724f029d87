"""Asking a memory in every way there is, and reading the answers."""

import base64
import json
from collections.abc import Iterable
from typing import Final, Literal, Unpack

from memory_manage.manager import MemoryManage
from memory_manage.options import ReadScopeOptions, SearchOptions
from memory_manage.results import MemoryItem, WriteItem

MODES: Final[tuple[Literal["keyword", "vector", "hybrid"], ...]] = ("keyword", "vector", "hybrid")


def texts(items: Iterable[MemoryItem]) -> list[str]:
    """The texts of an answer, in its order."""
    return [item.memory for item in items]


def ids(items: Iterable[MemoryItem]) -> list[str]:
    """The ids of an answer, in its order."""
    return [item.id for item in items]


def statuses(items: Iterable[WriteItem]) -> list[str]:
    """What became of each input."""
    return [item.status for item in items]


def found(memory: MemoryManage, query: str, **options: Unpack[SearchOptions]) -> set[str]:
    """The texts that any mode of search finds, however unlike the question they are."""
    widest: SearchOptions = {"limit": 200, "threshold": 0.0, **options}
    answers: set[str] = set()
    for mode in MODES:
        asked: SearchOptions = {**widest, "mode": mode}
        answers.update(texts(memory.search(query, **asked)))
    return answers


def seen(memory: MemoryManage, query: str, **scope: Unpack[ReadScopeOptions]) -> set[str]:
    """The texts that any search or listing of a scope shows."""
    scoped = memory.scoped(**scope)
    return found(scoped, query) | set(texts(scoped.get_all()))


def tampered(cursor: str | None, *, place: int, value: object) -> str:
    """The cursor with another value in one of its places."""
    padded = f"{cursor}{'=' * (-len(cursor or '') % 4)}"
    parts = json.loads(base64.urlsafe_b64decode(padded))
    parts[place] = value
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
