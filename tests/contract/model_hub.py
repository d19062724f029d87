"""A model hub on this machine, with one model to download."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_COMMIT: Final = "c" * 40


class ModelHub:
    """Serves the model in ``folder`` as ``nobody/tiny``; forbids ``nobody/closed``, else is empty.

    Use it as a context manager. ``requests`` are the paths that were asked for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for a path."""
        self.requests.append(path)
        headers = {"X-Repo-Commit": _COMMIT}
        if "nobody/closed" in path:
            return 403, {}, b""
        if "nobody/tiny" not in path:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if "/tree/" in path:
            return 200, headers, b"[]"
        if path.startswith("/api/"):
            return 200, headers, json.dumps({"id": "nobody/tiny", "sha": _COMMIT}).encode()
        file = self._folder / path.partition("/resolve/")[2].partition("/")[2]
        if not file.is_file():
            return 404, headers | {"X-Error-Code": "EntryNotFound"}, b""
        content = file.read_bytes()
        return 200, headers | {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, content

    def __enter__(self) -> Self:
        """Start listening."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, headers, content = hub.answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            do_HEAD = do_GET  # noqa: N815 - the name is the protocol's

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - overridden
                """Keep quiet."""

        return Handler
