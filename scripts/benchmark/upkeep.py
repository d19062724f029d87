"""What upkeep costs: full builds next to raw ones, and searches while one goes on."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scripts.benchmark.limits import RawFaiss, RawTantivy
from scripts.benchmark.loaded import connected, load
from scripts.benchmark.made import make
from scripts.benchmark.ours import open_memory
from scripts.benchmark.questions import Questions
from scripts.benchmark.rows import Row, median_of, p95_of

QUESTIONS: Final = 120
SEARCHED_SECONDS: Final = 60.0
"""How long searches are timed while an index is built."""

_COPY_OUT: Final = """
COPY (SELECT m.id, m.vector_nseq, k.embedding
      FROM threefold.memory m
      JOIN threefold.chunk k ON k.ns_id = m.ns_id AND k.memory_id = m.id)
TO STDOUT (FORMAT BINARY)
"""
_MIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searched:
    """Seconds of searches, and how many lacked an index."""

    taken: list[float]
    degraded: int


class UpkeepBench:
    """One run: load the store, build its indexes, search, search while they are built again."""

    def __init__(self, size: int, data_dir: Path, say: Callable[[str], None]) -> None:
        """Make the memories."""
        self._size = size
        self._data_dir = data_dir
        self._say = say
        say(f"making {size:,} memories")
        self._made = make(size, QUESTIONS)
        self._questions = Questions(self._made)

    def run(self) -> list[Row]:
        """All rows."""
        self._say("loading them into PostgreSQL")
        load(self._data_dir, self._made)
        self._say("one binary COPY out of it")
        copied = self._copied()
        self._say("a full build of both indexes")
        with self._building() as child:
            answer = self._answer(child)
        self._say("searching, and searching while they are built again")
        before, during, recall = self._searched()
        self._say("raw HNSW and raw Tantivy of the same rows")
        faiss = RawFaiss(self._questions.stored, ef=128).build_seconds
        tantivy = _seconds(lambda: RawTantivy(self._made.texts).close())
        return [
            *self._builds(answer, copied=copied, faiss=faiss, tantivy=tantivy),
            *_searches(before, during),
            recall,
        ]

    def _copied(self) -> float:
        with connected(self._data_dir) as connection, connection.cursor() as cursor:
            start = time.perf_counter()
            with cursor.copy(_COPY_OUT) as copy:
                for _ in copy:
                    pass
            return time.perf_counter() - start

    @contextmanager
    def _building(self) -> Iterator["subprocess.Popen[str]"]:
        script = Path(__file__).with_name("rebuild_once.py")
        with subprocess.Popen(
            [sys.executable, str(script), str(self._data_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(script.parents[2])},
        ) as child:
            try:
                yield child
            finally:
                child.kill()

    def _answer(self, child: "subprocess.Popen[str]") -> dict[str, Any]:
        out, _ = child.communicate()
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer

    def _searched(self) -> tuple[_Searched, _Searched, Row]:
        with open_memory(self._data_dir, applying=False) as memory:
            calls = self._questions.calls(memory, "hybrid")
            for call in calls:
                call()
            end = time.perf_counter() + SEARCHED_SECONDS / 4
            before = _timed(calls, until=lambda: time.perf_counter() > end)
            recall, *_ = self._questions.recalls(memory)
            with self._building() as child:
                end = time.perf_counter() + SEARCHED_SECONDS
                during = _timed(
                    calls,
                    until=lambda: time.perf_counter() > end or child.poll() is not None,
                )
        return before, during, recall

    def _builds(
        self, answer: dict[str, Any], *, copied: float, faiss: float, tantivy: float
    ) -> list[Row]:
        vectors, recall, ef = answer["built"]["faiss"]
        words, *_ = answer["built"]["tantivy"]
        memory = (answer["peak_kib"] - answer["idle_kib"]) / _MIB
        return [
            self._rate("full build of vectors", vectors, limit=faiss, against="raw HNSW build"),
            self._rate("full build of words", words, limit=tantivy, against="raw Tantivy build"),
            self._rate(
                "full build of both", answer["seconds"], limit=copied, against="raw COPY out"
            ),
            Row(what="most memory of a full build", value=memory, unit="MiB above an open store"),
            Row(what="recall that the build measured", value=recall or 1.0, unit=f"share, ef {ef}"),
        ]

    def _rate(self, what: str, ours: float, *, limit: float, against: str) -> Row:
        return Row(
            what=what,
            value=self._size / ours,
            unit=f"memories/s ({ours:,.1f} s)",
            against=f"{against} ({limit:,.1f} s)",
            ratio=limit / ours,
        )


def _timed(calls: list[Callable[[], Any]], *, until: Callable[[], bool]) -> _Searched:
    taken: list[float] = []
    degraded = 0
    for call in itertools.cycle(calls):
        if until():
            break
        start = time.perf_counter()
        found = call()
        taken.append(time.perf_counter() - start)
        degraded += bool(found.degraded)
    return _Searched(taken=taken, degraded=degraded)


def _searches(before: _Searched, during: _Searched) -> list[Row]:
    return [
        Row(
            what="hybrid search without a build",
            value=median_of(before.taken) * 1000,
            unit="ms p50",
        ),
        Row(
            what="hybrid search without a build, p95",
            value=p95_of(before.taken) * 1000,
            unit="ms p95",
        ),
        Row(
            what="hybrid search during a build",
            value=median_of(during.taken) * 1000,
            unit="ms p50",
            against="without one",
            ratio=median_of(during.taken) / median_of(before.taken),
        ),
        Row(
            what="hybrid search during a build, p95",
            value=p95_of(during.taken) * 1000,
            unit="ms p95",
            against="without one",
            ratio=p95_of(during.taken) / p95_of(before.taken),
        ),
        Row(
            what="searches without an index during a build",
            value=during.degraded,
            unit=f"of {len(during.taken):,}",
        ),
    ]


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
