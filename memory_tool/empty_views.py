"""What can be seen of an index that holds nothing yet: a fresh installation, a store just made."""

from collections.abc import Mapping, Sequence

from memory_tool.model import MemoryId, Vector
from memory_tool.port_values import KeywordQuery
from memory_tool.ports import KeywordView, VectorView
from memory_tool.query import Candidate


class _Empty:
    """What both kinds of view say of themselves."""

    @property
    def remote(self) -> bool:
        """No."""
        return False

    @property
    def mark(self) -> str | None:
        """``None``."""
        return None

    def clock(self, ns_id: int) -> int:  # noqa: ARG002 - the port's signature
        """0."""
        return 0


class EmptyKeywordView(_Empty, KeywordView):
    """See :class:`memory_tool.ports.KeywordView`."""

    def search(
        self,
        query: KeywordQuery,  # noqa: ARG002 - the port's signature
        ns_ids: Sequence[int],  # noqa: ARG002 - the port's signature
        *,
        depth: int,  # noqa: ARG002 - the port's signature
        within: frozenset[MemoryId] | None = None,  # noqa: ARG002 - the port's signature
    ) -> tuple[Candidate, ...]:
        """Nothing."""
        return ()

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:  # noqa: ARG002 - the port's signature
        """No chunk."""
        return {"": 0}


class EmptyVectorView(_Empty, VectorView):
    """See :class:`memory_tool.ports.VectorView`."""

    def search(
        self,
        vector: Vector,  # noqa: ARG002 - the port's signature
        ns_ids: Sequence[int],  # noqa: ARG002 - the port's signature
        *,
        depth: int,  # noqa: ARG002 - the port's signature
        within: frozenset[MemoryId] | None = None,  # noqa: ARG002 - the port's signature
    ) -> tuple[Candidate, ...]:
        """Nothing."""
        return ()

    def scores(self, vector: Vector, ids: Sequence[tuple[int, MemoryId]]) -> tuple[Candidate, ...]:  # noqa: ARG002 - the port's signature
        """Nothing."""
        return ()
