"""Change of the embedding model in place: fill, build, verify, switch, look for what slipped by.

Every step can be done again. What is left half done is told by the store itself: the state of the
space, and the chunks that lack a vector in it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from memory_tool.errors import Corrupt, InputError, ThreefoldError, Unavailable
from memory_tool.index_jobs.agenda import Agenda
from memory_tool.index_jobs.reembed_check import check_entries, check_index
from memory_tool.index_jobs.reembed_filling import Filling
from memory_tool.inventory_ports import IndexInventory, TruthInventory
from memory_tool.job_ports import Lease
from memory_tool.job_values import STORE, Duty, MayGoOn
from memory_tool.log import logger
from memory_tool.port_values import Pointer
from memory_tool.ports import Embedder, VectorIndex
from memory_tool.space_ports import SideStructure, SpaceKeeper
from memory_tool.space_values import KnownSpace, Step

KIND: Final = "reembed"

_LOOK_SECONDS: Final = 0.5
_OUTLASTED_SECONDS: Final = 30.0
"""Longest wait for writes that ran beside the switch: a frozen one is cut off after 5."""

Said = Callable[[Step], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedParts:
    """What a change of model works with.

    Attributes:
        keeper: The store's spaces and the vectors in them.
        named: The embedder of a name; fetches the model if need be.
        of: The embedder of a known space.
        index: The vector index of a space, by number.
        inventory: What the index of a space holds, by number; ``None`` where there is none yet.
        truth: What it has to hold.
        pointer: Which generation of a target is to be read.
        distrust: Hears of an index that has to be built anew.
        bring_forward: Lets the indexes of all followed spaces be brought forward.
        tidy: Removes files and indexes of spaces that were forgotten.
        agenda: Where the job is offered and claimed.
        lease: Whoever holds it is the only one at it, whichever period of the job it claimed.
        side: What is made anew for a space before it is searched.
        batch: Texts embedded in one call.
        lease_seconds: How long the lease of one that died is waited for.
        behind: Most numbers that an index may miss when the space is switched to: searches fetch
            that much themselves.
    """

    keeper: SpaceKeeper
    named: Callable[[str], Embedder]
    of: Callable[[KnownSpace], Embedder]
    index: Callable[[int], VectorIndex]
    inventory: Callable[[int], AbstractContextManager[IndexInventory] | None]
    truth: TruthInventory | None
    pointer: Callable[[str], Pointer | None]
    distrust: Callable[[str, str], None]
    bring_forward: Callable[[], None]
    tidy: Callable[[], None]
    agenda: Agenda
    lease: Lease
    side: tuple[SideStructure, ...]
    batch: int
    lease_seconds: float
    behind: int


class Reembedding:
    """See :class:`memory_tool.assembly.ChangeOfModel`."""

    def __init__(self, parts: ReembedParts) -> None:
        """Begin nothing."""
        self._parts = parts
        self._said: Said = _say_nothing
        self.duty = Duty(kind=KIND, target=STORE, every="moment", run=self._run, by_itself=False)
        parts.agenda.also(self.duty)

    def begin(self, model: str) -> KnownSpace:
        """Name the model to change to; its space may be active already.

        Raises:
            InputError: The model can't be had, or another change is under way.
            Unavailable: The model can't be reached.
        """
        space = self._parts.named(model).space
        known = self._parts.keeper.spaces()
        # A change that is done, or under way, is asked for again: its way back stays.
        if all(one.space != space for one in known) and any(one.state == "kept" for one in known):
            self.forget(_always)
        return self._parts.keeper.begin(space, embedder=model)

    def back(self) -> KnownSpace:
        """Change back to the space before.

        Raises:
            InputError: There is none.
        """
        known = self._parts.keeper.spaces()
        kept = [one for one in known if one.state == "kept"]
        if not kept:
            message = "no embedding space is kept that could be gone back to"
            raise InputError(message)
        return self._parts.keeper.begin(kept[-1].space, embedder=kept[-1].embedder)

    def run(self, may_go_on: MayGoOn, said: Said) -> bool:
        """Do what was begun, unless another process does; whether it was done here."""
        if not self._waited(may_go_on):
            return False
        self._said = said
        try:
            self._parts.agenda.offer(KIND, STORE)
            return bool(self._parts.agenda.do_open(may_go_on, kind=KIND))
        finally:
            self._said = _say_nothing

    def forget(self, may_go_on: MayGoOn) -> int:
        """Forget every space but the active one; how many there were.

        Raises:
            Unavailable: Another process is at it.
        """
        keeper = self._parts.keeper
        self._waited(may_go_on)
        with self._alone():
            keeper.close_others()
            for ns_id in keeper.clocks():
                if not may_go_on():
                    return 0
                keeper.settle(ns_id)
            count = keeper.forget_others()
            self._parts.tidy()
        if count:
            logger().info("spaces_forgotten", spaces=count)
        return count

    def _waited(self, may_go_on: MayGoOn) -> bool:
        """Whether the lease was had: one who died keeps it for a while."""
        end = time.monotonic() + 1.5 * self._parts.lease_seconds
        while not self._parts.lease.try_acquire():
            if not may_go_on() or time.monotonic() > end:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    # ── The job ──

    def _run(self, may_go_on: MayGoOn) -> None:
        with self._alone() as held:

            def still() -> bool:
                return may_go_on() and held()

            filling = self._changed(still)
            if filling is not None and still():
                self._look_again(filling, still)

    def _changed(self, still: MayGoOn) -> Filling | None:
        """Switch to the space that is on its way, if one is; what filled the active one since."""
        known = self._parts.keeper.spaces()
        coming = next((one for one in known if one.state in ("filling", "building")), None)
        if coming is None:
            active = next((one for one in known if one.state == "active"), None)
            return self._filling(active) if active else None
        filling = self._filling(coming)
        done = self._counter(coming)
        if not filling.run(still, done):
            return None
        self._parts.keeper.build(coming.number)
        if not self._indexed(coming, filling, still=still):
            return None
        self._check(coming, filling)
        self._parts.keeper.switch(coming.number)
        logger().warning("space_switched", space=coming.space.name, number=coming.number)
        return filling

    def _indexed(self, coming: KnownSpace, filling: Filling, *, still: MayGoOn) -> bool:
        """Wait until every index that is followed has the space; fill what is written meanwhile."""
        parts, own = self._parts, self._parts.index(coming.number).target
        waiting: tuple[str, ...] = ()
        while filling.run(still, _nothing):
            failure = self._brought_forward()
            left = parts.keeper.unready(coming.number, own=own, most=parts.behind)
            if not left:
                for structure in parts.side:
                    structure.rebuild(
                        coming, parts.keeper, embedder=parts.of(coming), shelf=parts.keeper
                    )
                # Once more, so that hardly a moment lies between this and the switch.
                return filling.run(still, _nothing)
            if failure is not None and own in left:
                raise failure
            if left != waiting:
                logger().info("indexes_awaited", targets=left)
                self._said(Step(f"waits for {', '.join(left)}"))
                waiting = left
            time.sleep(_LOOK_SECONDS)
        return False

    def _brought_forward(self) -> ThreefoldError | None:
        """What went wrong with the indexes that are brought forward here, if anything did.

        A keyword index that is down has nothing to do with a change of model.
        """
        try:
            self._parts.bring_forward()
        except ThreefoldError as error:
            return error
        return None

    def _check(self, coming: KnownSpace, filling: Filling) -> None:
        """See that the space can be searched.

        Raises:
            Unavailable: Chunks were written just now that have no vector in it yet.
            Corrupt: Its index is bad, and is built anew.
        """
        parts = self._parts
        missing, _ = parts.keeper.count_missing(coming.number)
        if missing > filling.refused:
            filling.run(_always, _nothing)
            missing, every = parts.keeper.count_missing(coming.number)
            # A few of this moment are no reason: the look behind the switch finds them.
            if missing > filling.refused + max(parts.batch, every // 1000):
                message = f"{missing:,} chunks have no vector in {coming.space.name} yet"
                raise Unavailable(message)
        index = parts.index(coming.number)
        try:
            self._compare(coming, index.target)
            check_index(index.view(parts.pointer(index.target)), parts.keeper, space=coming.number)
        except Corrupt as error:
            parts.distrust(index.target, str(error))
            raise

    def _compare(self, coming: KnownSpace, target: str) -> None:
        looked, truth = self._parts.inventory(coming.number), self._parts.truth
        if looked is None or truth is None:
            return
        with looked as inventory:
            check_entries(inventory, truth, target=target)

    def _look_again(self, filling: Filling, still: MayGoOn) -> None:
        """Find what was written beside the switch, by those who had not heard of it."""
        end = time.monotonic() + _OUTLASTED_SECONDS
        while still() and not self._parts.keeper.outlasted() and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        filling.run(still, _nothing)

    def _filling(self, known: KnownSpace) -> Filling:
        parts = self._parts
        return Filling(parts.keeper, parts.of(known), space=known.number, batch=parts.batch)

    def _counter(self, coming: KnownSpace) -> Callable[[int], None]:
        missing, every = self._parts.keeper.count_missing(coming.number)
        filled, said = every - missing, self._said

        def done(chunks: int) -> None:
            nonlocal filled
            filled += chunks
            said(Step("vectors", min(filled, every), every))

        said(Step("vectors", filled, every))
        return done

    @contextmanager
    def _alone(self) -> Iterator[MayGoOn]:
        """While nobody else changes the model: whether that is still so."""
        lease = self._parts.lease
        if not lease.try_acquire():
            message = "another process changes the embedding model"
            raise Unavailable(message)
        try:
            yield lease.try_acquire
        finally:
            lease.release()


def _say_nothing(_step: Step) -> None:
    pass


def _nothing(_chunks: int) -> None:
    pass


def _always() -> bool:
    return True
