"""What both arms of an Elasticsearch have in common: a request that also reads what it may claim.

Each search reads the control documents of its index in its own request, so mark, clocks and hits
are of one moment. A refresh may show documents beyond the clocks: never fewer than they say.
"""

import threading
from collections.abc import Sequence
from typing import Final

from memory_tool.adapters.elasticsearch_connection import Body, Search
from memory_tool.adapters.elasticsearch_control import (
    Control,
    control_of_hits,
    control_search,
)
from memory_tool.adapters.elasticsearch_generations import Generations
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

    def control_search(self, ns_ids: Sequence[int]) -> Search:
        """The search that has to go along with every other."""
        return control_search(self.index, ns_ids)

    def check(self) -> None:
        """Look at the index before it is asked for the first time.

        Raises:
            Corrupt: Its fields are not those that it shall have.
        """
        self._generations.check_once(self.index, self._definition)

    def search_all(self, searches: Sequence[Search]) -> tuple[Body, ...]:
        """See :meth:`ElasticsearchConnection.search_all`; of an index that was looked at."""
        self.check()
        return self.connection.search_all(searches)

    def take_control(self, answer: Body, ns_ids: Sequence[int]) -> None:
        """Believe what that search found."""
        control = control_of_hits(answer)
        if control.stamp.store != self._store:
            message = f"the index {self.index} belongs to another store"
            raise Corrupt(message)
        if control.stamp.fingerprint != fingerprint(self._definition):
            message = (
                f"the index {self.index} was made with other fields, another tokeniser or another"
                " embedding space: it is built again by itself"
            )
            raise Corrupt(message)
        with self._lock:
            self._control, self._known = control, frozenset(ns_ids)

    def _read(self, ns_ids: Sequence[int]) -> Control:
        with self._lock:
            control, known = self._control, self._known
        if control is not None and known.issuperset(ns_ids):
            return control
        wanted = [*known, *ns_ids]
        (answer,) = self.search_all([self.control_search(wanted)])
        self.take_control(answer, wanted)
        return self._read(ns_ids)
