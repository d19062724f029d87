"""Proxies in front of real servers, which misbehave as a test tells them to.

with ElasticsearchProxy(server) as proxy, proxy.server.client() as client:
    with proxy.doing(Answer(429, only="_bulk")):
        …
"""

import asyncio
import contextlib
import dataclasses
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.services.elasticsearch import ElasticsearchServer
from tests.services.http_messages import Message, read_answer, read_request
from tests.services.proxy_modes import BlackHole, Cut, Pass, Refuse

_T = TypeVar("_T")

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 65_536


@dataclass(frozen=True, slots=True)
class _End:
    """One end of the line: a client or a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, content: bytes) -> None:
        """Return when the system has taken all of it."""
        self.writer.transport.set_write_buffer_limits(high=0)
        self.writer.write(content)
        await self.writer.drain()

    def reset(self) -> None:
        """End the connection by RST instead of FIN."""
        line: socket.socket = self.writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Proxy(ABC):
    """Listens on a port of its own and does as its mode says. Use it as a context manager.

    Attributes:
        port: Where it listens, or did before `Refuse`.
        mode: What it does at present.
    """

    def __init__(self) -> None:
        self.port = 0
        self.mode: Pass = Pass()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._listening: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection to the server."""

    @abstractmethod
    async def _talk(self, client: _End) -> None:
        """Stand between a client and the server until one of them has enough."""

    def __enter__(self) -> Self:
        """Start listening."""
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close everything."""
        self.behave(Refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def behave(self, mode: Pass) -> None:
        """From now on do this, on open connections too, at their next request."""
        self._run(self._switch(mode))

    @contextmanager
    def doing(self, mode: Pass) -> Iterator[None]:
        """Do this for a while, then let everything pass."""
        self.behave(mode)
        try:
            yield
        finally:
            self.behave(Pass())

    def _run(self, work: Coroutine[None, None, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _switch(self, mode: Pass) -> None:
        ended, self.mode = self.mode, mode
        if isinstance(mode, Refuse):
            await self._deafen()
        elif self._listening is None:
            await self._listen()
        if isinstance(mode, Cut | Refuse) or isinstance(ended, BlackHole):
            await self._hang_up()

    async def _listen(self) -> None:
        self._listening = await asyncio.start_server(self._accept, _HOST, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _deafen(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    async def _hang_up(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(_End(reader, writer)))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, client: _End) -> None:
        # Whichever side breaks the line, the other one is let go as well.
        broken = (OSError, asyncio.IncompleteReadError)
        with contextlib.closing(client.writer), contextlib.suppress(*broken):
            if isinstance(self.mode, Cut):
                return
            await self._talk(client)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[_End]:
        server = _End(*await self._connect())
        with contextlib.closing(server.writer):
            yield server

    async def _deliver(self, client: _End, content: bytes, *, mode: Pass, sent: int = 0) -> None:
        """Hand the client what the mode lets through."""
        rest = mode.passed(sent)
        if rest is None or rest >= len(content):
            await client.send(content)
            return
        await client.send(content[:rest])
        client.reset()
        raise ConnectionResetError


class ElasticsearchProxy(Proxy):
    """Before one node of an Elasticsearch.

    Attributes:
        requests: First lines of the requests that came, such as ``POST /_bulk HTTP/1.1``.
    """

    def __init__(self, behind: ElasticsearchServer) -> None:
        super().__init__()
        self.requests: list[str] = []
        self._behind = behind

    @property
    def server(self) -> ElasticsearchServer:
        """The same server, as it is reached through here."""
        return dataclasses.replace(self._behind, url=f"http://{_HOST}:{self.port}")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self._behind.url)
        return await asyncio.open_connection(address.hostname, address.port)

    async def _talk(self, client: _End) -> None:
        while (request := await read_request(client.reader)) is not None:
            self.requests.append(request.start)
            mode = self.mode if self.mode.only in request.target else Pass()
            await mode.hold()
            answer = await mode.answer(request, self._forward)
            await self._deliver(client, answer.raw, mode=mode)

    async def _forward(self, request: Message) -> Message:
        # A line of its own for each: one kept from before a restart of the server would be dead.
        async with self._server() as server:
            await server.send(request.raw)
            return await read_answer(server.reader, method=request.method)


class PostgresProxy(Proxy):
    """Before a PostgreSQL, of whose protocol it knows nothing."""

    def __init__(self, behind: str) -> None:
        super().__init__()
        self._behind = behind

    @property
    def conninfo(self) -> str:
        """The same connection parameters, as they lead through here."""
        return make_conninfo(self._behind, host=_HOST, port=self.port)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = conninfo_to_dict(self._behind)
        host, port = str(address["host"]), address.get("port") or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _talk(self, client: _End) -> None:
        async with self._server() as server:
            ways = [
                asyncio.create_task(self._ask(client, server)),
                asyncio.create_task(self._answer(client, server)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _ask(self, client: _End, server: _End) -> None:
        while content := await client.reader.read(_CHUNK):
            await self.mode.hold()
            await server.send(content)

    async def _answer(self, client: _End, server: _End) -> None:
        mode, sent = self.mode, 0
        while content := await server.reader.read(_CHUNK):
            if mode is not self.mode:
                mode, sent = self.mode, 0
            await mode.hold()
            await self._deliver(client, content, mode=mode, sent=sent)
            sent += len(content)
