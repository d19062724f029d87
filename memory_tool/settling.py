"""The part of a search that happens in one snapshot of the truth."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from memory_tool.fusion import Ranking, fuse, ranking
from memory_tool.model import MemoryId
from memory_tool.neighbours import with_turn_before
from memory_tool.overlay import OverlayState
from memory_tool.port_values import OverlayRow
from memory_tool.ports import Snapshot
from memory_tool.query import Answer, Arm, Candidate, Found, Hit, Outline, Query
from memory_tool.search_arms import (
    ArmAnswer,
    Asked,
    Newer,
    Opened,
    States,
    keyword_answer,
    keywords_from_truth,
    vector_answer,
    vectors_from_truth,
)

Rank: TypeAlias = Callable[[Sequence[Hit], datetime], Sequence[Hit]]
"""The brain's part: the hits of the page, in order, from all hits and the store's clock."""

_BEHIND: Final = "the index is far behind"
_NUMBER: Final = {
    Arm.VECTOR: attrgetter("vector_nseq"),
    Arm.KEYWORD: attrgetter("keyword_nseq"),
}


class Settling:
    """Candidates become hits: overlay, version check, completion, fusion, ranking, content."""

    def __init__(
        self,
        query: Query,
        asked: Asked,
        *,
        opened: Opened,
        targets: Mapping[Arm, str],
        snapshot: Snapshot,
    ) -> None:
        self._query = query
        self._asked = asked
        self._opened = opened
        self._targets = targets
        self._snapshot = snapshot
        self._answers: dict[Arm, ArmAnswer] = {}
        self._outlines: Mapping[MemoryId, Outline] = {}
        self._full = False

    def overlay(self, started: States) -> States | None:
        """The overlays as of this snapshot, or ``None`` when too many rows are newer."""
        rows = self._snapshot.overlay
        if rows is None:
            return None
        fresh = {ns_id: list(group) for ns_id, group in groupby(rows, key=lambda row: row.ns_id)}
        clocks = self._snapshot.clocks
        return {
            ns_id: _extended(state, fresh.get(ns_id, ()), clock=clocks.get(ns_id, 0))
            for ns_id, state in started.items()
        }

    def collect(self, proposed: Mapping[Arm, Sequence[Candidate]], states: States | None) -> None:
        """Let each arm answer, and look up what may be seen of it."""
        for arm in self._query.strategy.arms:
            self._answers[arm] = self._answer_of(arm, proposed.get(arm, ()), states=states)
        found = [answer.candidates for answer in self._answers.values()]
        self._full = any(len(candidates) >= self._asked.depth for candidates in found)
        keys = {(one.ns_id, one.memory_id) for candidates in found for one in candidates}
        self._outlines = self._snapshot.outlines(list(keys), self._query.filter)

    def _answer_of(
        self, arm: Arm, proposed: Sequence[Candidate], *, states: States | None
    ) -> ArmAnswer:
        opened, asked = self._opened, self._asked
        reason = opened.reasons.get(arm) or (_BEHIND if states is None else None)
        if reason is None and self._snapshot.undelivered is None:
            reason = "the index can't take too many rows"
        if arm not in asked.arms:
            return ArmAnswer(candidates=())
        if arm is Arm.VECTOR:
            if reason is None and opened.vector is not None and states is not None:
                newer = self._newer(arm, states)
                return vector_answer(asked, opened.vector, proposed=proposed, newer=newer)
            return vectors_from_truth(asked, self._snapshot, reason=reason or _BEHIND)
        if reason is None and opened.keyword is not None and states is not None:
            newer = self._newer(arm, states)
            return keyword_answer(asked, opened.keyword, proposed=proposed, newer=newer)
        return keywords_from_truth(asked, self._snapshot, reason=reason or _BEHIND)

    def _newer(self, arm: Arm, states: States) -> Newer:
        refused = (self._snapshot.undelivered or {}).get(self._targets[arm], ())
        by_namespace = groupby(refused, key=attrgetter("ns_id"))
        return Newer(
            states=states,
            refused={
                ns_id: OverlayState(ns_id=ns_id, base=-1, upto=-1).extended(list(rows), 0)
                for ns_id, rows in by_namespace
            },
            snapshot=self._snapshot,
        )

    @property
    def is_short(self) -> bool:
        """Whether fewer hits were found than wanted though an arm had more to give."""
        wanted = min(self._query.limit, self._asked.depth)
        return self._full and self._asked.within is None and len(self._outlines) < wanted

    def answer(self, rank: Rank, now: datetime) -> Answer:
        """Fuse, rank, and fetch the content of the page."""
        rankings = {arm: self._ranking(arm) for arm in self._answers}
        filled = self._filled(rankings)
        hits = with_turn_before(
            fuse(rankings, filled, fusion=self._query.strategy.fusion, outlines=self._outlines)
        )
        page = rank(hits, now)
        rows = self._snapshot.rows([(hit.outline.ns_id, hit.outline.id) for hit in page])
        found = tuple(
            Found(hit=hit, memory=rows[hit.outline.id].memory)
            for hit in page
            if hit.outline.id in rows
        )
        degraded = [note for answer in self._answers.values() for note in answer.degraded]
        return Answer(found=found, ranked=tuple(hits), degraded=tuple(degraded))

    def _ranking(self, arm: Arm) -> Ranking:
        return ranking(self._current(arm, self._answers[arm].candidates))

    def _current(self, arm: Arm, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those whose row may be seen and still is the one that the arm scored."""
        number = _NUMBER[arm]
        outlines = self._outlines
        return [
            found
            for found in candidates
            if (outline := outlines.get(found.memory_id)) is not None
            and number(outline) == found.version
        ]

    def _filled(self, rankings: Mapping[Arm, Ranking]) -> Mapping[MemoryId, Candidate]:
        vector = self._answers.get(Arm.VECTOR)
        if vector is None or vector.similar is None or Arm.KEYWORD not in rankings:
            return {}
        known = rankings[Arm.VECTOR]
        missing = [
            (found.ns_id, memory_id)
            for memory_id, (_, found) in rankings[Arm.KEYWORD].items()
            if memory_id not in known
        ]
        scored = self._current(Arm.VECTOR, list(vector.similar(missing))) if missing else []
        return {memory_id: found for memory_id, (_, found) in ranking(scored).items()}


def _extended(state: OverlayState, rows: Sequence[OverlayRow], *, clock: int) -> OverlayState:
    # The clock lies below the state's only when another thread's later snapshot made the state.
    return state.extended(rows, max(clock, state.upto))
