"""The server process: a socket, uvicorn on it, and an end that is no failure."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from fastapi import FastAPI

from memory_manage.interfaces.http_access import is_loopback
from memory_manage.interfaces.http_keys import KeyRing
from memory_tool.errors import SettingsError
from memory_tool.log import logger

GRACE_SECONDS: Final = 20
"""Time of running requests after SIGTERM: less than the 30 s that Kubernetes gives."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def check_exposure(host: str, ring: KeyRing | None) -> None:
    """Refuse to let a network in without keys.

    Raises:
        SettingsError: There are no keys and the address is not of this machine alone.
    """
    if ring is None and not is_loopback(host):
        message = (
            f"http_host {host} can be reached from other machines, and there are no API keys:"
            " make one with `threefold serve --new-key NAME …` and name its file in http_keys, or"
            " listen at 127.0.0.1"
        )
        raise SettingsError(message)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at the address, closed at the end.

    Raises:
        SettingsError: It can't be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol: asyncio sets TCP_NODELAY on no other socket, and a client's delayed
        # acknowledgement would add 40 ms to every answer.
        bound = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise _unheard(host, port, error=error) from error
    with bound:
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen()
        except (OSError, OverflowError) as error:
            raise _unheard(host, port, error=error) from error
        yield bound


def _unheard(host: str, port: int, *, error: Exception) -> SettingsError:
    return SettingsError(f"can't listen at http_host {host}, http_port {port}: {error}")


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the block as they would end a program, but through every ``finally``.

    Without a handler the first process of a container would not even notice them.
    """

    def stop(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server that says nothing by itself and believes no header about who calls."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


def run(app: FastAPI, bound: socket.socket) -> None:
    """Serve until a signal comes, and finish what is running."""
    host, port = bound.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    logger().info("listening", url=f"http://{shown}:{port}")
    # uvicorn takes the signals over, and raises them again when all is done: for `stop`.
    server_of(app).run(sockets=[bound])
