"""What the product does on servers, next to the plain clients of the same servers."""

import functools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psycopg

from memory_manage.manager import MemoryManage
from memory_tool.adapters.elasticsearch_indexes import ElasticsearchIndexes
from memory_tool.adapters.elasticsearch_layout import (
    Document,
    KeywordLayout,
    Layout,
    VectorLayout,
    definition,
    documents,
)
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from memory_tool.index_jobs.applier import Applier
from memory_tool.port_values import TargetBase
from memory_tool.settings import Settings
from memory_tool.text.tokenise import TOKENISER_VERSION
from scripts.benchmark.limits import RawPostgres
from scripts.benchmark.made import SPACE, make
from scripts.benchmark.ours import (
    QUESTIONS,
    ROUNDS,
    anonymous_bytes,
    bring_up_to_date,
    open_memory,
)
from scripts.benchmark.questions import (
    IN_BUCKET,
    LARGE,
    SMALL,
    Mode,
    Questions,
    fill_large,
    fill_small,
)
from scripts.benchmark.raw_elasticsearch import RawElasticsearch, RawPages, matching, nearest
from scripts.benchmark.rows import Row, compared, median_of, seconds_of

_EVERYTHING: Final = 10_000_000

Kind = Literal["keyword", "vector"]
_LAYOUTS: Final[Mapping[Kind, Layout]] = {
    "keyword": KeywordLayout(tokeniser=TOKENISER_VERSION),
    "vector": VectorLayout(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    """The documents of one namespace, as the plain clients reach them."""

    pages: RawPages
    indices: Mapping[Kind, str]
    ns_id: int


class ServersBench:
    """One run: fill the truth, bring Elasticsearch up to date, search by it and beside it."""

    def __init__(self, size: int, data_dir: Path, *, url: str, say: Callable[[str], None]) -> None:
        """Make the memories. ``url`` is that of an Elasticsearch without a password."""
        self._size = size
        self._data_dir = data_dir
        self._url = url
        self._say = say
        self._prefix = f"threefold-bench-{uuid.uuid4().hex[:12]}"
        self._made = make(size, QUESTIONS)
        self._questions = Questions(self._made)
        self._raw = RawElasticsearch(url)

    def run(self, postgres: RawPostgres) -> list[Row]:
        """All rows."""
        try:
            return [*self._bulk(), *self._searches(postgres)]
        finally:
            self._raw.remove(self._prefix)
            self._raw.close()

    # ── Filling ──

    def _bulk(self) -> list[Row]:
        self._say(f"storing {self._size:,} memories in one namespace and in a hundred")
        with open_memory(self._data_dir) as memory:
            fill_large(memory, self._made)
            fill_small(memory, self._made)
            bring_up_to_date(memory)
        with self._log() as log:
            self._say("texts into Elasticsearch, by the applier and by the plain client")
            texts = [self._filled("keyword", log, again=n) for n in range(ROUNDS)]
            self._say(
                "vectors likewise; a Java without its vector module takes 6 to 9 times as long"
            )
            vectors = [self._filled("vector", log, again=0)]
        return [
            _rate("bulk of texts", texts, goal_of="helpers.bulk"),
            _rate("bulk of vectors", vectors, goal_of="helpers.bulk"),
        ]

    @contextmanager
    def _log(self) -> Iterator[PostgresChangeLog]:
        server = EmbeddedPostgres(self._data_dir)
        server.start()
        pool = PostgresPool(server.conninfo(role=Role.WORKER))
        pool.open()
        try:
            yield PostgresChangeLog(pool)
        finally:
            pool.close()
            server.close()

    def _filled(
        self, kind: Kind, log: PostgresChangeLog, *, again: int
    ) -> tuple[int, float, float]:
        """(documents, our seconds, the plain client's); what the first time made is searched."""
        indexes = self._indexes(f"{self._prefix}-{again}" if again else self._prefix, log)
        try:
            target = indexes.target(kind, log=log)
            applier = Applier(log, [target])
            start = time.perf_counter()
            applier.run(force=True)
            ours = time.perf_counter() - start
        finally:
            indexes.close()
        wanted = definition(_LAYOUTS[kind], SPACE)
        ready = _documents(kind, log)
        return len(ready), ours, self._raw.fill(ready, wanted)

    def _indexes(self, prefix: str, log: PostgresChangeLog) -> ElasticsearchIndexes:
        settings = Settings(
            elasticsearch_url=self._url,
            elasticsearch_prefix=prefix,
            elasticsearch_replicas=0,
            arm_seconds=60.0,
        )
        return ElasticsearchIndexes(settings, store=log.identity(), tokeniser=TOKENISER_VERSION)

    # ── Searching ──

    def _searches(self, postgres: RawPostgres) -> list[Row]:
        rows: list[Row] = []
        with psycopg.connect(postgres.product, autocommit=True) as connection:
            for backend, name in (("elasticsearch", "Elasticsearch"), ("faiss", "FAISS")):
                self._say(f"searching with vectors in {name} and words in Elasticsearch")
                settings = self._settings(backend)
                with open_memory(self._data_dir, **settings) as memory:
                    bring_up_to_date(memory)
                    rows += self._searched(memory, RawPages(connection), of=f", {name}")
                rows.append(self._weight(settings, of=f", {name}"))
        return [*rows, *self._sizes()]

    def _settings(self, backend: str) -> dict[str, object]:
        return {
            "elasticsearch_url": self._url,
            "elasticsearch_prefix": self._prefix,
            "elasticsearch_replicas": 0,
            "arm_seconds": 60.0,
            "vector_backend": backend,
        }

    def _searched(self, memory: MemoryManage, pages: RawPages, *, of: str) -> list[Row]:
        rows: list[Row] = []
        for namespace, at in ((LARGE, ""), (SMALL, " in 1 % namespace")):
            where = self._where(memory, pages, namespace=namespace)
            for mode in ("hybrid", "vector", "keyword"):
                rows += self._search(memory, mode, namespace=namespace, where=where, of=at + of)
        rows += self._filtered(memory, of=of)
        return [*rows, *self._questions.recalls(memory, of=of)]

    def _where(
        self, memory: MemoryManage, pages: RawPages, *, namespace: tuple[str, ...]
    ) -> _Where:
        found = self._questions.calls(memory, "vector", namespace=namespace)[0]()
        return _Where(
            pages=pages, indices=self._indices(), ns_id=pages.namespace(next(iter(found)).id)
        )

    def _indices(self) -> Mapping[Kind, str]:
        """The index of each kind that is read."""
        with self._log() as log:
            indexes = self._indexes(self._prefix, log)
            pointers = {kind: log.pointer(indexes.target_name(kind)) for kind in _LAYOUTS}
            indexes.close()
        return {kind: pointer.locator for kind, pointer in pointers.items() if pointer}

    def _search(
        self,
        memory: MemoryManage,
        mode: Mode,
        *,
        namespace: tuple[str, ...],
        where: _Where,
        of: str,
    ) -> list[Row]:
        ours = self._questions.calls(memory, mode, namespace=namespace)
        raw = self._raw_calls(mode, where)
        # Once for all: the server compiles what it does often, and what was just filled is merged.
        self._raw.wait_for_merges()
        seconds_of([*ours, *raw])
        rounds = [_in_turn(ours, raw) for _ in range(ROUNDS)]
        limit = median_of([limit for _, limit in rounds]) * 1000
        return compared(f"{mode} search{of}", rounds, against=f"raw msearch + page: {limit:.1f} ms")

    def _raw_calls(self, mode: Mode, where: _Where) -> list[Callable[[], object]]:
        calls: list[Callable[[], object]] = []
        for question, vector in self._questions:
            searches = {
                "vector": nearest(where.indices["vector"], where.ns_id, vector=vector),
                "keyword": matching(where.indices["keyword"], where.ns_id, question=question),
            }
            wanted = list(searches.values()) if mode == "hybrid" else [searches[mode]]
            calls.append(functools.partial(self._raw.ask, wanted, where.pages.fetch))
        return calls

    def _filtered(self, memory: MemoryManage, *, of: str) -> list[Row]:
        calls = self._questions.calls(memory, "hybrid", filters=IN_BUCKET)
        seconds_of(calls[:5])
        value = median_of(seconds_of(calls[:40])) * 1000
        return [Row(what=f"hybrid search with a 1 % filter{of}", value=value, unit="ms p50")]

    # ── Weighing ──

    def _weight(self, settings: Mapping[str, object], *, of: str) -> Row:
        base, loaded = (
            anonymous_bytes(self._data_dir, searches, settings=settings)
            for searches in ("none", "all")
        )
        return Row(
            what=f"client memory for each memory{of}",
            value=max(0.0, loaded - base) / (2 * self._size),
            unit="bytes, anonymous",
        )

    def _sizes(self) -> list[Row]:
        stored = 2 * self._size
        rows = []
        for kind, index in self._indices().items():
            size, segments = self._raw.sizes(index)
            unit = f"bytes a memory, {segments} segments"
            rows.append(Row(what=f"disk of Elasticsearch, {kind}s", value=size / stored, unit=unit))
        held = self._raw.graph_bytes(self._indices()["vector"]) / stored
        return [*rows, Row(what="page cache of Elasticsearch", value=held, unit="bytes a memory")]


def _in_turn(
    ours: Sequence[Callable[[], object]], raw: Sequence[Callable[[], object]]
) -> tuple[list[float], float]:
    """Our seconds and the median of the plain client's, call by call: a busy moment hits both."""
    taken = [seconds_of(pair) for pair in zip(ours, raw, strict=True)]
    return [mine for mine, _ in taken], median_of([theirs for _, theirs in taken])


def _documents(kind: Kind, log: PostgresChangeLog) -> list[Document]:
    """Every document that the index of this kind has to hold."""
    nothing = TargetBase(mark=None, clocks={})
    with log.changes("bench", kind, base=nothing, limit=_EVERYTHING) as batch:
        return [
            document
            for row in batch.rows
            for document in documents(row, _LAYOUTS[kind], space=batch.space)
        ]


def _rate(what: str, filled: Sequence[tuple[int, float, float]], *, goal_of: str) -> Row:
    return Row(
        what=what,
        value=median_of([count / ours for count, ours, _ in filled]),
        unit="documents/s",
        against=f"{goal_of}: {median_of([count / raw for count, _, raw in filled]):,.0f}/s",
        ratio=median_of([raw / ours for _, ours, raw in filled]),
    )
