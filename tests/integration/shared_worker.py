"""A worker process with a target that all hosts share: a file, told apart by who wrote what when.

Run as a module with its orders as JSON; `test_workers` starts, stops and kills it.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from memory_manage.interfaces.cli_worker import serve, stopping
from memory_tool.bootstrap import Given, open_tool
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.port_values import ChangeBatch, ForeignHistory, Patience, TargetBase
from memory_tool.settings import load_settings

TARGET: Final = "shared:file"
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a worker noted: ``begin``, ``end`` or ``refused`` of a batch, or ``reset``."""

    who: str
    what: str


class FileTarget(IndexTarget):
    """Rows in one JSON file, replaced as a whole if it still is what the batch builds upon."""

    def __init__(self, folder: Path, who: str, *, batch_seconds: float) -> None:
        self._folder = folder
        self._batch_seconds = batch_seconds
        self._who = who

    @property
    def name(self) -> str:
        """As its port."""
        return TARGET

    @property
    def kind(self) -> Literal["keyword"]:
        """As its port."""
        return "keyword"

    @property
    def patience(self) -> Patience:
        """None: each write is a batch."""
        return Patience(rows=1, seconds=0.0)

    def base(self) -> TargetBase:
        """As its port."""
        return _base_of(read_state(self._folder))

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """As its port, but it takes its time, and waits while there is a gate for it."""
        rows = {row.memory_id: row.live for row in batch.rows}
        self._note("begin")
        time.sleep(self._batch_seconds)
        while gate_of(self._folder, self._who).exists():
            time.sleep(_LOOK_SECONDS)
        try:
            self._replace(batch, rows)
        except ForeignHistory:
            self._note("refused")
            raise
        self._note("end")
        log.note_progress(TARGET, batch.clocks)

    def reset(self) -> None:
        """As its port."""
        self._note("reset")
        with self._locked():
            _write(self._folder, {"mark": None, "clocks": {}, "rows": {}})

    def close(self) -> None:
        """Nothing is held between two batches."""

    def _replace(self, batch: ChangeBatch, rows: dict[str, bool]) -> None:
        with self._locked():
            state = read_state(self._folder)
            if state["mark"] != batch.base_mark:
                message = "somebody else was here"
                raise ForeignHistory(message)
            state["rows"].update(rows)
            state["clocks"].update({str(ns_id): nseq for ns_id, nseq in batch.clocks.items()})
            _write(self._folder, {**state, "mark": batch.mark})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _note(self, what: str) -> None:
        line = json.dumps({"who": self._who, "what": what}) + "\n"
        descriptor = os.open(self._folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line.encode())
        os.close(descriptor)


def gate_of(folder: Path, who: str) -> Path:
    """While this file is there, the batches of this worker don't end."""
    return folder / f"gate-{who}"


def notes(folder: Path) -> list[Note]:
    """What all workers noted, in order."""
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    return [Note(**json.loads(line)) for line in lines]


def read_state(folder: Path) -> dict[str, Any]:
    """What the target holds: mark, clocks, and whether each row is live."""
    path = folder / "state"
    if not path.exists():
        return {"mark": None, "clocks": {}, "rows": {}}
    state: dict[str, Any] = json.loads(path.read_text())
    return state


def _base_of(state: dict[str, Any]) -> TargetBase:
    clocks = {int(ns_id): nseq for ns_id, nseq in state["clocks"].items()}
    return TargetBase(mark=state["mark"], clocks=clocks)


def _write(folder: Path, state: dict[str, Any]) -> None:
    new = folder / "state.new"
    new.write_text(json.dumps(state))
    new.rename(folder / "state")


def main() -> None:
    """Work until a signal says to stop."""
    orders = json.loads(sys.argv[1])
    shared, who = Path(orders.pop("shared")), orders.pop("who")
    target = FileTarget(shared, who, batch_seconds=orders.pop("batch_seconds"))
    given = Given(shared_targets=(target,))
    with stopping() as stopped, open_tool(load_settings(orders), given) as tool:
        sys.stdout.write("open\n")
        sys.stdout.flush()
        serve(tool, stopped)


if __name__ == "__main__":
    main()
