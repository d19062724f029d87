"""A server on this machine that speaks the embeddings protocol, well or badly."""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TypeAlias

from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.model import Vector
from tests.contract.local_server import LocalServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked for."""

    path: str
    authorization: str | None
    model: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server sends back."""

    status: int
    body: str


Behaviour: TypeAlias = Callable[[Request], Reply]


def embeddings(rows: Sequence[Sequence[float]] | Vector, indexes: Sequence[int]) -> Reply:
    """A successful answer with these rows under these indexes."""
    items = [
        {"object": "embedding", "index": index, "embedding": [float(value) for value in row]}
        for index, row in zip(indexes, rows, strict=True)
    ]
    return Reply(status=200, body=json.dumps({"object": "list", "data": items}))


def refusal(status: int, code: str) -> Reply:
    """An error as OpenAI words it, with a sentence that repeats what it was sent."""
    error = {"message": "Incorrect key secret-key for: the text", "type": None, "code": code}
    return Reply(status=status, body=json.dumps({"error": error}))


class EmbeddingServer(LocalServer):
    """Embeds by hashing; assign ``behaviour`` for anything else.

    Use it as a context manager. ``requests`` are those seen so far.
    """

    def __init__(self, dimension: int) -> None:
        self._embedder = HashingEmbedder(dimension=dimension)
        self.behaviour: Behaviour = self.embed
        self.requests: list[Request] = []
        super().__init__(self._handler())

    @property
    def base_url(self) -> str:
        """Where its protocol begins."""
        return f"{self.endpoint}/v1"

    def embed(self, request: Request) -> Reply:
        """The right answer."""
        rows = self._embedder.embed_passages(request.texts)
        return embeddings(rows, range(len(rows)))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A client that went away leaves its connection open: don't wait for it forever.
            timeout = 5

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = Request(
                    path=self.path,
                    authorization=self.headers.get("Authorization"),
                    model=body["model"],
                    texts=tuple(body["input"]),
                )
                server.requests.append(request)
                reply = server.behaviour(request)
                content = reply.body.encode()
                with contextlib.suppress(ConnectionError):  # the client has given up
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - overridden
                """Keep quiet."""

        return Handler
