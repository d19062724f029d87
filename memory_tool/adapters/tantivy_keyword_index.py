"""The keyword index in a folder, as searches see it."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tantivy import DocAddress, Occur, Query, Searcher

from memory_tool.adapters.tantivy_control import (
    Stamp,
    bundle_of,
    count_controls,
    read_clocks,
    read_stamp,
)
from memory_tool.adapters.tantivy_folder import Opened, TantivyFolder, reading
from memory_tool.adapters.tantivy_schema import read_candidates, schema
from memory_tool.bm25 import DEFAULT_WEIGHTS, FIELDS, FieldWeights, best_first
from memory_tool.empty_views import EmptyKeywordView
from memory_tool.model import MemoryId
from memory_tool.port_values import KeywordQuery, Pointer
from memory_tool.ports import KeywordView
from memory_tool.query import Candidate

HITS_FOR_AN_ID: Final = 3
"""How many hits can be read in the time that looking up one id of ``within`` takes.

Reading a hit costs about 1.5 microseconds, looking up an id 5, whatever the size of the index.
Change it when a benchmark of filtered searches says otherwise.
"""

MARGIN: Final = 4
"""How many times more hits than expected are read so that enough of them lie within some ids.

With 1 half of the searches would fall short and be done twice; with 4 the ids may be four times
rarer among the hits than in the index.
"""


class TantivyKeywordIndex:
    """A :class:`~memory_tool.ports.KeywordIndex` over the folder that a ``TantivyTarget`` writes.

    Any number of processes may read it. Its files are mapped into memory: to cut one short while
    it is open kills the process, as with all mapped files; to replace or remove it does not.
    """

    def __init__(
        self,
        folder: Path,
        *,
        target: str,
        tokeniser: int,
        weights: FieldWeights = DEFAULT_WEIGHTS,
    ) -> None:
        """Name the folder; the first view opens it.

        Args:
            folder: The folder of this index alone.
            target: The name under which the store keeps its progress.
            tokeniser: Version of the tokeniser that makes the queries.
            weights: How much a match counts in each field.
        """
        self._folder = TantivyFolder(folder)
        self._target = target
        self._tokeniser = tokeniser
        self._weights = weights
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._view: KeywordView = EmptyKeywordView()

    @property
    def target(self) -> str:
        """The name under which the store keeps its progress."""
        return self._target

    def view(self, pointer: Pointer | None = None) -> KeywordView:  # noqa: ARG002 - a folder knows by itself
        """What can be seen now: one commit, and the same object until there is another.

        Raises:
            Corrupt: The files are damaged, or made by another version.
            Unavailable: The files can't be read.
        """
        with self._lock:
            opened = self._folder.follow(self._opened)
            if opened is not self._opened:
                stamp = read_stamp(opened.searcher, self._tokeniser) if opened else None
                self._view = (
                    TantivyView(opened.searcher, stamp, self._weights)
                    if opened and stamp
                    else EmptyKeywordView()
                )
                self._opened = opened
            return self._view

    def close(self) -> None:
        """Let go of the files; views that are still held keep theirs. May be called twice."""
        with self._lock:
            self._opened, self._view = None, EmptyKeywordView()


class TantivyView:
    """One commit. Clocks, mark and hits come from the same searcher, so they belong together."""

    def __init__(self, searcher: Searcher, stamp: Stamp, weights: FieldWeights) -> None:
        """Look through ``searcher``, whose commit carries ``stamp``."""
        self._searcher = searcher
        self._stamp = stamp
        self._weights = weights
        self._bundles: dict[int, dict[int, int]] = {}

    @property
    def remote(self) -> bool:
        """No."""
        return False

    @property
    def mark(self) -> str | None:
        """The mark of the history that the index follows."""
        return self._stamp.mark

    def clock(self, ns_id: int) -> int:
        """The number up to which the searcher sees the namespace; 0 when it never saw it.

        Raises:
            Corrupt: The files are damaged.
        """
        return self._bundle(ns_id).get(ns_id, 0)

    def search(
        self,
        query: KeywordQuery,
        ns_ids: Sequence[int],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """The ``depth`` best chunks by BM25 over words, bigrams and extra words, best first.

        Raises:
            Corrupt: The files are damaged.
        """
        if depth < 1 or within == frozenset():
            return ()
        matching = self._any_term(query)
        if not self._is_everything(ns_ids):
            matching = _among(matching, "ns", terms=map(str, ns_ids))
        with reading("a search failed"):
            return best_first(self._fetch(matching, depth, within=within))[:depth]

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """How many chunks hold each term, in the field where most do; ``""`` counts all chunks.

        What was replaced or deleted still counts for a term until the driver merges its segment,
        here as in the scores of a search.

        Raises:
            Corrupt: The files are damaged.
        """
        with reading("the terms can't be counted"):
            counts = {
                term: max(self._searcher.doc_freq(field, term) for field in FIELDS)
                for term in terms
            }
            counts[""] = self._searcher.num_docs - count_controls(self._searcher, self._stamp)
            return counts

    def _bundle(self, ns_id: int) -> dict[int, int]:
        number = bundle_of(ns_id)
        if number not in self._bundles:
            with reading("the clocks can't be read"):
                self._bundles[number] = read_clocks(self._searcher, number)
        return self._bundles[number]

    def _is_everything(self, ns_ids: Sequence[int]) -> bool:
        """Whether a filter would keep all: a search of all without one is 3 to 6 times faster."""
        every = self._stamp.namespaces
        return len(ns_ids) >= every and every == sum(
            ns_id in self._bundle(ns_id) for ns_id in set(ns_ids)
        )

    def _any_term(self, query: KeywordQuery) -> Query:
        asked = (
            ("words", query.words, self._weights.words),
            ("bigrams", query.bigrams, self._weights.bigrams),
            ("extra", query.words, self._weights.extra),
        )
        return Query.boolean_query(
            [
                (Occur.Should, Query.boost_query(_term(field, term, kept="freq"), weight))
                for field, terms, weight in asked
                for term in terms
                if weight
            ]
        )

    def _fetch(
        self, matching: Query, depth: int, *, within: frozenset[MemoryId] | None
    ) -> list[Candidate]:
        if within is None:
            return read_candidates(self._searcher, self._hits(matching, depth))
        # Hits come best first: if enough of the first ones are within, they are the answer, and
        # if there are no more hits either. That spares looking up each of many ids.
        reach = MARGIN * depth * max(self._searcher.num_docs // len(within), 1)
        if reach <= HITS_FOR_AN_ID * len(within):
            hits = self._hits(matching, reach)
            found = read_candidates(self._searcher, hits, within=within)
            if len(found) >= depth or len(hits) < reach:
                return found
        hits = self._hits(_among(matching, "memory", terms=within), depth)
        return read_candidates(self._searcher, hits)

    def _hits(self, matching: Query, limit: int) -> list[tuple[float, DocAddress]]:
        return self._searcher.search(matching, limit, count=False).hits


def _among(matching: Query, field: str, *, terms: Iterable[str]) -> Query:
    """``matching`` with one of ``terms`` in ``field``, which adds nothing to the score."""
    # A union of terms is up to three times faster than the driver's term set.
    wanted = Query.boolean_query(
        [(Occur.Should, _term(field, term, kept="basic")) for term in terms]
    )
    return Query.boolean_query(
        [(Occur.Must, Query.const_score_query(wanted, 0.0)), (Occur.Must, matching)]
    )


def _term(field: str, term: str, *, kept: str) -> Query:
    return Query.term_query(schema(), field, term, kept)
