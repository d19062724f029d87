"""What the child processes of ``test_tantivy_folder`` do with a folder.

read <folder>     for each line of input, print what a new view sees
write <folder>    apply one row for each line of input, then print the new mark
hang <folder>     start to apply two rows and stop between them
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.port_values import ChangeRow
from tests.contract.keyword_rows import NotedProgress, apply, batch, chunk, find, gone, row

TARGET = "folder-1"
TOKENISER = 1


def say(line: str) -> None:
    """Answer the parent process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read(folder: Path) -> None:
    """Print mark, clock and hits, as one JSON line for each line of input."""
    index = TantivyKeywordIndex(folder, target=TARGET, tokeniser=TOKENISER)
    for _ in sys.stdin:
        view = index.view()
        say(json.dumps([view.mark, view.clock(1), find(view, "tea")]))


def write(folder: Path) -> None:
    """Apply the row whose number stands in a line of input."""
    target = TantivyTarget(folder, name=TARGET, tokeniser=TOKENISER)
    for line in sys.stdin:
        apply(target, row(int(line), chunk("tea")), clock=int(line))
        say(str(target.base().mark))


def hang(folder: Path) -> None:
    """Delete row 1 and add row 8, but never come to the end of the batch."""
    target = TantivyTarget(folder, name=TARGET, tokeniser=TOKENISER)

    def endless() -> Iterator[ChangeRow]:
        yield gone(1, version=9)
        yield row(8, chunk("tea"))
        say("between")
        sys.stdin.read()

    base_mark = target.base().mark
    target.apply(batch(endless(), {1: 9}, mark="never", base_mark=base_mark), NotedProgress())


if __name__ == "__main__":
    {"read": read, "write": write, "hang": hang}[sys.argv[1]](Path(sys.argv[2]))
