"""Made memories put straight into the tables: a million in minutes instead of hours.

What is measured afterwards is building indexes from PostgreSQL, to which it is all one how the rows
came there.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from memory_tool.adapters.postgres_server import EmbeddedPostgres
from memory_tool.text.tokenise import tokenise
from scripts.benchmark.made import SPACE, Made
from scripts.benchmark.ours import open_memory
from scripts.benchmark.questions import LARGE

_STAGING: Final = """
CREATE UNLOGGED TABLE IF NOT EXISTS bench_staging (
    number bigint, id uuid, content text, words text, bigrams text, embedding bytea)
"""
_COLUMNS: Final = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'threefold' AND table_name = %s AND is_generated = 'NEVER'
"""
_SLOW_INDEXES: Final = ("chunk_tokens", "memory_extra", "memory_metadata")
_MEMORY: Final[Mapping[str, str]] = {
    "id": "s.id",
    "nseq": "s.number",
    "vector_nseq": "s.number",
    "keyword_nseq": "s.number",
    "content": "s.content",
    "content_hash": "sha256(s.content::bytea)",
    "dedup_hash": "NULL",
}
_CHUNK: Final[Mapping[str, str]] = {
    "memory_id": "s.id",
    "stop": "length(s.content)",
    "words": "s.words",
    "bigrams": "s.bigrams",
    "embedding": "s.embedding",
}
_PROCESSES: Final = 2
_TEXTS_AT_ONCE: Final = 2000


def load(data_dir: Path, made: Made) -> None:
    """All made memories in one namespace of the store in ``data_dir``, and no index of them yet."""
    with open_memory(data_dir, applying=False) as memory:
        memory.add(made.texts[0], namespace=LARGE, embedding=made.vectors[0], space=SPACE.name)
        with connected(data_dir) as connection:
            _copy(connection, made)
            with _without_slow_indexes(connection):
                _spread(connection, "memory", replaced=_MEMORY)
                _spread(connection, "chunk", replaced=_CHUNK)
            connection.execute(
                "UPDATE threefold.ns_clock SET nseq = nseq + %s, changed_at = now()",
                [len(made.texts) - 1],
            )
            connection.execute("DROP TABLE bench_staging")
            connection.execute("ANALYZE")


@contextmanager
def connected(data_dir: Path) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """The product's database, past its walls."""
    with (
        EmbeddedPostgres(data_dir) as server,
        psycopg.connect(server.superuser_conninfo("threefold"), autocommit=True) as connection,
    ):
        connection.execute("SET maintenance_work_mem = '1GB'")
        yield connection


def tokens_of(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Words and bigrams of each text."""
    tokenised = map(tokenise, texts)
    return [(" ".join(one.words), " ".join(one.bigrams)) for one in tokenised]


def tokenised(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The same of many texts, on all cores."""
    parts = [texts[at : at + _TEXTS_AT_ONCE] for at in range(0, len(texts), _TEXTS_AT_ONCE)]
    with ProcessPoolExecutor(_PROCESSES) as workers:
        for part in workers.map(tokens_of, parts):
            yield from part


def _copy(connection: "psycopg.Connection[tuple[object, ...]]", made: Made) -> None:
    connection.execute(_STAGING)
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY bench_staging FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types(["int8", "uuid", "text", "text", "text", "bytea"])
        rows = zip(made.texts[1:], made.vectors[1:], tokenised(made.texts[1:]), strict=True)
        for number, (text, vector, (words, bigrams)) in enumerate(rows, start=2):
            halves = vector.astype("<f2").tobytes()
            copy.write_row((number, uuid.uuid4(), text, words, bigrams, halves))


def _spread(
    connection: "psycopg.Connection[tuple[object, ...]]", table: str, *, replaced: Mapping[str, str]
) -> None:
    """A row for each staged one, like the only row that there is but for what is replaced."""
    columns = [str(name) for (name,) in connection.execute(_COLUMNS, [table])]
    taken = [
        sql.SQL(replaced[name])
        if name in replaced
        else sql.SQL("t.{}").format(sql.Identifier(name))
        for name in columns
    ]
    connection.execute(
        sql.SQL(
            "INSERT INTO threefold.{table} ({columns})"
            " SELECT {taken} FROM bench_staging s, (SELECT * FROM threefold.{table} LIMIT 1) t"
        ).format(
            table=sql.Identifier(table),
            columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
            taken=sql.SQL(", ").join(taken),
        )
    )


@contextmanager
def _without_slow_indexes(
    connection: "psycopg.Connection[tuple[object, ...]]",
) -> Iterator[None]:
    """Filled afterwards, an index of tokens takes a tenth of the time."""
    made = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes"
        " WHERE schemaname = 'threefold' AND indexname = ANY (%s)",
        [list(_SLOW_INDEXES)],
    ).fetchall()
    for name, _ in made:
        connection.execute(sql.SQL("DROP INDEX threefold.{}").format(sql.Identifier(str(name))))
    yield
    for _, definition in made:
        whole = str(definition).replace(" ON ONLY ", " ON ")
        connection.execute(sql.SQL(whole))
