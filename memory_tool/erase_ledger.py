"""The erase ledger: what was erased for good, a line of JSON for each, outside the database.

A database that was restored lacks the erasures made since its backup; this file has them. A line is
``{"ns_id": 7, "memory_id": "…", "at": "…", "store": "…"}``, where a ``memory_id`` of null is the
whole namespace, and ``store`` whose numbers these are; without it they are of any store.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_tool.errors import Corrupt, Unavailable
from memory_tool.model import MemoryId


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """One line: a memory, or with ``None`` a whole namespace, and when it was erased.

    ``store`` is the identity of the store that numbered the namespace.
    """

    ns_id: int
    memory_id: MemoryId | None
    at: datetime
    store: str | None = None


def read_ledger(path: Path) -> tuple[Erasure, ...]:
    """What the file says; nothing where there is none yet.

    Raises:
        Corrupt: It can't be read or understood.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        message = f"the erase ledger {path} can't be read: {error.strerror}"
        raise Corrupt(message) from error
    return parse_ledger(content)


def parse_ledger(content: bytes) -> tuple[Erasure, ...]:
    """The lines of a ledger. A last one without its end was never acknowledged, and is left out.

    Raises:
        Corrupt: A line can't be understood.
    """
    return tuple(_lines(content))


def _lines(content: bytes) -> Iterator[Erasure]:
    *whole, _unfinished = content.split(b"\n")
    for number, line in enumerate(whole, start=1):
        try:
            said = json.loads(line)
            memory_id = said["memory_id"]
            yield Erasure(
                ns_id=int(said["ns_id"]),
                memory_id=None if memory_id is None else str(memory_id).replace("-", ""),
                at=datetime.fromisoformat(said["at"]).astimezone(UTC),
                store=said.get("store"),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"line {number} of the erase ledger can't be understood"
            raise Corrupt(message) from error


def ledger_line(erasure: Erasure) -> bytes:
    """An erasure as its line, with the end that says that it is whole."""
    said = {
        "ns_id": erasure.ns_id,
        "memory_id": erasure.memory_id,
        "at": erasure.at.isoformat(),
        **({} if erasure.store is None else {"store": erasure.store}),
    }
    return json.dumps(said).encode() + b"\n"


def append_ledger(path: Path, erasures: Iterable[Erasure]) -> None:
    """Add lines that are on the disk when this returns.

    Raises:
        Unavailable: The file can't be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_new = not path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write(b"".join(map(ledger_line, erasures)))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _force(path.parent)
    except OSError as error:
        message = f"the erase ledger {path} can't be written: {error.strerror}"
        raise Unavailable(message, store="erase ledger") from error


def _force(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
