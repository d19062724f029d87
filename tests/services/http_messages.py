"""Requests and answers of HTTP/1.1, read off a stream and made."""

import gzip
from asyncio import IncompleteReadError, StreamReader
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

Headers = tuple[tuple[str, str], ...]

_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request or answer.

    Attributes:
        start: Its first line.
        headers: In their order, names in small letters.
        body: Without chunks, but compressed if it came so.
        raw: The bytes that travelled.
    """

    start: str
    headers: Headers
    body: bytes
    raw: bytes

    def header(self, name: str) -> str:
        """The first value of a header, or nothing."""
        return next((value for key, value in self.headers if key == name), "")

    @property
    def method(self) -> str:
        """Of a request: what to do."""
        return self.start.split(" ")[0]

    @property
    def target(self) -> str:
        """Of a request: path and query."""
        return self.start.split(" ")[1]

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.start.split(" ")[1])

    @property
    def content(self) -> bytes:
        """The body, decompressed."""
        return (
            gzip.decompress(self.body) if self.header("content-encoding") == "gzip" else self.body
        )

    def replaced(self, *, content: bytes, start: str = "", without: frozenset[str]) -> "Message":
        """The same with another content, uncompressed, and less some headers."""
        drop = _FRAMING | without
        kept = tuple((name, value) for name, value in self.headers if name not in drop)
        return made(start or self.start, headers=kept, content=content)


def made(start: str, *, headers: Headers, content: bytes) -> Message:
    """A message that says how long it is."""
    headers = (*headers, ("content-length", str(len(content))))
    lines = [start, *(f"{name}: {value}" for name, value in headers)]
    head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
    raw = head.encode("latin-1") + content
    return Message(start=start, headers=headers, body=content, raw=raw)


def answer(status: int, *, headers: Headers, content: bytes) -> Message:
    """An answer of this status."""
    return made(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", headers=headers, content=content)


async def read_request(reader: StreamReader) -> Message | None:
    """The next request, or nothing when there is none any more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except IncompleteReadError as error:
        if error.partial:
            raise
        return None
    return await _message(reader, head, has_body=True)


async def read_answer(reader: StreamReader, *, method: str) -> Message:
    """The answer to a request of this method."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if status >= HTTPStatus.OK:
            break
    empty = method == "HEAD" or status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}
    return await _message(reader, head, has_body=not empty)


async def _message(reader: StreamReader, head: bytes, *, has_body: bool) -> Message:
    start, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)
    known = dict(headers)
    body = raw = b""
    if has_body and "chunked" in known.get("transfer-encoding", "").lower():
        body, raw = await _chunks(reader)
    elif has_body:
        body = raw = await reader.readexactly(int(known.get("content-length", "0")))
    return Message(start=start, headers=headers, body=body, raw=head + raw)


async def _chunks(reader: StreamReader) -> tuple[bytes, bytes]:
    """What the chunks hold, and the bytes that travelled."""
    body, raw = bytearray(), bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        raw += line
        if size == 0:
            break
        chunk = await reader.readexactly(size + 2)
        body += chunk[:-2]
        raw += chunk
    while line != b"\r\n":  # trailers, up to the empty line
        line = await reader.readuntil(b"\r\n")
        raw += line
    return bytes(body), bytes(raw)
