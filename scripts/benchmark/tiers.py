"""What ageing does to a store: sizes and latencies, all hot, and after the first night."""

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psycopg

from memory_manage.bootstrap import open_parts
from memory_manage.manager import MemoryManage
from memory_manage.results import Found
from memory_tool.adapters.postgres_server import EmbeddedPostgres
from memory_tool.assembly import Ageing, Background
from memory_tool.model import NewMemory
from scripts.benchmark.made import SPACE, Made, MadeEmbedder, make
from scripts.benchmark.ours import bring_up_to_date
from scripts.benchmark.questions import LARGE, Mode, Questions
from scripts.benchmark.rows import Row

QUESTIONS: Final = 100
ROUNDS: Final = 3
SENTENCES: Final = 3
"""Made texts in one memory: about 600 characters, of which a summary is half."""
MODES: Final[Sequence[Mode]] = ("hybrid", "keyword", "vector")
DATABASE: Final = "threefold"

_HAPPENED: Final = datetime(2026, 1, 1, tzinfo=UTC)

_AGE: Final = """
UPDATE threefold.memory SET created_at = created_at - days, updated_at = updated_at - days
FROM (SELECT id AS aged, make_interval(days => CASE
          WHEN part = 0 THEN 0 WHEN part <= 3 THEN 10 ELSE 40 END) AS days
      FROM (SELECT id, ('x' || substr(md5(id::text), 1, 4))::bit(16)::int % 10 AS part
            FROM threefold.memory) p) a
WHERE id = aged
"""
"""A tenth stays hot, three tenths become warm, six tenths cold, by chance."""

_TABLES: Final = """
SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables
WHERE schemaname = 'threefold' AND relname ~ '^(memory|chunk|memory_version)_[0-9]$'
"""


class TiersBench:
    """One run: fill, measure, age, move, measure again."""

    def __init__(self, size: int, data_dir: Path, say: Callable[[str], None]) -> None:
        """Make the memories."""
        self._size = size
        self._data_dir = data_dir
        self._say = say
        self._made = make(size, QUESTIONS)
        self._questions = Questions(self._made)

    def run(self) -> list[Row]:
        """All rows."""
        # Opened twice: with the first a process ends whose searches were uses.
        with _opened(self._data_dir) as (memory, _, _):
            self._say(f"storing {self._size:,} memories of {SENTENCES} sentences")
            _fill(memory, self._made)
            self._settle(memory)
            self._say("measuring: everything is hot")
            before = self._measured(memory)
            first = self._answers(memory)
        with _opened(self._data_dir) as (memory, ageing, background):
            self._sql(_AGE)
            self._sql("DELETE FROM threefold.memory_use")
            self._say("the first night")
            start = time.perf_counter()
            moved = ageing.move(lambda: True)
            took = time.perf_counter() - start
            self._settle(memory)
            loose = _bytes_below(self._data_dir / "keywords") / 1e6
            self._say("the daily rebuild, which lets go of dead entries")
            background.do("full", again=True, may_go_on=lambda: True)
            self._say("measuring: a tenth is hot, three are warm, six are cold")
            after = self._measured(memory)
            second = self._answers(memory)
            figures = ageing.figures()
        return [
            *_compared(before, after),
            Row(what="keyword index before the daily rebuild", value=loose, unit="MB"),
            Row(what="moved", value=moved / took, unit="memories/s"),
            *_same(first, second),
            *(
                Row(what=f"{tier} memories", value=count, unit="")
                for tier, count in figures.memories.items()
            ),
            Row(what="archive", value=figures.size / 1e6, unit="MB"),
        ]

    def _settle(self, memory: MemoryManage) -> None:
        bring_up_to_date(memory)
        self._sql("VACUUM FULL ANALYZE")

    def _measured(self, memory: MemoryManage) -> Mapping[str, float]:
        sizes = {
            "keyword index": _bytes_below(self._data_dir / "keywords") / 1e6,
            "vector index": _newest_generation(self._data_dir / "vectors") / 1e6,
            "tables of memories and chunks": float(str(self._sql(_TABLES)[0][0])) / 1e6,
        }
        times = {f"{mode} search": self._latency(memory, mode) for mode in MODES}
        return {**sizes, **times}

    def _latency(self, memory: MemoryManage, mode: Mode) -> float:
        calls = self._questions.calls(memory, mode)
        for call in calls[:20]:
            call()
        times = []
        for call in calls * ROUNDS:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1000

    def _answers(self, memory: MemoryManage) -> Mapping[Mode, Sequence[Found]]:
        return {mode: [call() for call in self._questions.calls(memory, mode)] for mode in MODES}

    def _sql(self, query: str) -> list[tuple[object, ...]]:
        with (
            EmbeddedPostgres(self._data_dir) as server,
            psycopg.connect(server.superuser_conninfo(DATABASE), autocommit=True) as connection,
        ):
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


@contextmanager
def _opened(data_dir: Path) -> Iterator[tuple[MemoryManage, Ageing, Background]]:
    parts = open_parts(
        {"data_dir": data_dir, "embedder": MadeEmbedder()}, on_progress=lambda _line: None
    )
    with MemoryManage(parts) as memory:
        ageing, background = parts.tool.stores.ageing, parts.tool.stores.background
        if ageing is None or background is None:
            message = "an embedded store has tiers, and indexes that follow it"
            raise RuntimeError(message)
        yield memory, ageing, background


def _compared(before: Mapping[str, float], after: Mapping[str, float]) -> Iterator[Row]:
    for what, value in before.items():
        yield Row(
            what=f"{what}, aged",
            value=after[what],
            unit="ms" if what.endswith("search") else "MB",
            against=f"{value:,.1f} all hot",
            ratio=after[what] / value if value else None,
        )


def _fill(memory: MemoryManage, made: Made) -> None:
    said = functools.partial(_text, made.texts)
    memory.add_many(
        [
            # With a time of its own: recency stays what it is when the rows are made older.
            NewMemory(
                content=said(place),
                embedding=made.vectors[place],
                space=SPACE.name,
                occurred_at=_HAPPENED,
            )
            for place in range(len(made.texts))
        ],
        namespace=LARGE,
    )


def _text(texts: Sequence[str], place: int) -> str:
    """A made text and those after it, as sentences."""
    parts = (texts[(place + further) % len(texts)] for further in range(SENTENCES))
    return ". ".join(parts) + "."


def _same(
    first: Mapping[Mode, Sequence[Found]], second: Mapping[Mode, Sequence[Found]]
) -> Iterator[Row]:
    """How much of the first ten results stayed the same, and how many answers named a lack."""
    for mode in MODES:
        kept = asked = lacking = 0
        for old, new in zip(first[mode], second[mode], strict=True):
            wanted = {item.id for item in old}
            kept += len(wanted & {item.id for item in new})
            asked += len(wanted)
            lacking += bool(new.degraded)
        yield Row(what=f"{mode}: the same first ten", value=kept / max(asked, 1), unit="share")
        yield Row(what=f"{mode}: answers that name a lack", value=lacking, unit="of 100")


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _newest_generation(folder: Path) -> int:
    generations = sorted(folder.glob("gen-*"))
    return _bytes_below(generations[-1]) if generations else 0
