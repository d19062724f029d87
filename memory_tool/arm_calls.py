"""Asking the arms of a search: side by side, each within its deadline, none that is down."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, TypeGuard

from memory_tool.breaker import Breaker
from memory_tool.errors import Corrupt, InputError, PartUnavailable, Unavailable
from memory_tool.port_values import Pointer, ReadView
from memory_tool.ports import (
    JointSearch,
    KeywordIndex,
    KeywordView,
    VectorIndex,
    VectorView,
)
from memory_tool.query import Arm, Candidate
from memory_tool.search_arms import Asked, Opened

Proposed: TypeAlias = Mapping[Arm, Sequence[Candidate]]
_Call: TypeAlias = Callable[[], Sequence[Sequence[Candidate]]]

_BOTH: Final = (Arm.VECTOR, Arm.KEYWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCalls:
    """What the arms are asked with.

    Attributes:
        executor: Runs calls that may take long.
        seconds: Deadline of each.
        breakers: How each arm is doing.
        pointer: Which generation of a target is to be read now.
        distrust: Hears of an index that must be rebuilt.
    """

    vector_index: VectorIndex
    keyword_index: KeywordIndex
    executor: Executor
    seconds: float
    breakers: Mapping[Arm, Breaker]
    pointer: Callable[[str], Pointer | None]
    distrust: Callable[[str, str], None]

    @property
    def targets(self) -> Mapping[Arm, str]:
        """The target that each arm reads."""
        return {
            Arm.VECTOR: self.vector_index.target,
            Arm.KEYWORD: self.keyword_index.target,
        }

    def open(self, view: ReadView, asked: Asked) -> Opened:
        """The views of the arms that have something to look for."""
        opened = Opened(pointers=view.pointers)
        for arm in asked.arms:
            if not self.breakers[arm].allows():
                opened.fail(arm, "the index is down")
                continue
            pointer = view.pointers.get(self.targets[arm])
            try:
                if arm is Arm.VECTOR:
                    opened.vector = self.vector_index.view(pointer)
                else:
                    opened.keyword = self.keyword_index.view(pointer)
            except (Corrupt, Unavailable) as error:
                self.give_up(opened, arm, error=error)
        return opened

    def ask(self, opened: Opened, asked: Asked) -> Proposed:
        """What each arm proposes; those that fail are noted in ``opened``."""
        both = _both(opened, asked)
        if both is not None:
            try:
                return self._noted(_BOTH, self._started(both)())
            except (Corrupt, InputError, PartUnavailable):
                # One of the two may have no part in it: each is asked for itself, to learn which.
                return self._ask_each(opened, asked)
            except (Unavailable, TimeoutError) as error:
                for arm in _BOTH:
                    self.give_up(opened, arm, error=error)
                return {}
        return self._ask_each(opened, asked)

    def _ask_each(self, opened: Opened, asked: Asked) -> Proposed:
        # What runs elsewhere is started first. A local arm is searched here, beside the other one:
        # waking a thread costs a tenth of it.
        calls = [
            (arm, self._started(call) if elsewhere else call)
            for arm, call, elsewhere in _each(opened, asked)
        ]
        proposed: dict[Arm, Sequence[Candidate]] = {}
        for arm, call in reversed(calls):
            try:
                proposed.update(self._noted((arm,), call()))
            except (Corrupt, InputError, Unavailable, TimeoutError) as error:
                self.give_up(opened, arm, error=error)
        return proposed

    def _started(self, call: _Call) -> _Call:
        """Run a call in another thread; what is returned waits for it until the deadline."""
        future, end = self.executor.submit(call), time.monotonic() + self.seconds

        def result() -> Sequence[Sequence[Candidate]]:
            try:
                return future.result(max(0.0, end - time.monotonic()))
            except TimeoutError:
                # What did not even begin would only keep the next ones waiting.
                future.cancel()
                raise

        return result

    def _noted(self, arms: tuple[Arm, ...], found: Sequence[Sequence[Candidate]]) -> Proposed:
        for arm in arms:
            self.breakers[arm].succeeded()
        return dict(zip(arms, found, strict=True))

    def clocks(self, opened: Opened, ns_ids: Sequence[int]) -> Mapping[int, int]:
        """The number of each namespace above which some index misses rows.

        An index that can't say where it stands is done without.
        """
        known: list[Mapping[int, int]] = []
        for arm, view in opened.views().items():
            try:
                known.append({ns_id: view.clock(ns_id) for ns_id in ns_ids})
            except (Corrupt, Unavailable) as error:
                self.give_up(opened, arm, error=error)
        return {ns_id: min((clocks[ns_id] for clocks in known), default=0) for ns_id in ns_ids}

    def give_up(self, opened: Opened, arm: Arm, *, error: Exception) -> None:
        """Do without an arm's index, and note what that says of it."""
        if isinstance(error, TimeoutError):
            opened.fail(arm, f"no answer within {self.seconds:g} s")
        else:
            opened.fail(arm, f"the index can't be read ({error})")
        if isinstance(error, Corrupt):
            # It answered: what is wrong with it is mended by building it again, not by waiting.
            self.doubt(opened, arm, reason=str(error))
        elif not isinstance(error, InputError):
            # What it can't answer for the question's sake says nothing of the index.
            self.breakers[arm].failed()

    def doubt(self, opened: Opened, arm: Arm, *, reason: str) -> None:
        """Have an arm's index built again, unless it was while this search went on."""
        target = self.targets[arm]
        try:
            current = self.pointer(target)
        except Unavailable:
            # The truth can't be asked. The next search will find the same.
            return
        if current == opened.pointers.get(target):
            self.distrust(target, reason)


def _both(opened: Opened, asked: Asked) -> _Call | None:
    """The call that asks both arms at once, where one server keeps both."""
    vector, keyword, wanted = opened.vector, opened.keyword, asked.vector
    if keyword is None or wanted is None or not _joined(vector, keyword):
        return None
    return partial(
        vector.search_both,
        wanted,
        keyword,
        query=asked.keywords,
        ns_ids=asked.ns_ids,
        depth=asked.depth,
        within=asked.within,
    )


def _each(opened: Opened, asked: Asked) -> Iterator[tuple[Arm, _Call, bool]]:
    """(arm, call, whether it runs in another thread) of each call; a local one comes last."""
    vector, keyword, wanted = opened.vector, opened.keyword, asked.vector
    ns_ids, depth, within = asked.ns_ids, asked.depth, asked.within
    if keyword is not None:
        search = partial(keyword.search, asked.keywords, ns_ids, depth=depth, within=within)
        yield Arm.KEYWORD, partial(_alone, search), True
    if vector is not None and wanted is not None:
        nearest = partial(vector.search, wanted, ns_ids, depth=depth, within=within)
        yield Arm.VECTOR, partial(_alone, nearest), vector.remote


def _joined(vector: VectorView | None, keyword: KeywordView) -> TypeGuard[JointSearch]:
    # Asking for the attribute first: of a protocol with methods it takes ten times as long.
    return (
        vector is not None
        and vector.remote
        and isinstance(vector, JointSearch)
        and vector.joins(keyword)
    )


def _alone(search: Callable[[], Sequence[Candidate]]) -> Sequence[Sequence[Candidate]]:
    return (search(),)
