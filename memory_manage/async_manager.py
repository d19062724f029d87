"""AsyncMemoryManage: the same methods, awaited. A thin wrapper, not a second implementation."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, Unpack

from memory_manage.manager import MemoryManage
from memory_manage.options import ReadScopeOptions
from memory_tool.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
THREADS: Final = 8


def _awaited(
    method: Callable[Concatenate[MemoryManage, P], R],
) -> Callable[Concatenate["AsyncMemoryManage", P], Coroutine[Any, Any, R]]:
    """The method of :class:`MemoryManage`, run in a thread of the memory's own."""

    async def call(self: "AsyncMemoryManage", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(lambda: method(self.memory, *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class AsyncMemoryManage:
    """:class:`~memory_manage.manager.MemoryManage` for coroutines.

    A cancelled call goes on in its thread to a clean end, so that no connection is left with half
    an answer; its result is thrown away.
    """

    def __init__(self, memory: MemoryManage, executor: Executor | None = None) -> None:
        """Wrap a memory; use :meth:`open`."""
        self.memory = memory
        self._closed = False
        self._executor = executor or ThreadPoolExecutor(
            THREADS, thread_name_prefix="threefold-async"
        )

    @classmethod
    async def open(cls, **arguments: Any) -> Self:  # noqa: ANN401 - those of MemoryManage.open
        """See :meth:`memory_manage.manager.MemoryManage.open`."""
        return cls(await asyncio.to_thread(lambda: MemoryManage.open(**arguments)))

    def scoped(self, **words: Unpack[ReadScopeOptions]) -> Self:
        """The same memory with a scope bound."""
        return type(self)(self.memory.scoped(**words), self._executor)

    async def run(self, call: Callable[[], R]) -> R:
        """Run a blocking call in a thread of the memory's own."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
        except RuntimeError as error:
            if not self._closed:
                raise
            message = "the memory is closed: open it again"
            raise InputError(message) from error

    add = _awaited(MemoryManage.add)
    add_many = _awaited(MemoryManage.add_many)
    search = _awaited(MemoryManage.search)
    get = _awaited(MemoryManage.get)
    get_all = _awaited(MemoryManage.get_all)
    update = _awaited(MemoryManage.update)
    delete = _awaited(MemoryManage.delete)
    delete_all = _awaited(MemoryManage.delete_all)
    history = _awaited(MemoryManage.history)
    flush = _awaited(MemoryManage.flush)
    apply_now = _awaited(MemoryManage.apply_now)
    stats = _awaited(MemoryManage.stats)
    health = _awaited(MemoryManage.health)

    async def close(self) -> None:
        """Close the memory and the threads. May be called twice."""
        if self._closed:
            return
        self._closed = True
        await self.run(self.memory.close)
        self._executor.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        """The memory itself, closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
