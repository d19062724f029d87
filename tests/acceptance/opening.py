"""Opening memories for the acceptance tests: in own folders, on a database, in processes."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from memory_manage.bootstrap import Parts, open_parts
from memory_manage.manager import MemoryManage
from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.scope import Namespace
from memory_tool.text.tokenise import TOKENISER_VERSION
from tests.acceptance.other_process import OtherProcess, other_process


@contextlib.contextmanager
def passable_folder() -> Iterator[Path]:
    """An empty folder, gone at the end. Under root the server's user has to pass through it."""
    with tempfile.TemporaryDirectory(prefix="threefold-test-") as folder:
        path = Path(folder)
        path.chmod(0o711)
        yield path


def spare_the_disk(data_dir: Path) -> None:
    """Let the embedded server of an open memory not wait for the disk: tests kill no machines."""
    with (
        EmbeddedPostgres(data_dir) as server,
        psycopg.connect(server.superuser_conninfo(), autocommit=True) as connection,
    ):
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")


def make_namespaces(data_dir: Path, namespaces: Iterable[Namespace]) -> None:
    """Make namespaces without memories, a thousand of them in no time."""
    rows = [
        (at.address, hashlib.sha256(at.address.encode()).digest(), at.project, at.user)
        for at in namespaces
    ]
    with (
        EmbeddedPostgres(data_dir) as server,
        psycopg.connect(server.conninfo(role=Role.OWNER)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.executemany("SELECT threefold.ensure_namespace(%s, %s, %s, %s, NULL, NULL)", rows)


CANARY: Final = "zorblax"
"""A word without a stem, so that it stands in an index as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What the indexes hold: vectors, chunks, and chunks that say the canary's name."""

    vectors: int
    chunks: int
    canaries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStore:
    """A store that one test may spoil, opened by this process or by others.

    Attributes:
        folder: Holds the data folders.
        database_url: The database, as its application role; empty means embedded.
        settings: Further settings of whoever opens it.
    """

    folder: Path
    database_url: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def data_dir(self, name: str = "one") -> Path:
        """The data folder of that name, such as another host would have."""
        return self.folder / name

    def index_folders(self) -> tuple[Path, Path]:
        """Where the indexes of the first data folder lie; of vectors, those of its one space."""
        vectors = self.data_dir() / "vectors"
        return next(vectors.glob("*-*"), vectors), self.data_dir() / "keywords"

    def lose_indexes(self) -> None:
        """Delete every index folder."""
        for folder in self.index_folders():
            shutil.rmtree(folder)

    def indexed(self) -> Indexed:
        """What the indexes of the first data folder hold, read from their files."""
        vectors, _ = self.index_folders()
        newest = max(vectors.glob("gen-*/manifest.json"), key=lambda path: path.parent.name)
        manifest = json.loads(newest.read_text(encoding="utf-8"))
        counted = self._term_documents(CANARY, "")
        return Indexed(
            vectors=manifest["rows"], chunks=counted[""], canaries=counted.get(CANARY, 0)
        )

    def keyword_chunks(self) -> int:
        """How many chunks the keyword index of the first data folder holds, if there is one."""
        return self._term_documents("").get("", 0)

    def _term_documents(self, *terms: str) -> Mapping[str, int]:
        keywords = self.index_folders()[1]
        index = TantivyKeywordIndex(keywords, target="a reader", tokeniser=TOKENISER_VERSION)
        counted = index.view().term_documents(terms)
        index.close()
        return counted

    def open(self, name: str = "one", /, **arguments: Any) -> MemoryManage:  # noqa: ANN401 - those of MemoryManage.open
        """Open it here; the test closes it."""
        return MemoryManage.open(
            on_progress=lambda _line: None, **{**self._settings(name), **arguments}
        )

    def parts(self, name: str = "one", /, **arguments: Any) -> Parts:  # noqa: ANN401 - those of open_parts
        """What a memory of it is made of, for tests that look beneath."""
        return open_parts({**self._settings(name), **arguments}, on_progress=lambda _line: None)

    def other_process(
        self, name: str = "one", /, **settings: str
    ) -> contextlib.AbstractContextManager[OtherProcess]:
        """Open it in another process."""
        return other_process({**self._settings(name), **settings})

    def command(self, *arguments: str, name: str = "one") -> "subprocess.CompletedProcess[str]":
        """Run ``threefold`` on it until it ends."""
        return subprocess.run(
            self._command(arguments, name), capture_output=True, text=True, check=False
        )

    def begun(self, *arguments: str, name: str = "one") -> "subprocess.Popen[str]":
        """Start ``threefold`` on it, for a test that kills it or waits for it."""
        return subprocess.Popen(
            self._command(arguments, name),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    @contextlib.contextmanager
    def worker(self, name: str = "one") -> "Iterator[subprocess.Popen[str]]":
        """A ``threefold worker`` that has said that it runs; ended at the end."""
        command = self._command(["worker"], name)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            try:
                if child.stdout is None or not child.stdout.readline():
                    message = "the worker said nothing"
                    raise RuntimeError(message)
                yield child
            finally:
                child.terminate()
                child.wait()

    def _command(self, arguments: Iterable[str], name: str) -> list[str]:
        variables = {
            f"THREEFOLD_{setting.upper()}": value for setting, value in self._settings(name).items()
        }
        settings = [f"{variable}={value}" for variable, value in variables.items()]
        threefold = [sys.executable, "-m", "memory_manage.interfaces.cli"]
        return ["env", *settings, *threefold, *arguments]

    def _settings(self, name: str) -> dict[str, Any]:
        settings = {"data_dir": str(self.data_dir(name)), "embedder": "hashing", **self.settings}
        return settings | ({"database_url": self.database_url} if self.database_url else {})
