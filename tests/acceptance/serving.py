"""HTTP servers for the acceptance tests: in this process over an open memory, and as a command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from memory_manage.interfaces.http import application
from memory_manage.interfaces.http_keys import KeyRing, new_key, parse_keys
from memory_manage.interfaces.http_server import listening, server_of
from memory_manage.manager import MemoryManage

CHECKOUT: Final = Path(__file__).resolve().parents[2]
LOOPBACK: Final = "127.0.0.1"
BODY_BYTES: Final = 12_000_000
PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A caller with a key, or with none."""

    http: httpx.Client
    key: str = ""

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """Post a document."""
        return self.call("POST", path, json=body, headers=headers)

    def call(self, method: str, path: str, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - those of httpx
        """Any call."""
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        headers = {**key, **arguments.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server of this process."""

    http: httpx.Client
    keys: Mapping[str, str]

    def client(self, name: str = "") -> Client:
        """Whoever has the key of that name."""
        return Client(http=self.http, key=self.keys[name] if name else "")


def ring_of(**made: Mapping[str, Any]) -> tuple[KeyRing, dict[str, str]]:
    """Keys by name, with what they may do and where."""
    keys: dict[str, str] = {}
    text = ""
    for name, given in made.items():
        verbs = given["verbs"]
        scope = {word: value for word, value in given.items() if word != "verbs"}
        keys[name], lines = new_key(name, verbs=verbs, scope=scope)
        text += lines
    return parse_keys(text), keys


@contextlib.contextmanager
def served(memory: MemoryManage, **made: Mapping[str, Any]) -> Iterator[Served]:
    """A server over an open memory, with these keys or none."""
    ring, keys = ring_of(**made) if made else (None, {})
    server = server_of(application(memory, ring, body_bytes=BODY_BYTES))
    with listening(LOOPBACK, 0) as bound:
        thread = threading.Thread(target=lambda: server.run(sockets=[bound]))
        thread.start()
        try:
            address = f"http://{LOOPBACK}:{bound.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as http:
                yield Served(http=http, keys=keys)
        finally:
            server.should_exit = True
            thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeCommand:
    """`threefold serve` in a process of its own."""

    child: subprocess.Popen[str]
    http: httpx.Client
    log: list[str]

    @property
    def client(self) -> Client:
        """A caller without a key."""
        return Client(http=self.http)

    def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(PATIENCE)


def run_threefold(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    command = [sys.executable, "-m", "memory_manage.interfaces.cli", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@contextlib.contextmanager
def serve_command(**settings: str) -> Iterator[ServeCommand]:
    """The command with these settings, once it listens."""
    variables = {f"THREEFOLD_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "memory_manage.interfaces.cli", "serve", "--port", "0"]
    environment = {**os.environ, "THREEFOLD_EMBEDDER": "hashing", **variables}
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True
    ) as child:
        log: list[str] = []
        reader = threading.Thread(target=lambda: log.extend(child.stderr or ()))
        try:
            address = _address(child, log)
            reader.start()
            with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as http:
                yield ServeCommand(child=child, http=http, log=log)
        finally:
            child.kill()
            child.wait()
            if reader.is_alive():
                reader.join()


def _address(child: subprocess.Popen[str], log: list[str]) -> str:
    for line in child.stderr or ():
        log.append(line)
        if '"listening"' in line:
            return str(json.loads(line)["url"])
    message = "".join(["the server didn't start: ", *log])
    raise RuntimeError(message)


def status_within(client: Client, path: str, *, wanted: int) -> int:
    """The status of a path, once it is the one wanted or patience ends."""
    deadline = time.monotonic() + PATIENCE
    while (status := client.call("GET", path).status_code) != wanted:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return status
