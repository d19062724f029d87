"""``scripts/bench --compression``: measures, prints, writes."""

import json
import tempfile
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from scripts.benchmark.codes import CodesRow, compare, missed_by
from scripts.benchmark.codes_report import plot, table_of


def run_compression(arguments: Namespace, console: Console, *, real: Path | None) -> int:
    """The exit status: 1 where ``--assert`` was asked for and a promise doesn't hold."""
    with tempfile.TemporaryDirectory(prefix="threefold-bench-") as folder:
        rows: list[CodesRow] = []
        for part in compare(arguments.size, Path(folder), real=real, say=console.print):
            console.print(table_of(part))
            rows += part
    console.print("* what the setting vector_index = compressed takes for these vectors")
    if arguments.json:
        content = [asdict(row) for row in rows]
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
    if arguments.plot:
        plot(rows, arguments.plot)
    misses = missed_by(rows)
    for line in misses:
        console.print(f"missed: {line}")
    return 1 if misses and arguments.strict else 0
