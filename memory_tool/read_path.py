"""One query out: ask the arms, add what is newer, check against the truth, fuse, rank, fetch."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import Final

from memory_tool.errors import Corrupt, InputError, Unavailable
from memory_tool.metrics import Metrics
from memory_tool.model import Vector
from memory_tool.overlay import OverlayMemo
from memory_tool.port_values import KeywordQuery, Opening, ReadView, RowKey
from memory_tool.ports import Embedder, KeywordIndex, RecordStore, VectorIndex
from memory_tool.query import EVERYTHING, Answer, Arm, Candidate, Degradation, Query
from memory_tool.retry import RetryPolicy, retrying
from memory_tool.search_arms import Asked, Opened
from memory_tool.settling import Rank, Settling
from memory_tool.text.tokenise import tokenise

WIDENINGS: Final = (1, 4, 16, 64)
"""A short answer is asked again with four times the depth, three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """How patient and how far-reaching reads are; see the settings of the same names."""

    retry: RetryPolicy
    arm_seconds: float = 5.0
    overlay_rows: int = 5000
    within_ids: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadParts:
    """What the read path works with.

    ``distrust`` hears of an index that must be rebuilt,
    ``behind`` that the indexes lack more rows than a search may fetch.
    """

    store: RecordStore
    vector_index: VectorIndex
    keyword_index: KeywordIndex
    embedder: Embedder
    executor: Executor
    memo: OverlayMemo
    distrust: Callable[[str, str], None]
    behind: Callable[[], None]


class ReadPath:
    """The way up. Every hit is read again from the truth, so no index can leak or revive a row."""

    def __init__(self, parts: ReadParts, *, rules: ReadRules, metrics: Metrics) -> None:
        self._parts = parts
        self._rules = rules
        self._metrics = metrics

    def search(self, query: Query, rank: Rank) -> Answer:
        """Answer a query: every write acknowledged before this call is seen.

        Raises:
            Unavailable: The record store can't be reached.
        """
        with self._metrics.timed("retrieve"):
            return retrying(self._rules.retry, "search")(self._search, query, rank)

    def _search(self, query: Query, rank: Rank) -> Answer:
        parts = self._parts
        targets = [parts.vector_index.target, parts.keyword_index.target]
        view = parts.store.view(query.scope, targets)
        if not view.namespaces:
            return Answer(found=())
        vector, missing = self._query_vector(query)
        matching = self._matching(query, view)
        if matching is not None and not matching:
            return Answer(found=())
        tokens = tokenise(query.text if query.keyword_text is None else query.keyword_text)
        asked = Asked(
            ns_ids=tuple(clock.ns_id for clock in view.namespaces),
            vector=vector,
            keywords=KeywordQuery(
                words=tuple(dict.fromkeys(tokens.words)),
                bigrams=tuple(dict.fromkeys(tokens.bigrams)),
            ),
            matching=matching,
            within=None if matching is None else frozenset(found for _, found in matching),
            depth=query.depth,
        )
        answer = self._widening(query, view, asked=asked, rank=rank)
        notes = dict.fromkeys((*missing, *answer.degraded))
        return replace(answer, degraded=tuple(notes))

    def _query_vector(self, query: Query) -> tuple[Vector | None, tuple[Degradation, ...]]:
        if Arm.VECTOR not in query.strategy.arms:
            return None, ()
        if query.vector is not None:
            return query.vector, ()
        try:
            return self._parts.embedder.embed_queries([query.text])[0], ()
        except (Unavailable, InputError) as error:
            return None, (Degradation(part="vector", reason=f"no query embedding ({error})"),)

    def _matching(self, query: Query, view: ReadView) -> frozenset[RowKey] | None:
        if query.filter == EVERYTHING:
            return None
        opening = Opening(namespaces={at.ns_id: at.namespace for at in view.namespaces})
        with self._parts.store.snapshot(opening) as snapshot:
            return snapshot.matching_keys(query.filter, self._rules.within_ids)

    def _widening(self, query: Query, view: ReadView, *, asked: Asked, rank: Rank) -> Answer:
        opened = self._open(view)
        answer, short = Answer(found=()), True
        for widening in WIDENINGS:
            wider = replace(asked, depth=asked.depth * widening)
            proposed = self._ask(query, opened, asked=wider)
            answer, short = self._settle(
                query, view, asked=wider, opened=opened, proposed=proposed, rank=rank
            )
            if not short:
                return answer
        note = Degradation(part="filter", reason="short: there may be more hits than are shown")
        return replace(answer, degraded=(*answer.degraded, note))

    def _open(self, view: ReadView) -> Opened:
        parts = self._parts
        opened = Opened()
        try:
            opened.vector = parts.vector_index.view(view.pointers.get(parts.vector_index.target))
        except (Corrupt, Unavailable) as error:
            self._give_up(opened, Arm.VECTOR, error=error)
        try:
            opened.keyword = parts.keyword_index.view(view.pointers.get(parts.keyword_index.target))
        except (Corrupt, Unavailable) as error:
            self._give_up(opened, Arm.KEYWORD, error=error)
        return opened

    def _give_up(self, opened: Opened, arm: Arm, *, error: Exception) -> None:
        opened.fail(arm, f"the index can't be read ({error})")
        if isinstance(error, Corrupt):
            self._distrust(arm, str(error))

    def _distrust(self, arm: Arm, reason: str) -> None:
        parts = self._parts
        index = parts.vector_index if arm is Arm.VECTOR else parts.keyword_index
        parts.distrust(index.target, reason)

    def _ask(
        self, query: Query, opened: Opened, *, asked: Asked
    ) -> Mapping[Arm, Sequence[Candidate]]:
        """Both arms at once: the keyword arm in a thread, the vector arm here."""
        proposed: dict[Arm, Sequence[Candidate]] = {}
        waiting: Future[tuple[Candidate, ...]] | None = None
        if Arm.KEYWORD in query.strategy.arms and opened.keyword is not None and asked.terms:
            waiting = self._parts.executor.submit(
                opened.keyword.search,
                asked.keywords,
                asked.ns_ids,
                depth=asked.depth,
                within=asked.within,
            )
        if opened.vector is not None and asked.vector is not None:
            try:
                proposed[Arm.VECTOR] = opened.vector.search(
                    asked.vector, asked.ns_ids, depth=asked.depth, within=asked.within
                )
            except (Corrupt, Unavailable) as error:
                self._give_up(opened, Arm.VECTOR, error=error)
        if waiting is not None:
            try:
                proposed[Arm.KEYWORD] = waiting.result(self._rules.arm_seconds)
            except TimeoutError:
                opened.fail(Arm.KEYWORD, f"no answer within {self._rules.arm_seconds} s")
            except (Corrupt, Unavailable) as error:
                self._give_up(opened, Arm.KEYWORD, error=error)
        return proposed

    def _settle(
        self,
        query: Query,
        view: ReadView,
        *,
        asked: Asked,
        opened: Opened,
        proposed: Mapping[Arm, Sequence[Candidate]],
        rank: Rank,
    ) -> tuple[Answer, bool]:
        """The answer of this depth, and whether a deeper search might find more."""
        memo = self._parts.memo
        targets = {
            Arm.VECTOR: self._parts.vector_index.target,
            Arm.KEYWORD: self._parts.keyword_index.target,
        }
        floors = {ns_id: opened.floor(ns_id) for ns_id in asked.ns_ids}
        started = memo.start(view.incarnation, floors)
        opening = Opening(
            namespaces={at.ns_id: at.namespace for at in view.namespaces},
            marks=opened.marks(targets),
            since={ns_id: state.upto for ns_id, state in started.items()},
            overlay_limit=self._rules.overlay_rows,
        )
        with self._parts.store.snapshot(opening) as snapshot:
            for arm in opened.strangers(snapshot.missing_marks, targets):
                self._distrust(arm, "it comes from another history of the store")
            settling = Settling(query, asked, opened=opened, snapshot=snapshot)
            states = settling.overlay(started)
            if states is None:
                self._parts.behind()
            else:
                memo.keep(view.incarnation, states)
            settling.collect(proposed, states)
            short = settling.is_short and asked.depth < query.depth * WIDENINGS[-1]
            if short:
                return Answer(found=()), True
            return settling.answer(rank, view.now), settling.is_short
