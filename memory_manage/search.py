"""One search of the brain: choose a strategy, let the hands find, rank, explain, page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from memory_manage.calibration import CALIBRATION, UNKNOWN, Calibration, calibration_for
from memory_manage.cursors import (
    LIMIT_MAX,
    SearchCursor,
    fingerprint,
    read_search_cursor,
    write_search_cursor,
)
from memory_manage.intake import vector_of
from memory_manage.postprocess import RankRules, Scored, is_confident, ranked
from memory_manage.questions import checked_limit, option_filter, zone_of
from memory_manage.results import ArmExplanation, Explanation, Found, item_of
from memory_manage.strategy import Choice, choose
from memory_tool.errors import Degraded, InputError, Unavailable
from memory_tool.filters import all_of
from memory_tool.query import EVERYTHING, Answer, Filter, Hit, Query
from memory_tool.query import Found as FoundMemory
from memory_tool.scope_words import ScopeWords
from memory_tool.tool import MemoryTool
from memory_tool.validation import check_query, check_time

LIMIT: Final = 5
DEPTH: Final = 100
"""Least candidates of each arm: at 20, with nothing filled in, a tenth of the quality is lost."""


class Search:
    """One question with its options, ready to run."""

    def __init__(
        self, tool: MemoryTool, query: str, words: ScopeWords, options: Mapping[str, Any]
    ) -> None:
        """Check everything that can be checked before any I/O.

        Raises:
            InputError: The question, its scope, a filter or an option can't be.
        """
        self._tool = tool
        self._text = check_query(query)
        self._options = options
        tz = zone_of(options.get("tz"), tool.settings.tz)
        scope, condition = tool.scope_and_filter(words, options.get("filters"), tz=tz)
        self._scope = scope
        self._condition: Filter = all_of(condition, option_filter(options, tz))
        self._choice: Choice = choose(query, options.get("mode") or "auto")
        self._limit = checked_limit(options.get("limit", LIMIT), largest=LIMIT_MAX)
        self._threshold = _threshold(options.get("threshold"), tool.settings.threshold)
        check_time(options.get("now"), "now")
        self._question = fingerprint(
            query, scope, self._condition, options.get("mode"), self._threshold
        )
        text = options.get("cursor")
        cursor = read_search_cursor(self._question, text) if text else None
        self._offset = cursor.offset if cursor else 0
        self._reach = cursor.reach if cursor else self._limit
        self._now: datetime | None = cursor.now if cursor else options.get("now")
        self._scored: tuple[Scored, ...] = ()

    def run(self) -> Found:
        """Search, rank, and shape the page.

        Raises:
            Degraded: A part is missing and the caller asked for an error in that case.
            Unavailable: The record store can't be reached.
        """
        query = Query(
            text=self._text,
            scope=self._scope,
            strategy=self._choice.strategy,
            filter=self._condition,
            limit=self._reach,
            depth=max(DEPTH, 2 * self._reach),
            vector=vector_of(self._options.get("query_embedding")),
            space=self._options.get("space"),
        )
        answer = self._tool.search(query, self._rank)
        if answer.degraded and self._options.get("on_degraded") == "raise":
            message = "; ".join(map(str, answer.degraded))
            raise Degraded(message, store="search")
        return self._found(answer)

    def _rank(self, hits: Sequence[Hit], now: datetime) -> Sequence[Hit]:
        self._now = self._now or now.astimezone(UTC)
        rules = RankRules(
            now=self._now.timestamp(),
            calibration=self._calibration(),
            threshold=self._threshold,
        )
        self._scored = ranked(hits, rules)
        page = self._scored[self._offset : self._offset + self._limit]
        return [item.hit for item in page]

    def _calibration(self) -> Calibration:
        try:
            return calibration_for(self._tool.space.model, self._tool.side(CALIBRATION))
        except Unavailable:
            # No space is recorded, so there is no vector whose similarity would be judged; or the
            # store went away, which the search will tell.
            return UNKNOWN

    def _found(self, answer: Answer) -> Found:
        scored = {item.hit.outline.id: item for item in self._scored}
        results = tuple(
            item_of(
                found.memory,
                score=scored[found.memory.id].score,
                explanation=self._explanation(scored[found.memory.id], found)
                if self._options.get("explain")
                else None,
            )
            for found in answer.found
        )
        return Found(
            results=results,
            strategy=self._choice.strategy.name,
            reason=self._choice.reason,
            confident=is_confident(self._scored),
            degraded=answer.degraded,
            cursor=self._next_cursor(),
        )

    def _next_cursor(self) -> str | None:
        end = self._offset + self._limit
        if end >= len(self._scored) or self._now is None:
            return None
        cursor = SearchCursor(offset=end, reach=self._reach, now=self._now)
        return write_search_cursor(self._question, cursor)

    def _explanation(self, item: Scored, found: FoundMemory) -> Explanation:
        hit = item.hit
        return Explanation(
            arms=_arms(hit),
            cosine=hit.cosine,
            calibrated=item.calibrated,
            fusion=repr(self._choice.strategy.fusion),
            relevance=hit.relevance,
            turn_before=hit.turn_before,
            recency=item.recency,
            importance=item.importance,
            threshold=self._threshold,
            filters="none" if self._condition == EVERYTHING else repr(self._condition),
            tier=found.memory.tier.value,
        )


def _arms(hit: Hit) -> Mapping[str, ArmExplanation]:
    said = {
        "vector": (hit.vector_rank, hit.cosine),
        "keyword": (hit.keyword_rank, hit.keyword_score),
    }
    return {
        arm: ArmExplanation(rank=rank, score=score, filled_in=rank is None)
        for arm, (rank, score) in said.items()
        if score is not None
    }


def _threshold(given: object, default: float) -> float:
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        message = f"threshold lies between 0 and 1, not {given!r}"
        raise InputError(message)
    return float(given)
