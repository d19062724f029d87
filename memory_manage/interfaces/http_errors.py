"""Errors as HTTP answers: a status, and a body with the names that the command line has too."""

from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from memory_manage.interfaces.cli_errors import details_of
from memory_manage.interfaces.http_bodies import UNKNOWN_FIELD
from memory_manage.interfaces.http_json import JsonAnswer
from memory_tool.errors import (
    Corrupt,
    Forbidden,
    InputError,
    NotAuthenticated,
    NotFound,
    ThreefoldError,
    TooLarge,
    Unavailable,
    WriteConflict,
)

RETRY_SECONDS: Final = 2
"""When to try again: about as long as a PostgreSQL takes to restart."""

STATUSES: Final[tuple[tuple[type[ThreefoldError], int], ...]] = (
    (NotAuthenticated, 401),
    (Forbidden, 403),
    (TooLarge, 413),
    (InputError, 400),
    (NotFound, 404),
    (WriteConflict, 409),
    (Unavailable, 503),
    (Corrupt, 500),
)
"""The first class that fits decides."""

BUG: Final = 500
_SAID_MAX: Final = 3


class ErrorDetails(BaseModel):
    """What went wrong, for programs and for people."""

    type: str
    """A class of memory_tool.errors, or Bug."""
    message: str
    store: str | None = None
    """Which store is unavailable."""
    outcome: str | None = None
    """What became of a write: not_started, committed or unknown."""
    key: str | None = None
    """The Idempotency-Key under which the call can be repeated without a second effect."""
    repair: str | None = None
    """The command that repairs a corrupt store."""


class ErrorAnswer(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetails


ERROR_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"model": ErrorAnswer, "description": "The call can't be carried out as it stands"},
    "5XX": {"model": ErrorAnswer, "description": "A store is unavailable or corrupt; or a bug"},
}


def status_of(error: ThreefoldError) -> int:
    """The HTTP status of an error: what the caller can do about it."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), BUG)


def error_answer(error: ThreefoldError) -> JsonAnswer:
    """The answer that says an error."""
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(RETRY_SECONDS)
    details = {"type": type(error).__name__, "message": str(error), **details_of(error)}
    return JsonAnswer({"error": details}, status_code=status_of(error), headers=headers)


def bug_answer() -> JsonAnswer:
    """The answer to a request that met a bug; what it was stands in the log, without content."""
    details = {"type": "Bug", "message": "a bug in Threefold; the server's log says where"}
    return JsonAnswer({"error": details}, status_code=BUG)


def answer_errors(app: FastAPI) -> None:
    """Let every error of the application be answered in the one form."""
    app.add_exception_handler(ThreefoldError, _threefold)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_framework)


async def _threefold(_request: Request, error: Exception) -> JsonAnswer:
    return error_answer(error) if isinstance(error, ThreefoldError) else bug_answer()


async def _invalid(_request: Request, error: Exception) -> JsonAnswer:
    """The framework's findings in one line. It would quote the values, and answer with 422."""
    found = error.errors() if isinstance(error, RequestValidationError) else ()
    said = "; ".join(_finding(each) for each in found[:_SAID_MAX])
    return error_answer(InputError(said))


def _finding(found: dict[str, Any]) -> str:
    where = [str(part) for part in found["loc"][1:]]
    if not where and found["type"] != UNKNOWN_FIELD:
        return "the body is one JSON object, sent as Content-Type: application/json"
    return ": ".join(filter(None, [".".join(where), found["msg"]]))


async def _of_framework(_request: Request, error: Exception) -> JsonAnswer:
    if not isinstance(error, HTTPException):
        return bug_answer()
    kind = NotFound.__name__ if error.status_code == status_of(NotFound()) else "InputError"
    message = f"{error.detail}: see /openapi.json for what there is"
    details = {"type": kind, "message": message}
    return JsonAnswer(
        {"error": details}, status_code=error.status_code, headers=dict(error.headers or {})
    )
