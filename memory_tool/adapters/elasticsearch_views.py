"""What both arms of an Elasticsearch have in common: a request that also reads what it may claim.

The searches of one request are begun in turn: first the clocks, then the hits, last the stamp. For
each copy of a shard shows what is new in its own time. What a clock says was shown on every copy
before the clock moved, so later hits have it; and a document is shown after the mark of its batch,
so the stamp behind the hits has that mark.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory_tool.adapters.elasticsearch_connection import Body, Search, check_whole
from memory_tool.adapters.elasticsearch_control import (
    Control,
    control_of_hits,
    control_search,
)
from memory_tool.adapters.elasticsearch_generations import Generations, other_definition
from memory_tool.adapters.elasticsearch_layout import fingerprint
from memory_tool.errors import Corrupt

DEPTH_MAX: Final = 10_000
"""Most hits of one search, which is the server's own limit."""


class ElasticsearchView:
    """One index as a search sees it. The control documents are those of the latest request."""

    def __init__(
        self, generations: Generations, index: str, *, definition: Body, store: str
    ) -> None:
        """Ask nothing yet.

        Args:
            generations: The family of indices that it belongs to.
            index: The concrete index.
            definition: What it has to be made by.
            store: Identity of the store that it has to belong to.
        """
        self.connection = generations.connection
        self.index = index
        self._generations = generations
        self._definition = definition
        self._store = store
        self._lock = threading.Lock()
        self._control: Control | None = None
        self._known: frozenset[int] = frozenset()

    @property
    def remote(self) -> bool:
        """Yes."""
        return True

    @property
    def mark(self) -> str | None:
        """The mark of the batch that was begun last.

        Raises:
            Corrupt: The index is missing, of another store or made with other fields.
            Unavailable: The server can't be asked.
        """
        return self._read(()).stamp.mark

    def clock(self, ns_id: int) -> int:
        """The number up to which every search sees the namespace; 0 when it never saw it.

        Raises:
            Corrupt: See :attr:`mark`.
            Unavailable: See :attr:`mark`.
        """
        return self._read((ns_id,)).clocks.get(ns_id, 0)

    def check(self) -> None:
        """Look at the index before it is asked for the first time.

        Raises:
            Corrupt: Its fields are not those that it was made with.
            Unavailable: It was made by another version, or with other settings.
        """
        self._generations.check_once(self.index, self._definition)

    def clocks_first(self, ns_ids: Sequence[int]) -> Search:
        """What has to be asked before hits."""
        return control_search(self.index, ns_ids)

    def stamp_last(self) -> Search:
        """What has to be asked behind hits."""
        return control_search(self.index, ())

    def hits(self, searches: Sequence[Search], ns_ids: Sequence[int]) -> Sequence[Body]:
        """The hits of a search of this index alone; none where there is nothing to ask.

        Raises:
            Corrupt: The index is missing or of another store.
            Unavailable: The server, or one of the shards, can't answer.
        """
        self.check()
        first, *found, last = self.connection.search_in_turn(
            [self.clocks_first(ns_ids), *searches, self.stamp_last()]
        )
        self.believe(first, last, ns_ids=ns_ids)
        return hits_of(found)

    def believe(self, first: Body, last: Body, *, ns_ids: Sequence[int]) -> None:
        """Take the clocks asked before the hits, and the mark asked behind them."""
        control = replace(self._read_of(first), stamp=self._read_of(last).stamp)
        with self._lock:
            self._control, self._known = control, frozenset(ns_ids)

    def _read_of(self, answer: Body) -> Control:
        check_whole(answer)
        control = control_of_hits(answer)
        if control.stamp.store != self._store:
            message = f"the index {self.index} belongs to another store"
            raise Corrupt(message)
        if control.stamp.fingerprint != fingerprint(self._definition):
            raise other_definition(self.index)
        return control

    def _read(self, ns_ids: Sequence[int]) -> Control:
        with self._lock:
            control, known = self._control, self._known
        if control is not None and known.issuperset(ns_ids):
            return control
        self.hits((), [*known, *ns_ids])
        return self._read(ns_ids)


def hits_of(answers: Sequence[Body]) -> Sequence[Body]:
    """The hits of an answer, if one was asked for.

    Raises:
        PartUnavailable: One of the shards can't answer.
    """
    for answer in answers:
        check_whole(answer)
    found: Sequence[Body] = answers[0]["hits"]["hits"] if answers else ()
    return found
