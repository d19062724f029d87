"""Errors as a command reports them: an exit status for scripts, a line for people."""

import json
from typing import Final

from memory_tool.errors import (
    Corrupt,
    InputError,
    NotFound,
    ThreefoldError,
    Unavailable,
    WriteConflict,
)

OK: Final = 0
NOT_FOUND: Final = 1
WRONG_INPUT: Final = 2
"""Also what shells and Typer use for a command line that can't be understood."""

UNAVAILABLE: Final = 4
DRIFT: Final = 6
"""A check found something that is not as it should be."""

BUG: Final = 70
"""``EX_SOFTWARE`` of sysexits.h: far from our own, so that no bug reads as "not found"."""

STATUSES: Final[tuple[tuple[type[ThreefoldError], int], ...]] = (
    (NotFound, NOT_FOUND),
    (InputError, WRONG_INPUT),
    (WriteConflict, 3),
    (Unavailable, UNAVAILABLE),
    (Corrupt, 5),
)

STATUS_HELP: Final = (
    "Exit status: 0 done, 1 not found, 2 wrong input, 3 write conflict,"
    " 4 a store is unavailable, 5 a store is corrupt, 6 a check found drift, 70 a bug in Threefold."
)


def status_of(error: ThreefoldError) -> int:
    """The exit status of an error: what the caller can do about it."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), BUG)


def error_line(error: ThreefoldError, *, as_json: bool) -> str:
    """The error as one line, or as one JSON document of one line."""
    further = details_of(error)
    if as_json:
        document = {
            "error": type(error).__name__,
            "message": str(error),
            **further,
            "status": status_of(error),
        }
        return json.dumps(document, ensure_ascii=False)
    said = [f"threefold: {' '.join(str(error).split())}"]
    said += [f"{name} {value}" for name, value in further.items()]
    return "; ".join(said)


def details_of(error: ThreefoldError) -> dict[str, str]:
    """What the class of the error adds to its message."""
    if isinstance(error, Corrupt):
        return {"repair": error.command}
    if isinstance(error, Unavailable):
        key = {"key": error.key} if error.key else {}
        return {"store": error.store, "outcome": error.outcome, **key}
    return {}
