"""The protocol under faults: whatever happens, a search sees exactly what may be seen."""

import contextlib
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory_tool.query import Arm
from memory_tool.scope import Namespace, Scope
from memory_tool.text.tokenise import tokenise
from tests.property.simulated_world import NAMESPACES, WORDS, Crash, Process, World

SEEDS = int(os.environ.get("THREEFOLD_TEST_SEEDS", "150"))
STEPS = 60
_HOUR = timedelta(hours=1)


class History:
    """One seed: steps in random order, and a look at the answers after each."""

    def __init__(self, seed: int) -> None:
        """A world with nothing saved yet."""
        self.world = World(seed)
        self.saved: list[Callable[[], None]] = []

    def run(self) -> None:
        """All steps, then everything is brought forward and must agree."""
        steps = {
            self.write: 40,
            self.apply: 25,
            self.save: 5,
            self.set_back: 3,
            self.lose: 3,
            self.restart: 5,
            self.wait: 5,
        }
        for _ in range(STEPS):
            step = self.world.rng.choices(list(steps), list(steps.values()))[0]
            step()
            self.check(self.world.rng.choice(self.world.processes))
        for process in self.world.processes:
            self.check(process)
        self.settle()

    def write(self) -> None:
        """One write of one process, which may not survive it."""
        world = self.world
        process = world.rng.choice(world.processes)
        action = world.rng.choices((world.add, world.change, world.remove), (6, 3, 2))[0]
        try:
            action(process)
        except Crash:
            world.restart(process)

    def apply(self) -> None:
        """One folder is brought forward, or its holder dies doing so."""
        with contextlib.suppress(Crash):
            self.world.apply(self.world.rng.choice(self.world.folders))

    def save(self) -> None:
        """A backup of the truth, or of one folder."""
        world = self.world
        folder = world.rng.choice(world.folders)
        which = world.rng.choice(("truth", "vectors", "keywords"))
        if which == "truth":
            self.saved.append(_truth_restorer(world))
        else:
            part: Any = getattr(folder, which)
            dump = part.dump()
            self.saved.append(lambda: part.restore(dump))

    def set_back(self) -> None:
        """A backup comes back, as old as it is."""
        if self.saved:
            self.world.rng.choice(self.saved)()

    def lose(self) -> None:
        """A folder's indexes are gone."""
        folder = self.world.rng.choice(self.world.folders)
        empty = World(0).folders[0]
        if self.world.rng.random() < 0.5:  # either of the two
            folder.vectors.restore(empty.vectors.dump())
        else:
            folder.keywords.restore(empty.keywords.dump())

    def restart(self) -> None:
        """A process forgets what it remembered."""
        self.world.restart(self.world.rng.choice(self.world.processes))

    def wait(self) -> None:
        """Time passes; some memories expire."""
        self.world.now += _HOUR

    def check(self, process: Process) -> None:
        """Promises P3 and P4: exactly the visible rows, with their present texts."""
        world = self.world
        scope = world.rng.choice(NAMESPACES)
        visible = {
            memory_id: row.memory.content for memory_id, row in world.rows(*_covered(scope)).items()
        }
        assert world.search(process, "anything", Arm.VECTOR, scope=scope) == visible
        word = world.rng.choice(WORDS)
        wanted = set(tokenise(word).words)
        holding = {
            memory_id: row.memory.content
            for memory_id, row in world.rows(*_covered(scope)).items()
            if wanted & {*tokenise(row.memory.content).words, *row.extra.split()}
        }
        found = world.search(process, word, Arm.KEYWORD, scope=scope)
        assert holding.items() <= found.items()
        assert found.items() <= visible.items()
        both = world.search(process, word, Arm.VECTOR, Arm.KEYWORD, scope=scope)
        assert both == visible
        rows = world.rows(*NAMESPACES)
        for memory_id, text in world.acknowledged.items():
            if memory_id in rows:
                assert rows[memory_id].memory.content == text

    def settle(self) -> None:
        """When everything was applied, the indexes hold exactly the truth."""
        world = self.world
        for folder in world.folders:
            # The first run may only find out that a target must start anew.
            for _ in range(2):
                world.apply(folder, faults=False)
            pointer = world.log.pointer(folder.vector_index.target)
            vectors, keywords = folder.vector_index.view(pointer), folder.keyword_index.view()
            for ns_id, space in world.truth.state.namespaces.items():
                assert vectors.clock(ns_id) == space.nseq
                assert keywords.clock(ns_id) == space.nseq
        for process in world.processes:
            self.check(process)


def _truth_restorer(world: World) -> Callable[[], None]:
    dump, acknowledged = world.truth.dump(), dict(world.acknowledged)

    def restore() -> None:
        world.truth.restore(dump)
        world.acknowledged = dict(acknowledged)

    return restore


def _covered(scope: Namespace) -> list[Namespace]:
    return [name for name in NAMESPACES if Scope.of(scope).covers(name)]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_searches_see_exactly_the_truth(seed: int) -> None:
    """Crashes, lost answers, restored stores, lost and restored folders: one seed, one history."""
    History(seed).run()
