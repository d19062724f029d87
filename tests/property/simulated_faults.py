"""Faults of the simulated world: stores and logs that fail, or take their process with them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Literal

from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.errors import Unavailable
from memory_tool.log_ports import ChangeLog
from memory_tool.model import WriteResult
from memory_tool.port_values import (
    ChangeBatch,
    ChangeRow,
    Commit,
    DeadLetter,
    Opening,
    Pointer,
    ReadView,
    TargetBase,
)
from memory_tool.ports import RecordStore, Snapshot
from memory_tool.retry import RetryPolicy
from memory_tool.scope import Scope

NO_WAIT: Final = RetryPolicy(attempts=3, seconds=60.0, first_wait=0.0)


class Crash(BaseException):
    """The process is gone; nothing catches this but the world."""


class FaultyStore(RecordStore):
    """A store whose commits fail before, fail after, or take their process with them."""

    def __init__(self, store: InMemoryRecordStore, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self._in_a_row = 0

    def commit(self, commit: Commit) -> tuple[WriteResult, ...]:
        """Commit, unless a fault comes first; the answer may be lost."""
        fault = self._rng.choices(("none", "refused", "lost", "crash"), (85, 5, 7, 3))[0]
        if fault in ("refused", "lost") and self._in_a_row == NO_WAIT.attempts - 1:
            fault = "none"
        self._in_a_row = self._in_a_row + 1 if fault in ("refused", "lost") else 0
        if fault == "refused":
            raise Unavailable
        results = self._store.commit(commit)
        if fault == "crash":
            raise Crash
        if fault == "lost":
            raise Unavailable(outcome="unknown", key=commit.idempotency_key)
        return results

    def view(self, scope: Scope, targets: Sequence[str]) -> ReadView:
        """As the store."""
        return self._store.view(scope, targets)

    def snapshot(self, opening: Opening) -> AbstractContextManager[Snapshot]:
        """As the store."""
        return self._store.snapshot(opening)

    def close(self) -> None:
        """Nothing to close."""


class FaultyLog(ChangeLog):
    """A log whose reader may die at every step."""

    def __init__(self, log: InMemoryChangeLog, rng: random.Random) -> None:
        self._log = log
        self._rng = rng

    def _may_die(self) -> None:
        if self._rng.random() < 0.06:  # one step in seventeen
            raise Crash

    def pending(self, clocks: Mapping[int, int]) -> int:
        """As the log."""
        return self._log.pending(clocks)

    def knows(self, target: str, mark: str) -> bool:
        """As the log."""
        return self._log.knows(target, mark)

    @contextmanager
    def changes(
        self, target: str, kind: Literal["vector", "keyword"], *, base: TargetBase, limit: int
    ) -> Iterator[ChangeBatch]:
        """A batch, maybe of few rows, whose rows may end in a crash."""
        few = self._rng.choice((limit, 3))
        with self._log.changes(target, kind, base=base, limit=few) as batch:
            yield ChangeBatch(
                rows=self._rows(batch.rows),
                clocks=batch.clocks,
                mark=batch.mark,
                base_mark=batch.base_mark,
                space=batch.space,
                store=batch.store,
            )
            self._may_die()

    def _rows(self, rows: Iterator[ChangeRow]) -> Iterator[ChangeRow]:
        for row in rows:
            self._may_die()
            yield row

    def pointer(self, target: str) -> Pointer | None:
        """As the log."""
        return self._log.pointer(target)

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """Publish, dying before or after it now and then."""
        self._may_die()
        done = self._log.publish(pointer, base_mark=base_mark)
        self._may_die()
        return done

    def note_progress(self, target: str, clocks: Mapping[int, int]) -> None:
        """Note, dying before it now and then."""
        self._may_die()
        self._log.note_progress(target, clocks)

    def bury(
        self,
        target: str,
        kind: Literal["vector", "keyword"],
        *,
        letters: Sequence[DeadLetter],
        delivered: Mapping[int, tuple[int, int]],
    ) -> None:
        """See :meth:`memory_tool.log_ports.ChangeLog.bury`."""
        self._log.bury(target, kind, letters=letters, delivered=delivered)
