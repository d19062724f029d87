"""Who calls and what he may do; and one line in the log for each request, without content."""

import ipaddress
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_manage.interfaces.http_errors import bug_answer, error_answer
from memory_manage.interfaces.http_keys import EVERYBODY, Key, KeyRing
from memory_manage.interfaces.http_scope import for_reading, for_writing
from memory_manage.manager import MemoryManage
from memory_tool.errors import Forbidden, NotAuthenticated
from memory_tool.log import logger

GUARDED: Final = ("/v1/", "/metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that may be carried out: on which memory, by whom."""

    memory: MemoryManage
    key: Key

    def reading(self, options: dict[str, Any]) -> dict[str, Any]:
        """See :func:`~memory_manage.interfaces.http_scope.for_reading`."""
        return for_reading(self.key, options)

    def writing(self, options: dict[str, Any]) -> dict[str, Any]:
        """See :func:`~memory_manage.interfaces.http_scope.for_writing`."""
        return for_writing(self.key, options)


def may(verb: str) -> Callable[[Request], Any]:
    """What an endpoint depends on whose callers need this verb."""

    async def checked(request: Request) -> Call:
        key: Key = request.state.key
        if verb not in key.verbs:
            message = f"the key {key.name} has no right to {verb}"
            raise Forbidden(message)
        return Call(memory=request.app.state.memory, key=key)

    return checked


class Gate:
    """Stands before the application: no body is read, and no endpoint reached, without a key."""

    def __init__(self, app: ASGIApp, *, ring: KeyRing | None) -> None:
        """Keep the keys; ``None`` lets everybody of this machine in."""
        self._app = app
        self._ring = ring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._guarded(scope, receive=receive, send=noted)
        except Exception as error:  # noqa: BLE001 - the framework would log it with what it quotes
            _log_bug(error)
            if not status:
                await bug_answer()(scope, receive, noted)
        if scope["path"].startswith(GUARDED):
            _log(scope, status=status, seconds=time.perf_counter() - started)

    async def _guarded(self, scope: Scope, *, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(GUARDED):
            try:
                key = _caller(Headers(scope=scope), self._ring)
            except (NotAuthenticated, Forbidden) as error:
                await error_answer(error)(scope, receive, send)
                return
            scope.setdefault("state", {})["key"] = key
        await self._app(scope, receive, send)


def _caller(headers: Headers, ring: KeyRing | None) -> Key:
    if ring is None:
        # A page in a browser can reach us by a name of its own that leads to this machine.
        if not is_loopback(_host_name(headers.get("host", ""))):
            message = "without API keys the server is called as localhost"
            raise Forbidden(message)
        return EVERYBODY
    scheme, _, presented = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not presented.strip():
        raise NotAuthenticated
    key = ring.find(presented.strip())
    if key is None:
        message = "there is no such API key"
        raise NotAuthenticated(message)
    return key


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _log(scope: Scope, *, status: int, seconds: float) -> None:
    key: Key | None = scope.get("state", {}).get("key")
    logger().info(
        "request",
        method=scope["method"],
        # The pattern: what stands in its place is the caller's.
        route=getattr(scope.get("route"), "path", "none"),
        status=status,
        seconds=round(seconds, 4),
        key=key.name if key else None,
    )


def _log_bug(error: Exception) -> None:
    """Where it happened. What it says may quote content."""
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    at = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    logger().error("bug", error=type(error).__name__, at=at)
