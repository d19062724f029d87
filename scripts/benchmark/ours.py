"""What the product does, measured through its public door next to the limits."""

import functools
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from memory_manage.manager import MemoryManage
from memory_tool.model import Vector
from scripts.benchmark.limits import RawFaiss, RawFlat, RawPostgres, RawTantivy
from scripts.benchmark.made import SPACE, MadeEmbedder, make
from scripts.benchmark.questions import (
    DEPTH,
    IN_BUCKET,
    LARGE,
    SMALL,
    SMALL_NAMESPACES,
    Mode,
    Questions,
    fill_large,
    fill_small,
)
from scripts.benchmark.rows import Row, compared, median_of, seconds_of

ROUNDS: Final = 3
QUESTIONS: Final = 120
SINGLES: Final = 200
SINGLE: Final = ("bench", "single")
_CHECK_EVERY: Final = 0.05

Limit: TypeAlias = Callable[[], Sequence[Callable[[], object]]]
"""Makes the raw calls that one of our searches is compared with, a call for each question."""


def open_memory(data_dir: Path, **settings: Any) -> MemoryManage:  # noqa: ANN401 - as open takes them
    """The memory under measurement."""
    return MemoryManage.open(
        data_dir=data_dir,
        embedder=MadeEmbedder(),
        on_progress=lambda _line: None,
        # The timetable must not get between what is measured.
        daily_rebuild=False,
        **settings,
    )


class Bench:
    """One run: fill the store, then compare each operation with its limit, round by round."""

    def __init__(self, size: int, data_dir: Path, say: Callable[[str], None]) -> None:
        """Make the memories."""
        self._size = size
        self._small = size // SMALL_NAMESPACES
        self._data_dir = data_dir
        self._say = say
        self._made = make(size, QUESTIONS)
        self._questions = Questions(self._made)
        self._large = self._questions.stored

    def run(self, postgres: RawPostgres) -> list[Row]:
        """All rows."""
        rows: list[Row] = []
        with open_memory(self._data_dir) as memory:
            rows += self._bulk(memory, postgres)
            rows += self._searches(memory)
            self._say("recall against exact search")
            rows += self._questions.recalls(memory)
            rows += self._singles(memory, postgres)
        rows += self._reopen()
        rows += self._weights(postgres)
        return rows

    def _bulk(self, memory: MemoryManage, postgres: RawPostgres) -> list[Row]:
        self._say(f"storing {self._size:,} memories in one namespace")
        start = time.perf_counter()
        fill_large(memory, self._made)
        deferred = time.perf_counter() - start
        bring_up_to_date(memory)
        indexed = time.perf_counter() - start
        self._say("raw COPY and raw HNSW of the same rows")
        raw = [
            (uuid.uuid4(), text, vector.astype("<f2").tobytes())
            for text, vector in zip(self._made.texts, self._made.vectors, strict=True)
        ]
        copied = median_of([postgres.copy(raw) for _ in range(ROUNDS)])
        self._faiss = RawFaiss(self._large, ef=128)
        self._say(f"storing {self._size:,} memories in {SMALL_NAMESPACES} namespaces")
        fill_small(memory, self._made)
        bring_up_to_date(memory)
        return [
            self._rate(
                "bulk add, index deferred", deferred, limit=copied, against="COPY with vectors"
            ),
            self._rate(
                "bulk add, indexed",
                indexed,
                limit=self._faiss.build_seconds,
                against="raw HNSW build",
            ),
        ]

    def _rate(self, what: str, ours: float, *, limit: float, against: str) -> Row:
        return Row(
            what=what,
            value=self._size / ours,
            unit="memories/s",
            against=against,
            ratio=limit / ours,
        )

    def _searches(self, memory: MemoryManage) -> list[Row]:
        self._say("searching")
        tantivy = RawTantivy(self._made.texts)
        part = slice(0, self._small)
        flat, small_tantivy = RawFlat(self._large[part]), RawTantivy(self._made.texts[part])
        near: tuple[Limit, Limit] = self._faiss_calls, functools.partial(self._flat_calls, flat)
        said: tuple[Limit, Limit] = (
            functools.partial(self._tantivy_calls, tantivy),
            functools.partial(self._tantivy_calls, small_tantivy),
        )
        arms: Mapping[Mode, Sequence[tuple[Limit, Limit]]] = {
            "hybrid": (near, said),
            "vector": (near,),
            "keyword": (said,),
        }
        rows: list[Row] = []
        for mode, limits in arms.items():
            large_limits, small_limits = zip(*limits, strict=True)
            rows += self._search(memory, mode, namespace=LARGE, limits=large_limits)
            rows += self._search(
                memory, mode, namespace=SMALL, limits=small_limits, where=" in 1 % namespace"
            )
        rows += self._filtered(memory)
        tantivy.close()
        small_tantivy.close()
        return rows

    def _search(
        self,
        memory: MemoryManage,
        mode: Mode,
        *,
        namespace: tuple[str, ...],
        limits: Sequence[Limit],
        where: str = "",
    ) -> list[Row]:
        ours = self._questions.calls(memory, mode, namespace=namespace)
        seconds_of(ours[:20])
        rounds = []
        for _ in range(ROUNDS):
            limit = sum(median_of(seconds_of(calls())) for calls in limits)
            rounds.append((seconds_of(ours), limit))
        names = {"vector": "raw FAISS", "keyword": "raw Tantivy", "hybrid": "raw FAISS + Tantivy"}
        return compared(f"{mode} search{where}", rounds, against=names[mode])

    def _faiss_calls(self) -> list[Callable[[], object]]:
        return [
            functools.partial(self._faiss.search, vector, DEPTH) for _, vector in self._questions
        ]

    def _flat_calls(self, flat: RawFlat) -> list[Callable[[], object]]:
        return [functools.partial(flat.search, vector, DEPTH) for _, vector in self._questions]

    def _tantivy_calls(self, tantivy: RawTantivy) -> list[Callable[[], object]]:
        return [functools.partial(tantivy.search, text, DEPTH) for text, _ in self._questions]

    def _filtered(self, memory: MemoryManage) -> list[Row]:
        calls = self._questions.calls(memory, "hybrid", filters=IN_BUCKET)
        seconds_of(calls[:5])
        taken = seconds_of(calls[:40])
        value = median_of(taken) * 1000
        return [Row(what="hybrid search with a 1 % filter", value=value, unit="ms p50")]

    def _singles(self, memory: MemoryManage, postgres: RawPostgres) -> list[Row]:
        self._say("single adds and deletes")
        adds, deletes = [], []
        for number in range(ROUNDS):
            texts = [f"single {number} {place} {uuid.uuid4().hex}" for place in range(SINGLES)]
            vector = self._made.vectors[number]
            raw_ids = [uuid.uuid4().hex for _ in texts]
            insert = functools.partial(postgres.insert, embedding=vector.astype("<f2").tobytes())
            raw = seconds_of(
                [
                    functools.partial(insert, raw_id, text)
                    for raw_id, text in zip(raw_ids, texts, strict=True)
                ]
            )
            ids: list[str] = []
            add = functools.partial(_add, memory, vector=vector, ids=ids)
            ours = seconds_of([functools.partial(add, text) for text in texts])
            adds.append((ours, median_of(raw)))
            gone = seconds_of([functools.partial(postgres.delete, raw_id) for raw_id in raw_ids])
            delete = functools.partial(memory.delete, namespace=SINGLE)
            ours = seconds_of([functools.partial(delete, one) for one in ids])
            deletes.append((ours, median_of(gone)))
        return [
            *compared("durable add", adds, against="one-row insert"),
            *compared("delete", deletes, against="one-row delete"),
        ]

    def _reopen(self) -> list[Row]:
        self._say("reopening")
        taken = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            memory = open_memory(self._data_dir)
            question, vector = next(iter(self._questions))
            memory.search(question, namespace=LARGE, query_embedding=vector, space=SPACE.name)
            taken.append(time.perf_counter() - start)
            memory.close()
        value = median_of(taken) * 1000
        return [Row(what="reopen", value=value, unit="ms to the first answer, server up")]

    def _weights(self, postgres: RawPostgres) -> list[Row]:
        stored = self._size + SMALL_NAMESPACES * self._small
        base, loaded = (
            anonymous_bytes(self._data_dir, searches, settings={}) for searches in ("none", "all")
        )
        folders = sum(
            file.stat().st_size
            for name in ("vectors", "keywords")
            for file in (self._data_dir / name).rglob("*")
            if (file.is_file() and "/gen-" not in str(file.parent)) or _is_newest(file)
        )
        return [
            Row(
                what="client memory for each memory",
                value=max(0.0, loaded - base) / stored,
                unit="bytes, anonymous",
            ),
            Row(
                what="disk for each memory",
                value=(folders + postgres.product_bytes()) / stored,
                unit="bytes, active files, vacuumed, no WAL",
            ),
        ]


def _add(memory: MemoryManage, text: str, *, vector: Vector, ids: list[str]) -> None:
    written = memory.add(text, namespace=SINGLE, embedding=vector, space=SPACE.name)
    ids.append(written.id)


def _is_newest(file: Path) -> bool:
    generations = sorted(file.parent.parent.glob("gen-*"))
    return bool(generations) and file.parent == generations[-1]


def anonymous_bytes(data_dir: Path, searches: str, *, settings: Mapping[str, object]) -> float:
    """Anonymous memory of a fresh process that opened the store and searched, in bytes."""
    script = Path(__file__).with_name("weigh.py")
    out = subprocess.run(
        [sys.executable, str(script), str(data_dir), searches, json.dumps(settings)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(script.parents[2])},
    )
    return float(out.stdout.split()[-1])


def bring_up_to_date(memory: MemoryManage) -> None:
    """Apply everything pending, as the background thread would."""
    while not memory.apply_now():
        time.sleep(_CHECK_EVERY)
