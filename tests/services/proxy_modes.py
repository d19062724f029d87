"""What a proxy does to those who talk through it."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.services.elasticsearch_errors import error_body
from tests.services.http_messages import Message, answer
from tests.services.partial_bulk import NOTHING_SENT, index_in, items_of, merged, whole_answer

Forward: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Hands a request to the server and brings its answer."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Everything goes through. The other modes say where they differ.

    Attributes:
        only: The mode is for requests whose path contains this; others pass. Means nothing to
            modes of whole connections, nor to PostgreSQL.
    """

    only: str = field(default="", kw_only=True)

    async def hold(self) -> None:
        """Wait before something goes on."""

    async def answer(self, request: Message, forward: Forward) -> Message:
        """The answer to a request."""
        return await forward(request)

    def passed(self, sent: int) -> int | None:
        """How many bytes may follow ``sent`` ones before a reset; nothing means that none comes."""


@dataclass(frozen=True, slots=True)
class Delay(Pass):
    """Each request goes on ``seconds`` later, even if its sender has given up: it comes late.

    Without HTTP: whatever is sent, either way.
    """

    seconds: float

    async def hold(self) -> None:
        """Wait."""
        await asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class BlackHole(Pass):
    """Connections are accepted, nothing is ever answered. They break when the mode ends."""

    async def hold(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Cut(Pass):
    """Connections are accepted and closed at once; open ones are closed."""


@dataclass(frozen=True, slots=True)
class Refuse(Pass):
    """Nobody listens; open connections are closed."""


@dataclass(frozen=True, slots=True)
class Reset(Pass):
    """The server does what it is asked, but after so many bytes of its answer comes a reset.

    An answer that is shorter passes. Without HTTP: after so many bytes on each connection.
    """

    after: int

    def passed(self, sent: int) -> int | None:
        """The rest."""
        return max(0, self.after - sent)


@dataclass(frozen=True, slots=True)
class Answer(Pass):
    """Each request is answered with this status as Elasticsearch does, which never sees it."""

    status: int

    async def answer(self, request: Message, forward: Forward) -> Message:
        """The error."""
        content = json.dumps(error_body(self.status)).encode()
        return _said(
            request, content=b"" if request.method == "HEAD" else content, status=self.status
        )


@dataclass(frozen=True, slots=True)
class PartialBulk(Pass):
    """Each ``every``-th item of bulks is not handed on, and reported as failed with ``status``.

    Items are counted over all bulks since the mode was made, so what is tried again gets through,
    unless ``every`` is 1. Only those that hold a text are counted.
    """

    status: int
    every: int = field(kw_only=True)
    holding: str = field(default="", kw_only=True)
    _count: Iterator[int] = field(
        default_factory=lambda: itertools.count(1), init=False, repr=False, compare=False
    )

    async def answer(self, request: Message, forward: Forward) -> Message:
        """Of a bulk: what the server says to the rest, and the failures between."""
        if not request.target.partition("?")[0].endswith("/_bulk"):
            return await forward(request)
        items = items_of(request.content)
        failures = {
            place: item.failure(self.status, index=index_in(request.target))
            for place, item in enumerate(items)
            if self.holding.encode() in item.lines and next(self._count) % self.every == 0
        }
        rest = b"".join(item.lines for place, item in enumerate(items) if place not in failures)
        if not rest:
            said = merged(NOTHING_SENT, items=items, failures=failures)
            return _said(request, content=json.dumps(said).encode())
        start = f"{request.method} {whole_answer(request.target)} HTTP/1.1"
        # Uncompressed, since it is read here.
        without = frozenset({"accept-encoding"})
        answered = await forward(request.replaced(content=rest, start=start, without=without))
        if answered.status != 200:
            return answered
        said = merged(json.loads(answered.content), items=items, failures=failures)
        return answered.replaced(content=json.dumps(said).encode(), without=frozenset())


def _said(request: Message, *, content: bytes, status: int = 200) -> Message:
    """An answer as if it were Elasticsearch's, of the type that the client asked for."""
    kind = request.header("accept").partition(",")[0]
    if "json" not in kind:
        kind = "application/json"
    headers = (("x-elastic-product", "Elasticsearch"), ("content-type", kind))
    return answer(status, headers=headers, content=content)
