"""A model hub on this machine, with one model to download."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

from tests.contract.local_server import LocalServer

_COMMIT: Final = "c" * 40


class ModelHub(LocalServer):
    """Serves the model in ``folder`` as ``nobody/tiny``; forbids ``nobody/closed``, else is empty.

    Use it as a context manager. ``requests`` are the paths that were asked for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests: list[str] = []
        super().__init__(self._handler())

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
