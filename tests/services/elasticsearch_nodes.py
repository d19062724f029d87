"""Nodes of Elasticsearch that a test owns, to stop, kill and suspend, alone or in a cluster."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.services.elasticsearch import ElasticsearchServer
from tests.services.ports import TRANSPORT, unused_port

HEAP: Final = os.environ.get("THREEFOLD_TEST_ELASTICSEARCH_HEAP", "512m")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchInstallation:
    """A starter of servers, and the folder where it unpacks them and keeps what they write.

    Attributes:
        starter: The script ``es.py``.
        folder: Exists; the server's own user may pass through it.
    """

    starter: Path
    folder: Path

    def run(self, *arguments: str) -> str:
        """What the starter prints; what it complains of is in the error."""
        done = subprocess.run(
            [sys.executable, str(self.starter), *arguments],
            env={**os.environ, "ES_TEST_DIR": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            message = f"es.py {' '.join(arguments)}: {done.stderr}"
            raise RuntimeError(message)
        return done.stdout.strip()

    @contextmanager
    def node(self, *, password: str = "") -> Iterator["ElasticsearchNode"]:
        """One running node, gone at the end. With a password its user is ``elastic``."""
        node = ElasticsearchNode(installation=self, port=unused_port(), password=password)
        with node.lifetime():
            yield node

    @contextmanager
    def cluster(self, *, size: int = 3) -> Iterator["ElasticsearchCluster"]:
        """So many running nodes that know each other, gone at the end."""
        ports: list[int] = []
        while len(ports) < size:
            port = unused_port()
            if all(abs(port - other) not in {0, TRANSPORT} for other in ports):
                ports.append(port)
        peers = tuple(port + TRANSPORT for port in ports)
        cluster = ElasticsearchCluster(
            nodes=tuple(
                ElasticsearchNode(installation=self, port=port, name=f"n{place}", peers=peers)
                for place, port in enumerate(ports, start=1)
            )
        )
        with ExitStack() as stack:
            for node in cluster.nodes:
                stack.callback(node.wipe)
            cluster.start()
            yield cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchNode:
    """A node of Elasticsearch, running or not. Its data outlives everything but ``wipe``.

    Attributes:
        installation: Who starts it.
        port: Of HTTP.
        name: The node's; ``n1`` elects the first master of a cluster.
        peers: Transport ports of all nodes of its cluster, its own included; none means alone.
        password: Of the user ``elastic``; empty means that nobody is asked.
    """

    installation: ElasticsearchInstallation
    port: int
    name: str = "n1"
    peers: tuple[int, ...] = ()
    password: str = ""

    @property
    def server(self) -> ElasticsearchServer:
        """How clients reach this node."""
        user = "elastic" if self.password else ""
        url = f"http://127.0.0.1:{self.port}"
        return ElasticsearchServer(url=url, user=user, password=self.password)

    @contextmanager
    def lifetime(self) -> Iterator[None]:
        """It runs at the beginning and is gone at the end."""
        try:
            self.start()
            yield
        finally:
            self.wipe()

    def start(self) -> None:
        """Start it with the data it had; return when it answers, in about 10 s.

        A node that runs goes on running, a suspended one is resumed.
        """
        self.resume()
        options = ["--port", str(self.port), "--name", self.name, "--heap", HEAP]
        if self.peers:
            options += ["--join", ",".join(map(str, self.peers))]
        if self.password:
            options += ["--password", self.password]
        self.installation.run("start", *options)

    def stop(self) -> None:
        """Let it finish and wait until it has ended."""
        self._stop()

    def kill(self) -> None:
        """End it as a crash would."""
        self._stop("--kill")

    def wipe(self) -> None:
        """End it and remove its data."""
        self._stop("--kill", "--wipe")

    def suspend(self) -> None:
        """Let it hang: it accepts connections, as the kernel does that, and never answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after ``suspend``."""
        self._signal(signal.SIGCONT)

    def _stop(self, *options: str) -> None:
        self.installation.run("stop", "--port", str(self.port), *options)

    def _signal(self, number: signal.Signals) -> None:
        process = self.installation.run("pid", "--port", str(self.port))
        if process:
            # It may be ending just now.
            with suppress(ProcessLookupError):
                os.kill(int(process), number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticsearchCluster:
    """Nodes that know each other. The first one is the first master."""

    nodes: tuple[ElasticsearchNode, ...]

    @property
    def server(self) -> ElasticsearchServer:
        """All nodes, as one server with several addresses."""
        return ElasticsearchServer(url=",".join(node.server.url for node in self.nodes))

    def start(self) -> None:
        """Start every node that doesn't run; return when all have met."""
        # The first one unpacks the server for the others.
        self.nodes[0].start()
        with ThreadPoolExecutor() as threads:
            for future in [threads.submit(node.start) for node in self.nodes[1:]]:
                future.result()
        with self.nodes[0].server.client(seconds=120) as client:
            client.cluster.health(
                wait_for_nodes=str(len(self.nodes)),
                wait_for_no_initializing_shards=True,
                timeout="100s",
            )

    def kill_node(self, place: int) -> ElasticsearchNode:
        """Crash the node at this place, counted from 0; `start` brings it back."""
        node = self.nodes[place]
        node.kill()
        return node
