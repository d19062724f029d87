"""The limits: raw FAISS, Tantivy and PostgreSQL, doing the same with nothing around them."""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import faiss
import numpy as np
import psycopg
import tantivy

from memory_tool.adapters.postgres_server import EmbeddedPostgres
from memory_tool.model import Vector
from memory_tool.text.tokenise import tokenise

EF_CONSTRUCTION: Final = 200
LINKS: Final = 32


class RawFaiss:
    """One HNSW32 over 8-bit codes, as the product builds it."""

    def __init__(self, vectors: Vector, ef: int) -> None:
        """Build it and remember how long that took."""
        dimension = vectors.shape[1]
        self.index = faiss.IndexHNSWSQ(
            dimension,
            cast(
                "faiss.ScalarQuantizer", faiss.ScalarQuantizer.QT_8bit
            ),  # the stubs want another type
            LINKS,
            faiss.METRIC_INNER_PRODUCT,
        )
        self.index.hnsw.efConstruction = EF_CONSTRUCTION
        faiss.omp_set_num_threads(max(1, (os.cpu_count() or 1) - 1))
        start = time.perf_counter()
        order = np.random.default_rng(0).permutation(len(vectors))
        self.index.train(vectors[order])
        self.index.add(vectors[order])
        self.build_seconds = time.perf_counter() - start
        faiss.omp_set_num_threads(1)
        self.index.hnsw.efSearch = ef

    def search(self, vector: Vector, depth: int) -> None:
        """The ``depth`` nearest."""
        self.index.search(vector[None], depth)


class RawFlat:
    """An exact scan of one small namespace."""

    def __init__(self, vectors: Vector) -> None:
        """Keep the vectors."""
        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)

    def search(self, vector: Vector, depth: int) -> None:
        """The ``depth`` nearest."""
        self.index.search(vector[None], depth)


class RawTantivy:
    """One field of the same tokens, nothing stored."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts."""
        self._folder = Path(tempfile.mkdtemp(prefix="threefold-bench-"))
        schema = (
            tantivy.SchemaBuilder()
            .add_text_field("words", tokenizer_name="raw_words", index_option="freq")
            .build()
        )
        self._index = tantivy.Index(schema, path=str(self._folder))
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("raw_words", analyzer)
        writer = self._index.writer(heap_size=50_000_000, num_threads=1)
        for text in texts:
            words = " ".join(tokenise(text).words)
            writer.add_document(tantivy.Document.from_dict({"words": words}, schema))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._schema = schema
        self._searcher = self._index.searcher()

    def search(self, question: str, depth: int) -> None:
        """The ``depth`` best."""
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "words", word))
            for word in dict.fromkeys(tokenise(question).words)
        ]
        self._searcher.search(tantivy.Query.boolean_query(terms), limit=depth, count=False)

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)


_TABLES: Final = """
CREATE TABLE IF NOT EXISTS bench_row (id uuid PRIMARY KEY, content text, embedding bytea);
TRUNCATE bench_row
"""


class RawPostgres:
    """A plain table in the product's own server: one row an insert, one fsync a commit."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], product: str) -> None:
        """Make the table; ``product`` is the address of the product's own database."""
        self._connection = connection
        self.product = product
        connection.execute(_TABLES)

    def insert(self, memory_id: str, text: str, *, embedding: bytes) -> None:
        """One row, durable."""
        self._connection.execute(
            "INSERT INTO bench_row VALUES (%s, %s, %s)", (memory_id, text, embedding)
        )

    def delete(self, memory_id: str) -> None:
        """One row, durable."""
        self._connection.execute("DELETE FROM bench_row WHERE id = %s", (memory_id,))

    def copy(self, rows: Sequence[tuple[uuid.UUID, str, bytes]]) -> float:
        """Seconds of one binary COPY of all rows."""
        self._connection.execute("TRUNCATE bench_row")
        start = time.perf_counter()
        with (
            self._connection.cursor() as cursor,
            cursor.copy("COPY bench_row FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types(["uuid", "text", "bytea"])
            for row in rows:
                copy.write_row(row)
        return time.perf_counter() - start

    def product_bytes(self) -> int:
        """Size of the product's database, vacuumed."""
        with psycopg.connect(self.product, autocommit=True) as connection:
            connection.execute("VACUUM")
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(str(row[0])) if row else 0


@contextmanager
def raw_postgres(data_dir: Path) -> Iterator[RawPostgres]:
    """A plain table in a database of its own, in the embedded server of ``data_dir``."""
    server = EmbeddedPostgres(data_dir)
    server.start()
    try:
        with psycopg.connect(server.superuser_conninfo(), autocommit=True) as admin:
            admin.execute("DROP DATABASE IF EXISTS threefold_bench")
            admin.execute("CREATE DATABASE threefold_bench")
        conninfo = server.superuser_conninfo("threefold_bench")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.prepare_threshold = 3
            yield RawPostgres(connection, server.superuser_conninfo("threefold"))
    finally:
        server.close()
