"""JSON in and out, strictly: no NaN, no name twice, no deep nesting, no half characters."""

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from memory_tool.errors import InputError, InvalidText, TooLarge

DEPTH_MAX: Final = 32
"""Far above the eight levels of metadata and any filter that somebody reads."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class JsonAnswer(JSONResponse):
    """JSON with Chinese as it is. Memories are nobody's business, caches included."""

    def __init__(
        self, content: object, *, status_code: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        kept = {"Cache-Control": "no-store", **(headers or {})}
        super().__init__(content, status_code=status_code, headers=kept)


class StrictRoute(APIRoute):
    """A route whose body is read by :func:`strict_json`, and which takes nothing it doesn't use."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's own handler behind our reading of the request."""
        answered = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            if request.query_params and not self.dependant.query_params:
                message = "this call takes its options in the JSON body, not in the address"
                raise InputError(message)
            read = _ReadRequest(request.scope, request.receive)
            if self.body_field is not None:
                await read.read(limit=request.app.state.body_bytes)
            return await answered(read)

        return strictly


class _ReadRequest(Request):
    """A request whose body was read and understood before the framework asks for it."""

    _raw = b""
    _document: object = None

    async def read(self, *, limit: int) -> None:
        """Read the body.

        Raises:
            TooLarge: It has more than ``limit`` bytes.
            InputError: It is no JSON that we take.
        """
        self._raw = await _limited(self, limit)
        # In a thread: a body of the largest size would hold up everybody else for a moment.
        self._document = await run_in_threadpool(strict_json, self._raw) if self._raw else None

    async def body(self) -> bytes:
        """The bytes."""
        return self._raw

    async def json(self) -> Any:  # noqa: ANN401 - JSON of any shape
        """The document."""
        return self._document


async def _limited(request: Request, limit: int) -> bytes:
    message = f"the request is larger than the {limit:,} bytes that are allowed"
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise TooLarge(message)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise TooLarge(message)
        parts.append(part)
    return b"".join(parts)


def strict_json(raw: bytes) -> object:
    """The document that the bytes are.

    Raises:
        InputError: They are no JSON; or it holds NaN, infinity or a number too large for a float,
            a name twice in one object, or is nested deeper than 32 levels.
        InvalidText: They are no UTF-8, or a text holds half of a surrogate pair.
    """
    try:
        text = raw.decode()
        document = json.loads(
            text,
            parse_constant=_no_number,
            parse_float=_finite,
            object_pairs_hook=_each_once,
        )
    except UnicodeDecodeError as error:
        message = "the body is not in UTF-8"
        raise InvalidText(message) from error
    except RecursionError as error:
        raise InputError(_TOO_DEEP) from error
    except ValueError as error:
        # The exception's other lines would quote the body.
        message = f"the body is no JSON: {error}"
        raise InputError(message) from error
    # Only an escape brings a lone surrogate in.
    _check(document, depth=DEPTH_MAX, texts="\\ud" in text.lower())
    return document


_TOO_DEEP: Final = f"the body is nested deeper than {DEPTH_MAX} levels"


def _no_number(name: str) -> float:
    message = f"{name} is no number of JSON"
    raise InputError(message)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        message = "a number is too large"
        raise InputError(message)
    return number


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        message = "the body has an object that names a field twice"
        raise InputError(message)
    return named


def _check(value: object, *, depth: int, texts: bool) -> None:
    if depth < 0:
        raise InputError(_TOO_DEEP)
    if isinstance(value, str):
        if texts and _SURROGATE.search(value):
            message = "the body holds half of a surrogate pair"
            raise InvalidText(message)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check(name, depth=depth, texts=texts)
            _check(item, depth=depth - 1, texts=texts)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth=depth - 1, texts=texts)
