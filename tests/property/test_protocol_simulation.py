"""The protocol under faults: whatever happens, a search sees exactly what may be seen."""

import contextlib
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory_tool.model import State, Tier
from memory_tool.query import Arm
from memory_tool.scope import Namespace, Scope
from memory_tool.text.tokenise import tokenise
from tests.property.simulated_faults import Crash
from tests.property.simulated_server import NAME, SimulatedServer
from tests.property.simulated_world import NAMESPACES, WORDS, Folder, Process, World

SEEDS = int(os.environ.get("THREEFOLD_TEST_SEEDS", "150"))
STEPS = 60
_HOUR = timedelta(hours=1)


class History:
    """One seed: steps in random order, and a look at the answers after each."""

    def __init__(self, seed: int, *, server: bool) -> None:
        """A world with nothing saved yet."""
        self.world = World(seed, server=server)
        self.world.interrupt = self.interrupt
        if self.world.server is not None:
            self.world.server.meanwhile = self.meanwhile
        self.saved: list[Callable[[], None]] = []
        self.restored = False

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
        if self.world.server is not None:
            steps |= {self.renew: 4, self.go_back: 2}
        for _ in range(STEPS):
            step = self.world.rng.choices(list(steps), list(steps.values()))[0]
            step()
            self.let_time_pass()
            self.check(self.world.rng.choice(self.world.processes))
        self.let_time_pass()
        for process in self.world.processes:
            self.check(process)
        self.settle()

    def let_time_pass(self) -> None:
        """On a server, what is under way arrives, and some of what was written is shown."""
        server = self.world.server
        if server is None:
            return
        server.arrive()
        if self.restored:
            # Clocks of a snapshot that was taken in the middle of a batch may be wrong: an applier
            # looks each second, and a search in that second is what the promises leave out.
            self.restored = False
            self.world.apply(self.world.folders[0], faults=False)
        if self.world.rng.random() < 0.5:  # a snapshot takes a while
            server.finish_snapshots()

    def write(self) -> None:
        """One write of one process, which may not survive it."""
        world = self.world
        process = world.rng.choice(world.processes)
        actions = {world.add: 6, world.change: 3, world.remove: 2, world.move: 3}
        action = world.rng.choices(list(actions), list(actions.values()))[0]
        try:
            action(process)
        except Crash:
            world.restart(process)

    def apply(self) -> None:
        """One folder is brought forward, or its holder dies doing so."""
        with contextlib.suppress(Crash):
            self.world.apply(self.world.rng.choice(self.world.folders))

    def interrupt(self, here: Folder) -> None:
        """Another host is faster, or something goes back, while a batch is under way."""
        step = self.world.rng.choice((self.write, self.save, self.set_back, None))
        if step is not None:
            step()
        else:
            (there,) = (folder for folder in self.world.folders if folder is not here)
            with contextlib.suppress(Crash):
                self.world.apply(there)

    def meanwhile(self) -> None:
        """Between two reads of a search, somebody brings the index forward."""
        if self.world.rng.random() < 0.3:  # now and then
            # Without faults, for those would change the truth that the answer is compared with.
            self.world.apply(self.world.rng.choice(self.world.folders), faults=False)

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
            self.restored = True

    def lose(self) -> None:
        """A folder's indexes are gone."""
        folder = self.world.rng.choice(self.world.folders)
        empty = World(0, server=self.world.server is not None).folders[0]
        if self.world.rng.random() < 0.5:  # either of the two
            folder.vectors.restore(empty.vectors.dump())
        else:
            part: Any = folder.keywords
            part.restore(empty.keywords.dump())

    def restart(self) -> None:
        """A process forgets what it remembered."""
        self.world.restart(self.world.rng.choice(self.world.processes))

    def renew(self) -> None:
        """A full build is asked for; it is begun with the next batch."""
        self.world.rng.choice(self.world.folders).renewed = True

    def go_back(self) -> None:
        """Somebody does not trust what was switched to."""
        self.world.go_back(self.world.folders[0])

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
            vectors, keywords = (
                folder.vector_index.view(pointer),
                folder.keyword_index.view(world.log.pointer(folder.keyword_index.target)),
            )
            for ns_id, space in world.truth.state.namespaces.items():
                assert vectors.clock(ns_id) == space.nseq
                assert keywords.clock(ns_id) == space.nseq
        if world.server is not None:
            self.settle_server(world.server)
        for process in world.processes:
            self.check(process)

    def settle_server(self, server: SimulatedServer) -> None:
        """Late requests bring nothing back."""
        while server.late:
            server.arrive()
        pointer = self.world.log.pointer(NAME)
        documents = server.indexes[pointer.locator].written.documents if pointer else {}
        held = {key: version for key, (version, chunks) in documents.items() if chunks}
        living = {
            (space.ns_id, memory_id): row.keyword_nseq
            for space in self.world.truth.state.namespaces.values()
            for memory_id, row in space.rows.items()
            if row.state is State.LIVE and row.memory.tier is Tier.HOT
        }
        assert held == living


def _truth_restorer(world: World) -> Callable[[], None]:
    dump, acknowledged = world.truth.dump(), dict(world.acknowledged)

    def restore() -> None:
        world.truth.restore(dump)
        world.acknowledged = dict(acknowledged)

    return restore


def _covered(scope: Namespace) -> list[Namespace]:
    return [name for name in NAMESPACES if Scope.of(scope).covers(name)]


@pytest.mark.parametrize("server", [False, True], ids=["folders", "server"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_searches_see_exactly_the_truth(seed: int, *, server: bool) -> None:
    """Crashes, lost answers, restored stores, lost and restored folders: one seed, one history."""
    History(seed, server=server).run()
