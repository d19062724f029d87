"""What the product does, measured through its public door next to the limits."""

import functools
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmark.limits import RawFaiss, RawFlat, RawPostgres, RawTantivy
from benchmark.made import SPACE, Made, MadeEmbedder, make
from benchmark.rows import Row, compared, median_of, seconds_of
from memory_manage.manager import MemoryManage
from memory_tool.model import NewMemory, Vector

ROUNDS: Final = 3
QUESTIONS: Final = 120
SINGLES: Final = 200
DEPTH: Final = 100
LARGE: Final = ("bench", "large")
SMALL_NAMESPACES: Final = 100
_CHECK_EVERY: Final = 0.05


def open_memory(data_dir: Path) -> MemoryManage:
    """The memory under measurement."""
    return MemoryManage.open(data_dir=data_dir, embedder=MadeEmbedder(), on_progress=lambda _line: None)


def news_of(made: Made, start: int, stop: int, *, bucket: bool = False) -> list[NewMemory]:
    """A slice of the made memories, ready to be stored."""
    return [
        NewMemory(
            content=made.texts[place],
            embedding=made.vectors[place],
            space=SPACE.name,
            metadata={"bucket": place % 100} if bucket else {},
        )
        for place in range(start, stop)
    ]


class Bench:
    """One run: fill the store, then compare each operation with its limit, round by round."""

    def __init__(self, size: int, data_dir: Path, say: Callable[[str], None]) -> None:
        """Make the memories."""
        self._size = size
        self._small = size // SMALL_NAMESPACES
        self._data_dir = data_dir
        self._say = say
        self._made = make(size, QUESTIONS)
        self._large = self._made.vectors.astype(np.float16).astype(np.float32)

    def run(self, postgres: RawPostgres) -> list[Row]:
        """All rows."""
        rows: list[Row] = []
        with open_memory(self._data_dir) as memory:
            rows += self._bulk(memory, postgres)
            rows += self._searches(memory)
            rows += self._recalls(memory)
            rows += self._singles(memory, postgres)
        rows += self._reopen()
        rows += self._weights(postgres)
        return rows

    def _bulk(self, memory: MemoryManage, postgres: RawPostgres) -> list[Row]:
        self._say(f"storing {self._size:,} memories in one namespace")
        news = news_of(self._made, 0, self._size, bucket=True)
        start = time.perf_counter()
        memory.add_many(news, namespace=LARGE)
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
        for number in range(SMALL_NAMESPACES):
            part = news_of(self._made, number * self._small, (number + 1) * self._small)
            memory.add_many(part, namespace=("bench", f"small-{number}"))
        bring_up_to_date(memory)
        return [
            _rate("bulk add, index deferred", self._size, deferred, "COPY with vectors", copied),
            _rate(
                "bulk add, indexed", self._size, indexed, "raw HNSW build", self._faiss.build_seconds
            ),
        ]

    def _searches(self, memory: MemoryManage) -> list[Row]:
        self._say("searching")
        tantivy = RawTantivy(self._made.texts)
        part = slice(0, self._small)
        flat, small_tantivy = RawFlat(self._large[part]), RawTantivy(self._made.texts[part])
        small = ("bench", "small-0")
        arms = {
            "vector": ([self._faiss_calls], [functools.partial(self._flat_calls, flat)]),
            "keyword": (
                [functools.partial(self._tantivy_calls, tantivy)],
                [functools.partial(self._tantivy_calls, small_tantivy)],
            ),
        }
        arms["hybrid"] = (
            [*arms["vector"][0], *arms["keyword"][0]],
            [*arms["vector"][1], *arms["keyword"][1]],
        )
        rows: list[Row] = []
        for mode in ("hybrid", "vector", "keyword"):
            large_limits, small_limits = arms[mode]
            rows += self._search(memory, mode, LARGE, large_limits)
            rows += self._search(memory, mode, small, small_limits, " in 1 % namespace")
        rows += self._filtered(memory)
        tantivy.close()
        small_tantivy.close()
        return rows

    def _search(
        self,
        memory: MemoryManage,
        mode: str,
        namespace: tuple[str, ...],
        limits: Sequence[Callable[[], Sequence[Callable[[], object]]]],
        where: str = "",
    ) -> list[Row]:
        ours = self._our_calls(memory, mode, namespace)
        seconds_of(ours[:20])
        rounds = []
        for _ in range(ROUNDS):
            limit = sum(median_of(seconds_of(calls())) for calls in limits)
            rounds.append((seconds_of(ours), limit))
        names = {"vector": "raw FAISS", "keyword": "raw Tantivy", "hybrid": "raw FAISS + Tantivy"}
        return compared(f"{mode} search{where}", rounds, names[mode])

    def _our_calls(
        self, memory: MemoryManage, mode: str, namespace: tuple[str, ...], **options: object
    ) -> list[Callable[[], object]]:
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
                **options,
            )
            for question, vector in self._questions()
        ]

    def _questions(self) -> Iterator[tuple[str, Vector]]:
        return zip(self._made.questions, self._made.question_vectors, strict=True)

    def _faiss_calls(self) -> list[Callable[[], object]]:
        return [
            functools.partial(self._faiss.search, vector, DEPTH) for _, vector in self._questions()
        ]

    def _flat_calls(self, flat: RawFlat) -> list[Callable[[], object]]:
        return [functools.partial(flat.search, vector, DEPTH) for _, vector in self._questions()]

    def _tantivy_calls(self, tantivy: RawTantivy) -> list[Callable[[], object]]:
        return [functools.partial(tantivy.search, text, DEPTH) for text, _ in self._questions()]

    def _filtered(self, memory: MemoryManage) -> list[Row]:
        calls = self._our_calls(memory, "hybrid", LARGE, filters={"bucket": 7})
        seconds_of(calls[:5])
        taken = seconds_of(calls[:40])
        value = median_of(taken) * 1000
        return [Row(what="hybrid search with a 1 % filter", value=value, unit="ms p50")]

    def _recalls(self, memory: MemoryManage) -> list[Row]:
        self._say("recall against exact search")
        everything = np.arange(self._size)
        small = np.arange(self._small)
        bucket = everything[everything % 100 == 7]
        return [
            self._recall(memory, "recall@10", LARGE, everything),
            self._recall(memory, "recall@10 in 1 % namespace", ("bench", "small-0"), small),
            self._recall(
                memory, "recall@10 with a 1 % filter", LARGE, bucket, filters={"bucket": 7}
            ),
        ]

    def _recall(
        self,
        memory: MemoryManage,
        what: str,
        namespace: tuple[str, ...],
        places: "np.ndarray[tuple[int], np.dtype[np.int64]]",
        **options: object,
    ) -> Row:
        calls = self._our_calls(memory, "vector", namespace, **options)
        found = 0
        for call, (_, vector) in zip(calls, self._questions(), strict=True):
            scores = self._large[places] @ vector
            best = places[np.argsort(-scores)[:10]]
            wanted = {self._made.texts[place] for place in best}
            answer = call()
            found += len(wanted & {item.memory for item in answer})  # type: ignore[attr-defined] # a search's answer
        return Row(what=what, value=found / (10 * len(calls)), unit="share", against="exact search")

    def _singles(self, memory: MemoryManage, postgres: RawPostgres) -> list[Row]:
        self._say("single adds and deletes")
        adds, deletes = [], []
        for number in range(ROUNDS):
            texts = [f"single {number} {place} {uuid.uuid4().hex}" for place in range(SINGLES)]
            vector = self._made.vectors[number]
            raw_ids = [uuid.uuid4().hex for _ in texts]
            blob = vector.astype("<f2").tobytes()
            raw = seconds_of(
                [functools.partial(postgres.insert, raw_id, text, blob)
                 for raw_id, text in zip(raw_ids, texts, strict=True)]
            )  # fmt: skip
            ids: list[str] = []
            add = functools.partial(self._add, memory, vector, ids)
            adds.append((seconds_of([functools.partial(add, text) for text in texts]), median_of(raw)))
            gone = seconds_of([functools.partial(postgres.delete, raw_id) for raw_id in raw_ids])
            calls = [functools.partial(memory.delete, one, namespace=("bench", "single")) for one in ids]
            deletes.append((seconds_of(calls), median_of(gone)))
        return [
            *compared("durable add", adds, "one-row insert"),
            *compared("delete", deletes, "one-row delete"),
        ]

    def _add(self, memory: MemoryManage, vector: Vector, ids: list[str], text: str) -> None:
        written = memory.add(
            text, namespace=("bench", "single"), embedding=vector, space=SPACE.name
        )
        ids.append(written.id)

    def _reopen(self) -> list[Row]:
        self._say("reopening")
        taken = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            memory = open_memory(self._data_dir)
            question, vector = next(self._questions())
            memory.search(
                question, namespace=LARGE, query_embedding=vector, space=SPACE.name
            )
            taken.append(time.perf_counter() - start)
            memory.close()
        value = median_of(taken) * 1000
        return [Row(what="reopen", value=value, unit="ms to the first answer, server up")]

    def _weights(self, postgres: RawPostgres) -> list[Row]:
        stored = self._size + SMALL_NAMESPACES * self._small
        base, loaded = (
            _anonymous_bytes(self._data_dir, searches) for searches in ("none", "all")
        )
        folders = sum(
            file.stat().st_size
            for name in ("vectors", "keywords")
            for file in (self._data_dir / name).rglob("*")
            if file.is_file() and "/gen-" not in str(file.parent) or _is_newest(file)
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


def _is_newest(file: Path) -> bool:
    generations = sorted(file.parent.parent.glob("gen-*"))
    return bool(generations) and file.parent == generations[-1]


def _anonymous_bytes(data_dir: Path, searches: str) -> float:
    """Anonymous memory of a fresh process that opened the store and searched, in bytes."""
    script = Path(__file__).with_name("weigh.py")
    out = subprocess.run(
        [sys.executable, str(script), str(data_dir), searches],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(script.parent.parent)},
    )
    return float(out.stdout.split()[-1])


def _rate(what: str, count: int, ours: float, against: str, limit: float) -> Row:
    return Row(
        what=what, value=count / ours, unit="memories/s", against=against, ratio=limit / ours
    )


def bring_up_to_date(memory: MemoryManage) -> None:
    """Apply everything pending, as the background thread would."""
    while not memory.apply_now():
        time.sleep(_CHECK_EVERY)
