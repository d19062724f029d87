"""A store whose indexes are built anew in small batches, and what every search has to find.

Run as a module with its settings as JSON, it builds all indexes anew and says so at each step:
`test_renewals` kills it there.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest

from memory_tool.adapters import tantivy_target
from memory_tool.adapters.elasticsearch_successor import ElasticsearchSuccessor
from memory_tool.adapters.faiss_successor import FaissSuccessor
from memory_tool.bootstrap import open_tool
from memory_tool.index_jobs import renewals
from memory_tool.index_jobs.background import BackgroundApplier
from memory_tool.index_jobs.target_group import FULL
from memory_tool.model import MemoryId, NewMemory
from memory_tool.port_values import Patience
from memory_tool.progress import Advance, Built
from memory_tool.query import Arm, Query, Strategy, WeightedSum
from memory_tool.scope import Namespace, Scope
from memory_tool.settings import load_settings
from memory_tool.tool import MemoryTool

BATCH: Final = 20
LEASE_SECONDS: Final = 1.0
ALL: Final = 10_000
USERS: Final = (Namespace(user="anna"), Namespace(user="ben"))
WORD: Final = "tea"
"""Every memory says it, so a search for it has to find them all."""


def build_in_small_batches(patch: pytest.MonkeyPatch) -> None:
    """Twenty rows a batch, and a switch only when nothing is pending any more."""
    small = Patience(rows=BATCH, seconds=0.2, batch=BATCH)
    patch.setattr(FaissSuccessor, "batch", BATCH)
    patch.setattr(tantivy_target, "PATIENCE", small)
    patch.setattr(ElasticsearchSuccessor, "patience", small)
    patch.setattr(renewals, "SWITCH_ROWS", 0)


@dataclass(slots=True, kw_only=True)
class Site:
    """An open store that applies nothing by itself, and what was stored in it."""

    tool: MemoryTool
    settings: Mapping[str, Any]
    stored: dict[MemoryId, Namespace] = field(default_factory=dict)

    @property
    def background(self) -> BackgroundApplier:
        """What brings its indexes forward."""
        return cast("BackgroundApplier", self.tool.stores.background)

    @property
    def targets(self) -> tuple[str, str]:
        """The names of both indexes: words, vectors."""
        stores = self.tool.stores
        return stores.keyword_index.target, stores.vector_index.target

    def store(self, count: int, *, user: int = 0) -> None:
        """Add memories."""
        first = len(self.stored)
        news = [NewMemory(content=f"{WORD} number{first + at}") for at in range(count)]
        for result in self.tool.store(USERS[user], news):
            assert result.id is not None
            self.stored[result.id] = USERS[user]

    def remove(self, count: int) -> None:
        """Delete the oldest memories."""
        for memory_id in list(self.stored)[:count]:
            self.tool.remove(Scope.of(self.stored.pop(memory_id)), memory_id)

    def check(self) -> None:
        """Searches by words and by vectors find exactly what was stored, and lack no index."""
        for user in USERS:
            wanted = {memory_id for memory_id, whose in self.stored.items() if whose == user}
            for arm in (Arm.KEYWORD, Arm.VECTOR):
                strategy = Strategy(name="all", arms=(arm,), fusion=WeightedSum())
                answer = self.tool.search(
                    Query(text=WORD, scope=Scope.of(user), strategy=strategy, limit=ALL, depth=ALL),
                    lambda hits, _now: hits,
                )
                assert answer.degraded == ()
                assert {found.memory.id for found in answer.found} == wanted

    def clocks(self, user: int = 0) -> tuple[int, int]:
        """Up to which number the indexes that searches read hold a user: words, vectors."""
        stores = self.tool.stores
        (space,) = stores.records.view(Scope.of(USERS[user]), ()).namespaces
        keywords = stores.keyword_index.view(stores.pointer(self.targets[0]))
        vectors = stores.vector_index.view(stores.pointer(self.targets[1]))
        return keywords.clock(space.ns_id), vectors.clock(space.ns_id)

    def marks(self) -> tuple[str | None, str | None]:
        """Of what searches read: words, vectors."""
        stores = self.tool.stores
        keywords = stores.keyword_index.view(stores.pointer(self.targets[0]))
        vectors = stores.vector_index.view(stores.pointer(self.targets[1]))
        return keywords.mark, vectors.mark

    def rebuild(self) -> list[Built]:
        """A full build of both; what was built."""
        built: list[Built] = []

        def hear(step: Advance | Built) -> None:
            if isinstance(step, Built):
                built.append(step)

        self.background.watch(hear)
        outcomes = self.background.do(FULL, again=True, may_go_on=lambda: True)
        assert set(outcomes.values()) == {"done"}
        return built


def damage(site: Site) -> None:
    """Change a bit of every vector file that names memories."""
    for file in Path(site.settings["data_dir"]).rglob("gen-*/ids.u64"):
        file.write_bytes(b"\xaa" + file.read_bytes()[1:])


def batches_into(read: list[Advance]) -> Callable[[Advance | Built], None]:
    """Note the batches of what is being built."""

    def hear(step: Advance | Built) -> None:
        if isinstance(step, Advance) and step.building:
            read.append(step)

    return hear


@contextlib.contextmanager
def site_at(settings: Mapping[str, Any]) -> Iterator[Site]:
    """The store that these settings name."""
    with open_tool(load_settings({**settings, "applying": False}, environment={})) as tool:
        yield Site(tool=tool, settings=settings)


def _always() -> bool:
    return True


def main(settings: Mapping[str, Any]) -> None:
    """Build everything anew, and print the target at each step."""
    build_in_small_batches(pytest.MonkeyPatch())
    with site_at(settings) as site:

        def say(step: Advance | Built) -> None:
            sys.stdout.write(f"{type(step).__name__} {step.target}\n")
            sys.stdout.flush()

        site.background.watch(say)
        # The lease of one that was killed has to run out.
        while set(site.background.do(FULL, again=False, may_go_on=_always).values()) != {"done"}:
            time.sleep(LEASE_SECONDS / 4)
    sys.stdout.write("end\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
