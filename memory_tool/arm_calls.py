"""Asking the arms of a search: side by side, each within its deadline, none that is down."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, TypeGuard

from memory_tool.breaker import Breaker
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.port_values import ReadView
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
        distrust: Hears of an index that must be rebuilt.
    """

    vector_index: VectorIndex
    keyword_index: KeywordIndex
    executor: Executor
    seconds: float
    breakers: Mapping[Arm, Breaker]
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
        opened = Opened()
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
        calls = self._calls(opened, asked)
        waiting = [
            (arms, self.executor.submit(call)) for arms, call, elsewhere in calls if elsewhere
        ]
        proposed: dict[Arm, Sequence[Candidate]] = {}
        for arms, call, elsewhere in calls:
            if not elsewhere:
                proposed.update(self._outcome(opened, arms, call=call))
        end = time.monotonic() + self.seconds
        for arms, future in waiting:
            proposed.update(self._outcome(opened, arms, call=partial(_result, future, by=end)))
        return proposed

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
            self.distrust(self.targets[arm], str(error))
        else:
            self.breakers[arm].failed()

    def _calls(self, opened: Opened, asked: Asked) -> list[tuple[tuple[Arm, ...], _Call, bool]]:
        """(arms, call, whether it runs in another thread) of each call that has to be made."""
        vector, keyword, wanted = opened.vector, opened.keyword, asked.vector
        ns_ids, depth, within = asked.ns_ids, asked.depth, asked.within
        if keyword is not None and wanted is not None and _joined(vector, keyword):
            both = partial(
                vector.search_both,
                wanted,
                keyword,
                query=asked.keywords,
                ns_ids=ns_ids,
                depth=depth,
                within=within,
            )
            return [(_BOTH, both, True)]
        calls: list[tuple[tuple[Arm, ...], _Call, bool]] = []
        if keyword is not None:
            search = partial(keyword.search, asked.keywords, ns_ids, depth=depth, within=within)
            calls.append(((Arm.KEYWORD,), partial(_alone, search), True))
        if vector is not None and wanted is not None:
            nearest = partial(vector.search, wanted, ns_ids, depth=depth, within=within)
            # A local one is searched here, beside the other: waking a thread costs a tenth of it.
            calls.append(((Arm.VECTOR,), partial(_alone, nearest), vector.remote))
        return calls

    def _outcome(
        self, opened: Opened, arms: tuple[Arm, ...], *, call: _Call
    ) -> Mapping[Arm, Sequence[Candidate]]:
        try:
            found = call()
        except (Corrupt, Unavailable, TimeoutError) as error:
            for arm in arms:
                self.give_up(opened, arm, error=error)
            return {}
        for arm in arms:
            self.breakers[arm].succeeded()
        return dict(zip(arms, found, strict=True))


def _result(
    future: "Future[Sequence[Sequence[Candidate]]]", *, by: float
) -> Sequence[Sequence[Candidate]]:
    try:
        return future.result(max(0.0, by - time.monotonic()))
    except TimeoutError:
        # What did not even begin would only keep the next ones waiting.
        future.cancel()
        raise


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
