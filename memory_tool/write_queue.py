"""Asynchronous adds: collected for each namespace and stored in grouped commits."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from memory_tool.errors import InputError
from memory_tool.model import NewMemory, WriteResult
from memory_tool.scope import Namespace

Store: TypeAlias = Callable[[Namespace, Sequence[NewMemory]], tuple[WriteResult, ...]]


@dataclass(slots=True)
class _Group:
    since: float
    news: list[NewMemory] = field(default_factory=list)
    futures: list["Future[WriteResult]"] = field(default_factory=list)


class WriteQueue:
    """Holds asynchronous adds for at most ``seconds`` or ``items``, whichever comes first.

    A queued memory is not acknowledged: it is durable once its future has a result.
    """

    def __init__(self, store: Store, *, items: int = 50, seconds: float = 0.2) -> None:
        """Start no thread yet: the first add does."""
        self._store = store
        self._items = items
        self._seconds = seconds
        self._groups: dict[Namespace, _Group] = {}
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = 0
        self._closing = False
        self._hurry = False

    def put(self, namespace: Namespace, new: NewMemory) -> "Future[WriteResult]":
        """Queue one memory; the future holds its result or the error of its commit."""
        future: Future[WriteResult] = Future()
        with self._condition:
            if self._closing:
                message = "the memory is closed"
                raise InputError(message)
            group = self._groups.setdefault(namespace, _Group(since=time.monotonic()))
            group.news.append(new)
            group.futures.append(future)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="threefold-writes", daemon=True
                )
                self._thread.start()
            self._condition.notify_all()
        return future

    def flush(self) -> None:
        """Wait until everything queued before this call is stored or has failed."""
        with self._condition:
            self._hurry = True
            self._condition.notify_all()
            self._condition.wait_for(lambda: not self._groups and not self._busy)
            self._hurry = False

    def close(self) -> None:
        """Store what is queued, then end the thread. May be called twice."""
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                due = self._wait_for_due()
                if due is None:
                    return
                namespace, group = due
                self._busy += 1
            self._store_group(namespace, group)
            with self._condition:
                self._busy -= 1
                self._condition.notify_all()

    def _wait_for_due(self) -> tuple[Namespace, _Group] | None:
        while True:
            now = time.monotonic()
            for namespace, group in self._groups.items():
                full = len(group.news) >= self._items
                old = now - group.since >= self._seconds
                if full or old or self._closing or self._hurry:
                    del self._groups[namespace]
                    return namespace, group
            if self._closing:
                return None
            oldest = min((group.since for group in self._groups.values()), default=None)
            self._condition.wait(None if oldest is None else oldest + self._seconds - now)

    def _store_group(self, namespace: Namespace, group: _Group) -> None:
        try:
            results = self._store(namespace, group.news)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait
            for future in group.futures:
                future.set_exception(error)
            return
        for future, result in zip(group.futures, results, strict=True):
            future.set_result(result)
