"""How the stores of a tool are doing, without any content."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from memory_tool.assembly import Stores
from memory_tool.breaker import Breaker
from memory_tool.errors import ThreefoldError
from memory_tool.port_values import Lag
from memory_tool.validation import check_space

_OK: Final = "ok"
_UNSEEN: Final = "unknown while the records can't be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """What was found.

    Attributes:
        stores: ``ok`` or what is wrong, for each store, asked just now.
        conditions: How each index and the embedder did in the calls of this process: up, suspect,
            down or catching up.
        lag: How far each index is behind; searches see what it misses all the same.
    """

    stores: Mapping[str, str]
    conditions: Mapping[str, str]
    lag: Mapping[str, Lag]


def look_at(stores: Stores, breakers: Mapping[str, Breaker]) -> HealthReport:
    """Ask each store whether it answers."""
    keywords, vectors = stores.keyword_index, stores.vector_index
    indexes: Mapping[str, Callable[[], object]] = {
        "keyword index": lambda: keywords.view(stores.pointer(keywords.target)).mark,
        "vector index": lambda: vectors.view(stores.pointer(vectors.target)).mark,
    }
    records = _checked(stores.reader.counts)
    # The records say which index is read: whoever waited for them in vain waits only once.
    seen = records == _OK
    return HealthReport(
        stores={
            "records": records,
            **{name: _checked(check) if seen else _UNSEEN for name, check in indexes.items()},
            # Not through the cache, which would answer for a model that is gone.
            "embedder": _checked(lambda: _embed(stores)),
        },
        conditions={part: str(breaker.condition) for part, breaker in breakers.items()},
        lag=_lag(stores) if seen else {},
    )


def _embed(stores: Stores) -> None:
    stores.embedder.embed_queries(["ok"])
    recorded = (stores.recorded or stores.spaces.active_space)()
    if recorded is not None:
        check_space(recorded, stores.embedder.space)


def _lag(stores: Stores) -> Mapping[str, Lag]:
    if stores.figures is None:
        return {}
    targets = {
        "keyword index": stores.keyword_index.target,
        "vector index": stores.vector_index.target,
    }
    try:
        return {name: stores.figures.lag(target) for name, target in targets.items()}
    except ThreefoldError:
        # The check of the records says what is wrong.
        return {}


def _checked(check: Callable[[], object]) -> str:
    try:
        check()
    except ThreefoldError as error:
        return f"{type(error).__name__}: {error}"
    return _OK
