"""Erasing with proof: which rows a scope, ids or a condition mean, and the order to erase them."""

from collections.abc import Callable, Iterator, Sequence

from memory_tool.assembly import Erasing
from memory_tool.erase_values import Receipt
from memory_tool.errors import InputError, NotFound
from memory_tool.model import MemoryId
from memory_tool.port_values import PageRequest
from memory_tool.query import EVERYTHING, Filter
from memory_tool.scope import Scope
from memory_tool.tool import MemoryTool
from memory_tool.validation import checked_id

_PAGE = 500


def erase(
    tool: MemoryTool,
    scope: Scope,
    *,
    ids: Sequence[MemoryId] = (),
    condition: Filter = EVERYTHING,
    pieces: Sequence[str] = (),
    say: Callable[[str], None] = lambda _line: None,
) -> Receipt:
    """Erase memories from every store, index, archive and file, and prove it.

    Without ids and condition all namespaces of the scope are erased, with their names: who adds
    under them again begins anew. Deleted memories may be named too: indexes may still hold them.
    Orders that wait for a place are gone on with, whatever the scope.

    Args:
        tool: Where they are stored.
        scope: What may be erased.
        ids: Only these memories.
        condition: Only what meets it and can be seen: neither expired nor quarantined.
        pieces: Texts that no file may hold afterwards, beside some of those that are erased.
        say: Hears of each step.

    Raises:
        NotFound: There is nothing of the kind in the scope.
        Unavailable: A store can't be reached; the same call goes on with what was begun.
        InputError: The record store was given by the caller and can't erase.
    """
    eraser = _eraser_of(tool)
    view = tool.stores.records.view(scope, [])
    ns_ids = [clock.ns_id for clock in view.namespaces]
    targets: list[tuple[int, MemoryId | None]]
    if ids:
        targets = list(_named(tool, scope, ids=[checked_id(one) for one in ids], ns_ids=ns_ids))
    elif condition != EVERYTHING:
        targets = list(_matching(tool, scope, condition=condition))
    else:
        targets = [(ns_id, None) for ns_id in ns_ids]
    if not targets and not eraser.unfinished():
        message = "there is nothing to erase in this scope"
        raise NotFound(message)
    return eraser.run(targets, pieces=pieces, say=say)


def _eraser_of(tool: MemoryTool) -> Erasing:
    eraser = tool.stores.eraser
    if eraser is None:
        message = "this record store can't erase"
        raise InputError(message)
    return eraser


def _named(
    tool: MemoryTool, scope: Scope, *, ids: Sequence[MemoryId], ns_ids: Sequence[int]
) -> Iterator[tuple[int, MemoryId]]:
    reader = tool.stores.reader
    rows = reader.fetch(scope, ids)
    deleted = reader.deleted(scope, ids)
    for memory_id in ids:
        if memory_id in rows:
            yield rows[memory_id].ns_id, memory_id
        elif memory_id in deleted:
            # In which of them it was is no longer told: the order harms nobody else.
            yield from ((ns_id, memory_id) for ns_id in ns_ids)
        else:
            raise NotFound.of(memory_id)


def _matching(
    tool: MemoryTool, scope: Scope, *, condition: Filter
) -> Iterator[tuple[int, MemoryId]]:
    after = None
    while rows := tool.page(scope, PageRequest(condition=condition, limit=_PAGE, after=after)):
        yield from ((row.ns_id, row.memory.id) for row in rows)
        last = rows[-1].memory
        after = (last.event_time, last.id)
