"""Ports that nobody listens on."""

import random
import socket
from typing import Final

TRANSPORT: Final = 100
"""How far above its HTTP port a node of Elasticsearch talks to its cluster."""

_FIRST, _LAST = 17_300, 29_000
"""Below the ports that systems lend to outgoing connections, which come and go."""


def unused_port() -> int:
    """A port for HTTP on this machine, whose transport port is free as well.

    Nothing keeps it free until it is used, so it is drawn by lot: two who ask at once don't meet.
    """
    while True:
        port = random.randrange(_FIRST, _LAST)
        if _is_free(port) and _is_free(port + TRANSPORT):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
