"""Taking items out of a bulk, and telling the sender that they failed."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.services.elasticsearch_errors import error_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkItem:
    """One action of a bulk.

    Attributes:
        action: ``index``, ``create``, ``update`` or ``delete``.
        target: What it names: ``_index``, ``_id`` and the like.
        lines: Its lines as they were sent, line ends included.
    """

    action: str
    target: dict[str, Any]
    lines: bytes

    def failure(self, status: int, *, index: str) -> dict[str, Any]:
        """How Elasticsearch reports that this item failed."""
        place = {"_index": self.target.get("_index", index), "_id": self.target.get("_id")}
        return {self.action: {**place, "status": status, "error": error_of(status)}}


def items_of(content: bytes) -> list[BulkItem]:
    """The items of a bulk, in their order."""
    lines = iter([line for line in content.split(b"\n") if line.strip()])
    items = []
    for line in lines:
        ((action, target),) = json.loads(line).items()
        sent = line + b"\n"
        if action != "delete":
            sent += next(lines) + b"\n"
        items.append(BulkItem(action=action, target=target, lines=sent))
    return items


def merged(
    answered: dict[str, Any], *, items: Sequence[BulkItem], failures: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    """The answer to all items.

    Args:
        answered: The server's answer to the items that reached it.
        items: All of them.
        failures: By their places, the answers to the others.
    """
    reached = iter(answered["items"])
    every = [failures[place] if place in failures else next(reached) for place in range(len(items))]
    return {**answered, "errors": answered["errors"] or bool(failures), "items": every}


NOTHING_SENT: Final[dict[str, Any]] = {"took": 0, "errors": False, "items": []}
"""The answer to a bulk of which nothing is left, which the server would refuse."""


def index_in(target: str) -> str:
    """The index that a request's path names for all items, or nothing."""
    path = target.partition("?")[0]
    return path.removesuffix("/_bulk").strip("/") if not path.startswith("/_") else ""


def whole_answer(target: str) -> str:
    """The request's path and query, asking for the whole answer."""
    return re.sub(r"([?&])filter_path=[^&]*&?", r"\1", target)
