"""The questions of a benchmark, as they are put to a memory, and how many answers are right."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory_manage.manager import MemoryManage
from memory_manage.results import Found
from memory_tool.model import NewMemory, Vector
from scripts.benchmark.made import SPACE, Made
from scripts.benchmark.rows import Row

DEPTH: Final = 100
"""Candidates of each arm that a search for a page of ten asks for."""

LARGE: Final = ("bench", "large")
SMALL: Final = ("bench", "small-0")
SMALL_NAMESPACES: Final = 100
_BUCKETS: Final = 100
_BUCKET: Final = 7
"""Of a hundred buckets the one that is asked for: a filter that a hundredth of the rows meets."""

IN_BUCKET: Final = {"bucket": _BUCKET}

Mode: TypeAlias = Literal["hybrid", "vector", "keyword"]


def fill_large(memory: MemoryManage, made: Made) -> None:
    """All made memories in one namespace, in a hundred buckets."""
    memory.add_many(_news(made, range(len(made.texts)), bucket=True), namespace=LARGE)


def fill_small(memory: MemoryManage, made: Made) -> None:
    """The same memories once more, in a hundred small namespaces."""
    share = len(made.texts) // SMALL_NAMESPACES
    for number in range(SMALL_NAMESPACES):
        part = _news(made, range(number * share, (number + 1) * share), bucket=False)
        memory.add_many(part, namespace=("bench", f"small-{number}"))


def _news(made: Made, places: range, *, bucket: bool) -> list[NewMemory]:
    return [
        NewMemory(
            content=made.texts[place],
            embedding=made.vectors[place],
            space=SPACE.name,
            metadata={"bucket": place % _BUCKETS} if bucket else {},
        )
        for place in places
    ]


class Questions:
    """The made questions with their vectors, for memories that :func:`fill_large` filled."""

    def __init__(self, made: Made) -> None:
        """Keep the vectors as the truth does, in half precision."""
        self._made = made
        self.stored = made.vectors.astype(np.float16).astype(np.float32)

    def __iter__(self) -> Iterator[tuple[str, Vector]]:
        """Text and vector of each."""
        return zip(self._made.questions, self._made.question_vectors, strict=True)

    def calls(
        self,
        memory: MemoryManage,
        mode: Mode,
        *,
        namespace: tuple[str, ...] = LARGE,
        filters: Mapping[str, int] | None = None,
    ) -> list[Callable[[], Found]]:
        """A search for each question, not yet made."""
        return [
            functools.partial(
                memory.search,
                question,
                namespace=namespace,
                mode=mode,
                limit=10,
                threshold=0.0,
                query_embedding=vector,
                space=SPACE.name,
                filters=filters,
            )
            for question, vector in self
        ]

    def recalls(self, memory: MemoryManage, *, of: str = "") -> list[Row]:
        """Recall@10 of the vector arm against exact search: everywhere, in little, by a filter."""
        everything = np.arange(len(self.stored))
        small = everything[: len(everything) // SMALL_NAMESPACES]
        bucket = everything[everything % _BUCKETS == _BUCKET]
        calls = functools.partial(self.calls, memory, "vector")
        return [
            self._recall(f"recall@10{of}", calls(), among=everything),
            self._recall(f"recall@10 in 1 % namespace{of}", calls(namespace=SMALL), among=small),
            self._recall(
                f"recall@10 with a 1 % filter{of}", calls(filters=IN_BUCKET), among=bucket
            ),
        ]

    def _recall(
        self, what: str, calls: Sequence[Callable[[], Found]], *, among: NDArray[np.int64]
    ) -> Row:
        found = 0
        for call, (_, vector) in zip(calls, self, strict=True):
            scores = self.stored[among] @ vector
            wanted = {self._made.texts[place] for place in among[np.argsort(-scores)[:10]]}
            found += len(wanted & {item.memory for item in call()})
        return Row(what=what, value=found / (10 * len(calls)), unit="share", against="exact search")
