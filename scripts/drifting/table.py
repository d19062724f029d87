"""The table of ``scripts/drift``."""

import argparse
import dataclasses
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from elasticsearch import Elasticsearch
from rich.console import Console
from rich.table import Table

from memory_tool.findings import Level
from scripts.drifting.scene import scene_at
from scripts.drifting.trial import Trial, check_in, trials

_URL: Final = "THREEFOLD_TEST_ELASTICSEARCH_URL"
_COLUMNS: Final = ("what was done", "to", "found", "repaired", "second run", "s")


def run(arguments: Sequence[str]) -> int:
    """Do everything and print the table; the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/drift")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    wanted = parser.parse_args(arguments)
    console = Console(width=None if Console().is_terminal else 150)
    done: list[Trial] = []
    table = Table(*_COLUMNS)
    for trial in _all():
        done.append(trial)
        table.add_row(*_row(trial))
        console.print("." if trial.well else "F", end="")
    console.print()
    console.print(table)
    failed = [trial for trial in done if not trial.well]
    console.print(f"{len(done)} kinds of drift and places, {len(done) - len(failed)} well")
    if not os.environ.get(_URL):
        console.print(f"not done: the same to Elasticsearch, for {_URL} is not set")
    if wanted.json is not None:
        rows = [dataclasses.asdict(trial) for trial in done]
        wanted.json.write_text(json.dumps(rows, ensure_ascii=False, indent=2), encoding="utf-8")
    return 1 if failed or not done else 0


def _row(trial: Trial) -> Sequence[str]:
    found = trial.found or "nothing"
    return (
        trial.seed,
        trial.target.partition(":")[0],
        found if trial.as_expected else f"NOT BY ITS NAME: {found}",
        trial.repaired,
        "clean" if trial.clean else "NOT CLEAN",
        f"{trial.seconds:.1f}",
    )


def _all() -> Iterator[Trial]:
    """Those of the indexes in a folder, then those on a server."""
    with tempfile.TemporaryDirectory(prefix="threefold-drift-") as folder:
        # Under root the server's user has to pass through.
        Path(folder).chmod(0o711)
        yield from _in(Path(folder) / "embedded")
        if url := os.environ.get(_URL):
            with _indices(url) as settings:
                yield from _in(Path(folder) / "server", **settings)


def _in(folder: Path, **settings: Any) -> Iterator[Trial]:  # noqa: ANN401 - settings of every type
    with scene_at(folder, **settings) as scene:
        before = check_in(scene).run(Level.ORPHANS)
        if not before.clean:
            message = f"it is not clean before anything was spoilt: {before}"
            raise RuntimeError(message)
        yield from trials(scene)


@contextmanager
def _indices(url: str) -> Iterator[dict[str, Any]]:
    """Settings for indices of a name of their own, which are gone at the end."""
    prefix = f"threefold-drift-{uuid.uuid4().hex[:8]}"
    yield {
        "elasticsearch_url": url,
        "elasticsearch_prefix": prefix,
        "elasticsearch_replicas": 0,
        "vector_backend": "elasticsearch",
        "arm_seconds": 10.0,
    }
    with Elasticsearch(url.split(",")) as client:
        names = list(client.indices.get(index=f"{prefix}*", expand_wildcards="all"))
        for name in names:
            client.indices.delete(index=name)
