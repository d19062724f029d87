"""Kinds of index compared: what each takes, finds and costs, with rescoring and without."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import faiss
import numpy as np

from memory_tool.adapters.faiss_codes import KINDS, IndexKind
from memory_tool.adapters.faiss_codes_recall import Sample, measured_recall
from memory_tool.adapters.faiss_graph import (
    Graph,
    GraphPolicy,
    build_graph,
    building_threads,
    read_graph,
    write_graph,
)
from memory_tool.adapters.faiss_vectors import Halves, Rows, decoded, inner_products
from memory_tool.model import Vector
from memory_tool.vector_kinds import VECTOR_INDEXES
from scripts.benchmark.codes_sets import VectorSet, vector_sets
from scripts.benchmark.rows import median_of, seconds_of

AT: Final = 10
DEEP: Final = 100
"""Candidates that a hybrid search for ten asks the vectors for."""

SCAN: Final = "exact scan"
TIMES_LESS: Final = 16
LOSS_MAX: Final = 0.01
_TIE: Final = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class CodesRow:
    """One kind of index over one set.

    Attributes:
        data: The set.
        kind: The kind.
        bytes_a_vector: Of its file, which is what a process has in memory.
        times_less: Than floats.
        width: How widely it is searched: chosen by the sample, as a fold does.
        sampled: Recall of the sample.
        recall_codes: Recall@10 of the questions by the codes alone.
        recall: The same after rescoring from the stored vectors.
        recall_deep: Recall@100 of a search 100 deep.
        build_seconds: To train and fill it, with all cores but one.
        p50_ms: Of a search for ten, rescoring included.
        p50_deep_ms: Of a search 100 deep.
        process_mb: Memory that a process needs to hold it, in megabytes.
        chosen: Whether ``compressed`` takes it for this set.
    """

    data: str
    kind: str
    bytes_a_vector: float
    times_less: float
    width: int
    sampled: float
    recall_codes: float
    recall: float
    recall_deep: float
    build_seconds: float
    p50_ms: float
    p50_deep_ms: float
    process_mb: float
    chosen: bool = False

    @property
    def loss(self) -> float:
        """Share of the hits that rescoring doesn't bring back."""
        return 1 - self.recall

    @property
    def loss_codes(self) -> float:
        """Share of the hits that the codes alone lose."""
        return 1 - self.recall_codes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A set as the product keeps it: half floats in a mapped file, and the right answers."""

    what: str
    halves: Halves
    file: Path
    questions: Vector
    tenth: Vector
    hundredth: Vector

    @classmethod
    def of(cls, given: VectorSet, folder: Path) -> "_Stored":
        """Write it; rows in random order, as ids would put them."""
        file = folder / "vectors.f16"
        order = np.random.default_rng(0).permutation(len(given.vectors))
        given.vectors[order].astype("<f2").tofile(file)
        halves = np.memmap(file, np.dtype("<f2"), mode="r", shape=given.vectors.shape)
        scores, _ = faiss.knn(
            given.questions, decoded(halves), DEEP, metric=faiss.METRIC_INNER_PRODUCT
        )
        return cls(
            what=given.what,
            halves=halves,
            file=file,
            questions=given.questions,
            tenth=scores[:, AT - 1],
            hundredth=scores[:, -1],
        )

    def rescored(self, rows: Rows, question: Vector) -> Vector:
        """The scores of these rows by the stored vectors."""
        return inner_products(decoded(self.halves[rows]), question)

    def recall(self, found: Sequence[Rows]) -> float:
        """Share of the ten nearest rows, or of others as near, that were found."""
        return self._share(found, self.tenth, of=AT)

    def recall_deep(self, found: Sequence[Rows]) -> float:
        """The same of the hundred nearest."""
        return self._share(found, self.hundredth, of=DEEP)

    def _share(self, found: Sequence[Rows], least: Vector, *, of: int) -> float:
        hits = 0
        for rows, question, score in zip(found, self.questions, least, strict=True):
            hits += min(of, int((self.rescored(rows, question) >= score - _TIE).sum()))
        return hits / (of * len(self.questions))


def compare(
    size: int, folder: Path, *, real: Path | None, say: Callable[[str], None]
) -> Iterator[list[CodesRow]]:
    """Every kind over one set after the other.

    Args:
        size: Made vectors of 384 numbers.
        folder: An empty folder to work in.
        real: The folder of the evaluation sets, if there is one.
        say: Told what is being measured.
    """
    for given in vector_sets(size, real, say=say):
        stored = _Stored.of(given, folder)
        sample = Sample.of(stored.halves, dead=np.zeros(len(stored.halves), np.bool_))
        rows = [_scanned(stored)]
        for kind in KINDS.values():
            if kind.least > len(stored.halves):
                say(f"{stored.what}: {kind.name} is trained with {kind.least:,} vectors at least")
                continue
            say(f"{stored.what}: {kind.name}")
            rows.append(_measured(kind, stored, sample=sample, folder=folder))
        yield _with_choice(rows)


def _with_choice(rows: Sequence[CodesRow]) -> list[CodesRow]:
    """What a fold would take for ``compressed``: the first that finds enough of the sample."""
    tried = [row for name in VECTOR_INDEXES["compressed"] for row in rows if row.kind == name]
    enough = [row for row in tried if row.sampled >= KINDS[row.kind].recall_wanted]
    taken = enough[0] if enough else max(tried, key=lambda row: row.sampled)
    return [replace(row, chosen=row is taken) for row in rows]


def _scanned(stored: _Stored) -> CodesRow:
    """Every vector read: what a small namespace gets, and what the others have to beat."""
    floats = decoded(stored.halves)
    taken = seconds_of([partial(inner_products, floats, question) for question in stored.questions])
    return CodesRow(
        data=stored.what,
        kind=SCAN,
        bytes_a_vector=floats.shape[1] * 4,
        times_less=1,
        width=0,
        sampled=1,
        recall_codes=1,
        recall=1,
        recall_deep=1,
        build_seconds=0,
        p50_ms=1000 * median_of(taken),
        p50_deep_ms=1000 * median_of(taken),
        process_mb=floats.nbytes / 1e6,
    )


def _measured(kind: IndexKind, stored: _Stored, *, sample: Sample, folder: Path) -> CodesRow:
    rows, dimension = stored.halves.shape
    path = folder / "index.faiss"
    policy = GraphPolicy()
    path.touch()
    with building_threads(policy.threads):
        start = time.perf_counter()
        write_graph(build_graph(stored.halves, kind, policy=policy), path)
        built = time.perf_counter() - start
    index = read_graph(path, kind, rows=rows, dimension=dimension)
    width, sampled = measured_recall(index, kind, sample=sample)
    graph = Graph(index, kind, width=width, alive=None)
    bytes_a_vector = path.stat().st_size / rows
    return CodesRow(
        data=stored.what,
        kind=kind.name,
        bytes_a_vector=bytes_a_vector,
        times_less=4 * dimension / bytes_a_vector,
        width=width,
        sampled=sampled,
        recall_codes=stored.recall(_by_codes(index, kind, width=width, stored=stored)),
        recall=stored.recall([graph.nearest(one, AT) for one in stored.questions]),
        recall_deep=stored.recall_deep([graph.nearest(one, DEEP) for one in stored.questions]),
        build_seconds=built,
        p50_ms=_p50_ms(graph, stored, depth=AT),
        p50_deep_ms=_p50_ms(graph, stored, depth=DEEP),
        process_mb=_process_bytes(path, kind, width=width, stored=stored) / 1e6,
    )


def _by_codes(index: faiss.Index, kind: IndexKind, *, width: int, stored: _Stored) -> list[Rows]:
    """The ten best as the codes have it."""
    parameters = kind.parameters(width)
    found = [index.search(one[np.newaxis], AT, params=parameters)[1] for one in stored.questions]
    return [rows[0][rows[0] >= 0] for rows in found]


def _p50_ms(graph: Graph, stored: _Stored, *, depth: int) -> float:
    calls = [
        partial(_search, graph, stored, question=question, depth=depth)
        for question in stored.questions
    ]
    return 1000 * median_of(seconds_of(calls))


def _search(graph: Graph, stored: _Stored, *, question: Vector, depth: int) -> None:
    stored.rescored(graph.nearest(question, depth), question)


def _process_bytes(index: Path, kind: IndexKind, *, width: int, stored: _Stored) -> float:
    """Memory that a process of its own needs to hold an index and search it."""
    script = Path(__file__).with_name("codes_weigh.py")
    told = (index, stored.file, kind.name, width, stored.halves.shape[1])
    out = subprocess.run(
        [sys.executable, str(script), *map(str, told)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(script.parents[2])},
    )
    return float(out.stdout)


def missed_by(rows: Sequence[CodesRow]) -> list[str]:
    """What was promised and doesn't hold: a line for each set."""
    return [
        f"{row.data}: {row.kind} takes {row.times_less:.1f} times less and loses {row.loss:.1%},"
        f" wanted {TIMES_LESS} times and less than {LOSS_MAX:.0%}"
        for row in rows
        if row.chosen and (row.times_less < TIMES_LESS or row.loss >= LOSS_MAX)
    ]
