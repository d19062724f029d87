"""AsyncMemoryManage: the same methods, awaited, with the same answers."""

import asyncio
import inspect

import pytest

from memory_manage.async_manager import AsyncMemoryManage
from memory_manage.manager import MemoryManage
from memory_tool.errors import InvalidText, NotFound
from tests.acceptance.asking import ids, statuses, texts
from tests.acceptance.opening import OwnStore


def methods(kind: type) -> set[str]:
    """The public methods of a class."""
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_every_method_can_be_awaited() -> None:
    """A method that only one of the two has would send people back to threads."""
    assert methods(MemoryManage) <= methods(AsyncMemoryManage)


def test_a_day_of_work_awaited(memory: MemoryManage, user: str) -> None:
    """Add, search, read, change, delete: the thin wrapper hands everything through."""

    async def work() -> None:
        mine = AsyncMemoryManage(memory).scoped(user_id=user)
        id_ = (await mine.add("the async otter", importance=4)).id
        assert statuses(await mine.add_many(["a second otter", ""])) == ["added", "failed"]
        assert ids(await mine.search("async otter", limit=1)) == [id_]
        changed = await mine.update(id_, metadata={"n": 1}, expected_version=1)
        assert (changed.version, (await mine.get(id_)).metadata) == (2, {"n": 1})
        assert len(await mine.history(id_)) == 2
        assert len((await mine.get_all(limit=1)).results) == 1
        assert statuses(await mine.add("a queued otter", mode="async")) == ["queued"]
        await mine.flush()
        assert (await mine.delete(id_)).status == "deleted"
        assert (await mine.delete_all()).deleted == 2
        assert (await mine.stats()).memories >= 0
        assert (await mine.health()).ok

    asyncio.run(work())
    assert texts(memory.get_all(user_id=user)) == []


def test_errors_are_raised_where_they_are_awaited(memory: MemoryManage, user: str) -> None:
    """The same types, at the call."""

    async def work() -> None:
        mine = AsyncMemoryManage(memory).scoped(user_id=user)
        with pytest.raises(InvalidText):
            await mine.add("")
        with pytest.raises(NotFound):
            await mine.get("0" * 32)

    asyncio.run(work())


def test_many_calls_run_side_by_side(memory: MemoryManage, user: str) -> None:
    """A hundred coroutines write and read through a handful of threads, and all are answered."""

    async def work() -> None:
        mine = AsyncMemoryManage(memory).scoped(user_id=user)
        written = await asyncio.gather(*(mine.add(f"coroutine {n}") for n in range(100)))
        found = await asyncio.gather(*(mine.get(each.id) for each in written))
        assert [item.memory for item in found] == [f"coroutine {n}" for n in range(100)]

    asyncio.run(work())


def test_a_cancelled_call_comes_to_a_clean_end(memory: MemoryManage, user: str) -> None:
    """Giving up waiting must not leave a connection with half an answer."""

    async def work() -> None:
        mine = AsyncMemoryManage(memory).scoped(user_id=user)
        adding = asyncio.create_task(mine.add_many([f"half a page {n}" for n in range(200)]))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert texts(await mine.get_all(filters={"type": "event"})) == []
        await mine.add("after the cancellation")
        assert texts(await mine.search("after the cancellation", limit=1)) == [
            "after the cancellation"
        ]

    asyncio.run(work())


def test_it_opens_and_closes_a_store_of_its_own(own_store: OwnStore) -> None:
    """``async with await AsyncMemoryManage.open(…)`` is all that a coroutine needs."""

    async def work() -> None:
        opened = await AsyncMemoryManage.open(
            data_dir=str(own_store.data_dir()),
            database_url=own_store.database_url,
            embedder="hashing",
            on_progress=lambda _line: None,
        )
        async with opened as memory:
            await memory.add("opened by a coroutine", user_id="u")
            assert texts(await memory.get_all(user_id="u")) == ["opened by a coroutine"]

    asyncio.run(work())
