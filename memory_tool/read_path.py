"""One query out: ask the arms, add what is newer, check against the truth, fuse, rank, fetch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory_tool.arm_calls import ArmCalls
from memory_tool.bm25 import DEFAULT_FIELD_PARAMETERS, FieldParameters
from memory_tool.errors import InputError, Unavailable
from memory_tool.metrics import Metrics
from memory_tool.model import Vector
from memory_tool.overlay import OverlayMemo
from memory_tool.port_values import KeywordQuery, Opening, ReadView, RowKey
from memory_tool.ports import Embedder, RecordStore
from memory_tool.query import EVERYTHING, Answer, Arm, Candidate, Degradation, Query
from memory_tool.retry import RetryPolicy, retrying
from memory_tool.search_arms import Asked, Opened
from memory_tool.settling import Rank, Settling
from memory_tool.space_values import FIRST_SPACE, SpaceChanged
from memory_tool.text.tokenise import tokenise
from memory_tool.validation import check_embedding

WIDENINGS: Final = (1, 4, 16, 64)
"""A short answer is asked again with four times the depth, three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """How patient and how far-reaching reads are; see the settings of the same names."""

    retry: RetryPolicy
    bm25: FieldParameters = DEFAULT_FIELD_PARAMETERS
    overlay_rows: int = 5000
    within_ids: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadParts:
    """What the read path works with.

    ``behind`` hears that the indexes lack more rows than a search may fetch. ``space`` is the
    number of the space that the embedder and the vector index are of.
    """

    store: RecordStore
    calls: ArmCalls
    embedder: Embedder
    memo: OverlayMemo
    behind: Callable[[], None]
    space: int = FIRST_SPACE


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
            SpaceChanged: Another embedding space is active than the one that this path is of.
            InputError: The query's own vector is none of the store's space.
        """
        with self._metrics.timed("retrieve"):
            return retrying(self._rules.retry, "search")(self._search, query, rank)

    def _search(self, query: Query, rank: Rank) -> Answer:
        parts = self._parts
        view = parts.store.view(query.scope, list(parts.calls.targets.values()))
        self._check_space(view.space)
        given = self._given_vector(query)
        if not view.namespaces:
            return Answer(found=())
        vector, missing = (given, ()) if given is not None else self._query_vector(query)
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
            wanted=query.strategy.arms,
            bm25=self._rules.bm25,
            limit=max(query.limit, 1),
        )
        answer = self._widening(query, view, asked=asked, rank=rank)
        notes = dict.fromkeys((*missing, *answer.degraded))
        return replace(answer, degraded=tuple(notes))

    def _check_space(self, active: int | None) -> None:
        """Whatever is compared has to be of one space: vector, index, and stored embeddings."""
        if active not in (None, self._parts.space):
            raise SpaceChanged

    def _given_vector(self, query: Query) -> Vector | None:
        if query.vector is None:
            return None
        return check_embedding(query.vector, self._parts.embedder.space, named=query.space)

    def _query_vector(self, query: Query) -> tuple[Vector | None, tuple[Degradation, ...]]:
        if Arm.VECTOR not in query.strategy.arms:
            return None, ()
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
        calls = self._parts.calls
        opened = calls.open(view, asked)
        answer, short = Answer(found=()), True
        for widening in WIDENINGS:
            wider = replace(asked, depth=asked.depth * widening)
            proposed = calls.ask(opened, wider)
            answer, short = self._settle(
                query, view, asked=wider, opened=opened, proposed=proposed, rank=rank
            )
            if not short:
                return answer
        note = Degradation(part="filter", reason="short: there may be more hits than are shown")
        return replace(answer, degraded=(*answer.degraded, note))

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
        calls = self._parts.calls
        floors = calls.clocks(opened, asked.ns_ids)
        whole = len(opened.views()) == len(Arm)
        started = memo.start(view.incarnation, floors, whole=whole)
        opening = Opening(
            namespaces={at.ns_id: at.namespace for at in view.namespaces},
            marks=opened.marks(calls.targets),
            letters_of=opened.remote(calls.targets),
            since={ns_id: state.upto for ns_id, state in started.items()},
            overlay_limit=self._rules.overlay_rows,
        )
        with self._parts.store.snapshot(opening) as snapshot:
            self._check_space(snapshot.space)
            for arm in opened.strangers(snapshot.missing_marks, calls.targets):
                calls.doubt(opened, arm, reason="it comes from another history of the store")
            settling = Settling(
                query, asked, opened=opened, targets=calls.targets, snapshot=snapshot
            )
            states = settling.overlay(started)
            if states is None:
                self._parts.behind()
            else:
                memo.keep(view.incarnation, states)
                for arm in opened.views():
                    calls.breakers[arm].caught_up()
            settling.collect(proposed, states)
            short = settling.is_short and asked.depth < query.depth * WIDENINGS[-1]
            if short:
                return Answer(found=()), True
            return settling.answer(rank, view.now), settling.is_short
