"""The paths of a tool, joined for the store's embedding space, and joined anew when it changes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar

from memory_tool.assembly import Shared, Stores, read_path_of, write_path_of
from memory_tool.breaker import Breaker
from memory_tool.embedding_cache import CachedEmbedder
from memory_tool.errors import Unavailable
from memory_tool.guarded_embedder import GuardedEmbedder
from memory_tool.log import logger
from memory_tool.model import EmbeddingSpace, Json
from memory_tool.read_path import ReadPath
from memory_tool.space_values import SpaceChanged
from memory_tool.validation import check_space
from memory_tool.write_changes import Decide
from memory_tool.write_path import WritePath

_T = TypeVar("_T")

_TRIES: Final = 3
"""A call that meets a change is made again. To meet a second one, it has to be rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Both paths, with all that is of one embedding space."""

    stores: Stores
    embedder: CachedEmbedder
    write: WritePath
    read: ReadPath
    side: Callable[[str], Json]


class Joining:
    """Has the paths of the active space. Thread safe.

    A path notices by itself, in the truth that it reads anyway, that another space is active, and
    raises ``SpaceChanged``. Then both are joined anew, and the call is made again.
    """

    def __init__(self, stores: Stores, shared: Shared, *, model: Breaker, decide: Decide) -> None:
        """Join for the space that the stores were opened with."""
        self._shared = shared
        self._model = model
        self._decide = decide
        self._lock = threading.Lock()
        self._joined = self._join(stores)

    @property
    def now(self) -> Joined:
        """The present paths."""
        return self._joined

    def run(self, act: Callable[[Joined], _T]) -> _T:
        """What ``act`` returns; it is called again if the space changed.

        Raises:
            Unavailable: It changes again and again, or can't be followed.
        """
        for _ in range(_TRIES):
            joined = self._joined
            try:
                return act(joined)
            except SpaceChanged:
                self._follow(joined)
        message = "the embedding space of the store changes again and again"
        raise Unavailable(message)

    def prepare(self) -> None:
        """Load a model before the store is switched to it, if any was ever needed here.

        Otherwise the first search behind the switch would wait for it.
        """
        if self._joined.embedder.misses:
            self._joined.stores.prepare()

    def close(self) -> None:
        """Let go of the vector index in use."""
        self._joined.stores.vector_index.close()

    def _follow(self, left: Joined) -> None:
        with self._lock:
            if self._joined is not left:
                return
            if left.stores.for_active is None:
                message = "the store has another embedding space now: open it again"
                raise Unavailable(message)
            stores = left.stores.for_active(left.stores)
            # What is said of the model so far is said of another one.
            self._model.succeeded()
            self._model.caught_up()
            self._joined = self._join(stores)
        logger().warning("space_followed", space=stores.space, before=left.stores.space)
        # What still searches by the old view keeps it.
        left.stores.vector_index.close()

    def _join(self, stores: Stores) -> Joined:
        recorded = stores.recorded or stores.spaces.active_space
        settings = self._shared.settings
        embedder = CachedEmbedder(
            GuardedEmbedder(stores.embedder, self._model, recorded=recorded),
            size=settings.embed_cache,
            batch=settings.embed_batch,
        )
        space = _Recorded(stores, embedder, recorded=recorded)
        return Joined(
            stores=stores,
            embedder=embedder,
            write=write_path_of(
                stores, self._shared, embedder=embedder, space=space, decide=self._decide
            ),
            read=read_path_of(stores, self._shared, embedder=embedder),
            # It is made before its space becomes active, and then stays as it is.
            side=cache(lambda name: stores.side(name, stores.space)),
        )


class _Recorded:
    """The space of one joining; the first write whose embedder answers records it."""

    def __init__(
        self,
        stores: Stores,
        embedder: CachedEmbedder,
        *,
        recorded: Callable[[], EmbeddingSpace | None],
    ) -> None:
        self._stores = stores
        self._embedder = embedder
        self._recorded = recorded
        self._space: EmbeddingSpace | None = None

    def __call__(self) -> EmbeddingSpace:
        if self._space is None:
            made = self._embedder.space
            recorded = self._recorded() or self._stores.spaces.record_space(made)
            check_space(recorded, made)
            self._space = recorded
        return self._space
