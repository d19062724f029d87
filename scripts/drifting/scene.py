"""A store of its own with some hundred memories, whose indexes and truth can be spoilt."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from memory_tool.bootstrap import open_tool
from memory_tool.inspection_ports import TruthSide
from memory_tool.log_ports import ChangeLog
from memory_tool.model import MemoryId, NewMemory
from memory_tool.port_values import ChangeRow, TargetBase
from memory_tool.scope import Namespace, Scope
from memory_tool.settings import Settings
from memory_tool.tool import MemoryTool
from scripts.drifting.lies import Liar, folder_liars, server_liars

PROJECTS: Final = ("tea", "茶", "rivers", "empty shelf")
MEMORIES: Final = 240
LONG_EVERY: Final = 6
"""One memory in six has several chunks."""

_ENGLISH: Final = (
    "the harbour office keeps ledger {n} in the green cabinet beside the window",
    "meeting {n} about the budget was moved to the third floor",
    "Oskar prefers train {n} because it stops at the old mill",
    "recipe {n} needs two lemons, a little ginger and patience",
)
_CHINESE: Final = (
    "第{n}号会议改到了周四下午，地点在三楼",
    "小林喜欢喝第{n}种乌龙茶，不加糖",
    "仓库里的{n}号箱子装着去年的账本",
    "从上海到苏州的{n}次列车经常晚点",
)


def text(number: int) -> str:
    """The text of a memory, Chinese or English, short or long."""
    kinds = _CHINESE if number % 2 else _ENGLISH
    sentences = 24 if number % LONG_EVERY == 0 else 1
    said = (
        kinds[(number + at) % len(kinds)].format(n=number * 100 + at) for at in range(sentences)
    )
    return "。".join(said) if number % 2 else ". ".join(said)


@dataclass(slots=True, kw_only=True)
class Scene:
    """An opened store with everything that can be spoilt.

    Attributes:
        tool: The store, which applies nothing by itself.
        truth: What a check knows it by.
        liars: A way to lie to each of its indexes.
        server: Parameters of the embedded PostgreSQL, for a worker.
        folder: The data folder.
        remote: Whether the indexes are on a server.
    """

    tool: MemoryTool
    truth: TruthSide
    liars: Mapping[str, Liar]
    server: str
    folder: Path
    remote: bool
    _taken: set[MemoryId] = field(default_factory=set)

    @property
    def log(self) -> ChangeLog:
        """The log of the store."""
        return self.truth.log

    @contextlib.contextmanager
    def sabotage(self) -> "Iterator[psycopg.Connection]":
        """The truth itself, past all that guards it."""
        with psycopg.connect(self.server, autocommit=True) as connection:
            yield connection

    def rows(self, liar: Liar) -> Mapping[tuple[int, MemoryId], ChangeRow]:
        """Every row as this index should hold it, deleted ones too."""
        nothing = TargetBase(mark=None, clocks={})
        with self.log.changes(liar.name, liar.kind, base=nothing, limit=10**9) as batch:
            return {(row.ns_id, row.memory_id): row for row in batch.rows}

    def victim(self, liar: Liar, *, chunks: int = 1) -> ChangeRow:
        """A live memory with so many chunks or more that no seed has touched yet."""
        for row in self.rows(liar).values():
            if row.live and len(row.chunks) >= chunks and row.memory_id not in self._taken:
                self._taken.add(row.memory_id)
                return row
        message = "all memories are spoilt"
        raise LookupError(message)

    def other_namespace(self, ns_id: int) -> int:
        """Another namespace of the store."""
        return next(other for other in self.truth.audit.clocks() if other != ns_id)

    def delete(self, memory_id: MemoryId) -> None:
        """Delete a memory, and let every index know."""
        self.tool.remove(Scope.of(Namespace(user="drift")), memory_id)
        self.tool.apply_now()


@contextlib.contextmanager
def scene_at(
    folder: Path,
    *,
    memories: int = MEMORIES,
    **settings: Any,  # noqa: ANN401 - settings of every type
) -> Iterator[Scene]:
    """A scene in an empty folder; ``settings`` name an Elasticsearch, if there is one."""
    chosen = dataclasses.replace(
        Settings(
            data_dir=folder,
            embedder="hashing",
            applying=False,
            chunk_tokens=48,
            chunk_overlap=8,
            # Graphs too, though there are but some hundred rows.
            hnsw_min_rows=40,
        ),
        **settings,
    )
    with ExitStack() as opened:
        tool = opened.enter_context(open_tool(chosen))
        truth = tool.stores.truth_side
        if truth is None:
            message = "this store has no check"
            raise LookupError(message)
        for place, project in enumerate(PROJECTS):
            # The last one gets one memory only.
            numbers = range(place, memories, 3) if place < len(PROJECTS) - 1 else range(1)
            news = [NewMemory(content=text(number), tags=("made",)) for number in numbers]
            tool.store(Namespace(user="drift", project=project), news)
        tool.apply_now()
        makers = server_liars if chosen.elasticsearch_url else folder_liars
        liars = {liar.name: liar for liar in makers(chosen, tool, truth=truth)}
        server = opened.enter_context(EmbeddedPostgres(folder))
        yield Scene(
            tool=tool,
            truth=truth,
            liars=liars,
            server=server.conninfo(role=Role.WORKER),
            folder=folder,
            remote=bool(chosen.elasticsearch_url),
        )
