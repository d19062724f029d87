"""A command's time with a store: open it, say what takes long, answer in the form asked for."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memory_manage.interfaces.cli_options import StoreOptions

if TYPE_CHECKING:
    from memory_manage.manager import MemoryManage


@contextmanager
def opened(
    store: StoreOptions,
    *,
    on_progress: Callable[[str], None] | None = None,
    migrate: bool | None = None,
) -> "Iterator[MemoryManage]":
    """The memory of the store that the options name, closed afterwards.

    Args:
        store: The options.
        on_progress: Hears of slow steps; by default a person at a terminal does.
        migrate: Whether to bring the schema up to date, whatever the settings say.
    """
    # Here, not above: NumPy, FAISS and psycopg take a second that --help does not have.
    from memory_manage.manager import MemoryManage  # noqa: PLC0415

    quiet = store.as_json or not sys.stderr.isatty()
    with MemoryManage.open(
        data_dir=store.data_dir,
        database_url=store.database_url,
        migrate=migrate,
        on_progress=on_progress or (_ignore if quiet else note),
    ) as memory:
        yield memory


def note(line: str) -> None:
    """A line for people, on standard error: the answer alone is on standard output."""
    sys.stderr.write(f"threefold: {line}\n")
    sys.stderr.flush()


def _ignore(_line: str) -> None:
    pass


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output, Chinese readable."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def print_lines(*lines: str) -> None:
    """Lines on standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
