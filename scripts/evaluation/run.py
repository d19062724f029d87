"""A store filled with sets and asked their questions, through the product's own door."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from memory_manage.bootstrap import open_parts
from memory_manage.manager import MemoryManage
from memory_tool.query import Arm, Hit, Query, ReciprocalRank, Strategy
from memory_tool.scope_words import ScopeWords
from scripts.evaluation.looked_up_embedder import LookedUpEmbedder
from scripts.evaluation.metrics import Judged
from scripts.evaluation.sets import EvaluationSet, Question, StoredText

LIMIT: Final = 10
DEPTH: Final = 100
BATCH: Final = 100
"""Memories of one call."""

Mode: TypeAlias = Literal["auto", "keyword", "vector"]
Ask: TypeAlias = Callable[[str, Question], Judged]
"""Asks a question of the set of that name."""

_RRF: Final = Strategy(name="hybrid", arms=(Arm.VECTOR, Arm.KEYWORD), fusion=ReciprocalRank(k=60))


class Evaluation:
    """An open memory that holds the memories of sets."""

    def __init__(
        self, folder: Path, embedder: LookedUpEmbedder, *, settings: Mapping[str, str]
    ) -> None:
        """Open embedded stores in ``folder``, less those that the settings place elsewhere."""
        self._embedder = embedder
        parts = open_parts({**settings, "data_dir": folder, "embedder": embedder})
        self._tool = parts.tool
        self._memory = MemoryManage(parts)

    def fill(self, found: EvaluationSet, progress: Callable[[str], None]) -> None:
        """Store the memories of a set, and have its questions embedded."""
        stored, every = 0, len(found.memories)
        for group, memories in _by_group(found.memories).items():
            for first in range(0, len(memories), BATCH):
                records = [_record(memory) for memory in memories[first : first + BATCH]]
                self._store(records, (found.name, group))
                tenths, stored = 10 * stored // every, stored + len(records)
                if tenths < 10 * stored // every:
                    progress(f"{found.name}: {stored} of {every} memories stored")
        self._embedder.embed_queries([question.text for question in found.questions])
        self._embedder.save()

    def _store(self, records: Sequence[Mapping[str, Any]], namespace: tuple[str, str]) -> None:
        written = self._memory.add_many(records, namespace=namespace, on_duplicate="keep")
        failed = [item.error for item in written if item.error]
        if failed:
            message = f"{len(failed)} memories of {namespace} were not stored: {failed[0]}"
            raise RuntimeError(message)

    def settle(self) -> None:
        """Wait until the indexes hold everything, so that what is measured is their answer."""
        self._tool.apply_now()

    def ways(self, *, compared: bool) -> Mapping[str, Ask]:
        """How to ask: as shipped, under the name ``""``; ``compared`` adds others beside it."""
        shipped: dict[str, Ask] = {"": self._ask}
        others: dict[str, Ask] = {
            "keyword": partial(self._ask, mode="keyword"),
            "vector": partial(self._ask, mode="vector"),
            "rrf": self._ask_by_rank,
        }
        return {**shipped, **others} if compared else shipped

    def close(self) -> None:
        """Keep the vectors that were made, and stop the stores."""
        self._embedder.save()
        self._memory.close()

    def _ask(self, name: str, question: Question, *, mode: Mode = "auto") -> Judged:
        begin = time.perf_counter()
        found = self._memory.search(
            question.text,
            namespace=(name, question.group),
            limit=LIMIT,
            mode=mode,
            now=question.asked_at,
        )
        seconds = time.perf_counter() - begin
        keys = [item.key for item in found]
        return _judged(question, keys, seconds=seconds, degraded=bool(found.degraded))

    def _ask_by_rank(self, name: str, question: Question) -> Judged:
        """Reciprocal rank fusion and nothing after it: the floor."""
        words = ScopeWords(namespace=(name, question.group))
        scope, condition = self._tool.scope_and_filter(words, None)
        query = Query(
            text=question.text,
            scope=scope,
            strategy=_RRF,
            filter=condition,
            limit=LIMIT,
            depth=DEPTH,
        )
        begin = time.perf_counter()
        answer = self._tool.search(query, _by_relevance)
        seconds = time.perf_counter() - begin
        keys = [found.memory.key for found in answer.found]
        return _judged(question, keys, seconds=seconds, degraded=bool(answer.degraded))


def _by_relevance(hits: Sequence[Hit], _now: datetime) -> Sequence[Hit]:
    return sorted(hits, key=lambda hit: (-hit.relevance, hit.outline.id))[:LIMIT]


def _judged(
    question: Question, keys: Sequence[str | None], *, seconds: float, degraded: bool
) -> Judged:
    return Judged(
        kind=question.kind,
        ranked=tuple(key or "" for key in keys),
        relevant=question.relevant,
        seconds=seconds,
        degraded=degraded,
    )


def _by_group(memories: Sequence[StoredText]) -> Mapping[str, Sequence[StoredText]]:
    groups: dict[str, list[StoredText]] = {}
    for memory in memories:
        groups.setdefault(memory.group, []).append(memory)
    return groups


def _record(memory: StoredText) -> Mapping[str, Any]:
    """The memory as :meth:`~memory_manage.manager.MemoryManage.add_many` takes it."""
    record: dict[str, Any] = {
        "content": memory.text,
        "key": memory.key,
        "occurred_at": memory.occurred_at,
    }
    if memory.conversation is not None:
        record |= {
            "conversation_id": memory.conversation,
            "position": memory.position,
            "role": memory.role,
            "name": memory.name,
        }
    return record
