"""The erase ledger's lines as text: one JSON object each. Pure."""

import json
from datetime import datetime
from typing import Any

from memory_tool.erase_values import LedgerLine
from memory_tool.errors import Corrupt


def encoded_line(line: LedgerLine) -> str:
    """The line with its line break."""
    content = {
        "name": line.name,
        "store": line.store,
        "ns_id": line.ns_id,
        "memory_id": line.memory_id,
        "at": line.at.isoformat(),
    }
    return json.dumps(content, separators=(",", ":")) + "\n"


def parsed_lines(text: str, *, name: str) -> tuple[LedgerLine, ...]:
    """The lines of a ledger; ``name`` is what errors call it.

    A last one without its end was never acknowledged, and is left out.

    Raises:
        Corrupt: A line is none of ours.
    """
    *whole, _unfinished = text.split("\n")
    return tuple(
        _parsed(raw, name=name, number=number)
        for number, raw in enumerate(whole, start=1)
        if raw.strip()
    )


def _parsed(raw: str, *, name: str, number: int) -> LedgerLine:
    try:
        content: dict[str, Any] = json.loads(raw)
        return LedgerLine(
            name=str(content["name"]),
            store=str(content["store"]),
            ns_id=int(content["ns_id"]),
            memory_id=None if content["memory_id"] is None else str(content["memory_id"]),
            at=datetime.fromisoformat(content["at"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        message = f"line {number} of {name} is no line of an erase ledger"
        raise Corrupt(message) from error
