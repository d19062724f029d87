"""Asynchronous adds are grouped, acknowledged late, and never lost at close."""

import threading
from collections.abc import Sequence

import pytest

from memory_tool.errors import InputError, Unavailable
from memory_tool.model import NewMemory, Status, WriteResult
from memory_tool.scope import Namespace
from memory_tool.write_queue import WriteQueue

HERE, THERE = Namespace(user="here"), Namespace(user="there")


class Recorder:
    """A store that remembers its groups."""

    def __init__(self) -> None:
        self.groups: list[tuple[Namespace, tuple[str, ...]]] = []

    def store(self, namespace: Namespace, news: Sequence[NewMemory]) -> tuple[WriteResult, ...]:
        """Keep the group."""
        self.groups.append((namespace, tuple(new.content for new in news)))
        return tuple(WriteResult(status=Status.ADDED, id=new.content) for new in news)


def test_a_full_group_is_stored_at_once() -> None:
    """Fifty items don't wait for the clock."""
    recorder = Recorder()
    queue = WriteQueue(recorder.store, items=3, seconds=60)

    futures = [queue.put(HERE, NewMemory(content=str(number))) for number in range(3)]

    assert [future.result(10).id for future in futures] == ["0", "1", "2"]
    assert recorder.groups == [(HERE, ("0", "1", "2"))]
    queue.close()


def test_a_small_group_is_stored_when_its_time_has_come() -> None:
    """Two hundred milliseconds are the longest wait."""
    recorder = Recorder()
    queue = WriteQueue(recorder.store, items=50, seconds=0.01)

    assert queue.put(HERE, NewMemory(content="alone")).result(10).status is Status.ADDED
    queue.close()


def test_groups_hold_one_namespace_each() -> None:
    """One commit locks one namespace."""
    recorder = Recorder()
    queue = WriteQueue(recorder.store, items=50, seconds=60)
    queue.put(HERE, NewMemory(content="a"))
    queue.put(THERE, NewMemory(content="b"))
    queue.put(HERE, NewMemory(content="c"))

    queue.flush()

    assert sorted(recorder.groups, key=str) == [(HERE, ("a", "c")), (THERE, ("b",))]
    queue.close()


def test_close_stores_what_is_queued() -> None:
    """Closing is no way to lose a memory."""
    recorder = Recorder()
    queue = WriteQueue(recorder.store, items=50, seconds=60)
    future = queue.put(HERE, NewMemory(content="last"))

    queue.close()

    assert future.result(0).id == "last"
    with pytest.raises(InputError):
        queue.put(HERE, NewMemory(content="too late"))


def test_an_error_reaches_everyone_in_the_group() -> None:
    """A failed commit must not look like a success, nor end the thread."""
    broken = threading.Event()
    broken.set()
    recorder = Recorder()

    def store(namespace: Namespace, news: Sequence[NewMemory]) -> tuple[WriteResult, ...]:
        if broken.is_set():
            raise Unavailable
        return recorder.store(namespace, news)

    queue = WriteQueue(store, items=2, seconds=60)
    futures = [queue.put(HERE, NewMemory(content=str(number))) for number in range(2)]
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(10)

    broken.clear()
    again = queue.put(HERE, NewMemory(content="again"))
    queue.flush()

    assert again.result(0).status is Status.ADDED
    queue.close()
