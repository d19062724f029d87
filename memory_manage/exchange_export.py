"""Memories with everything that is known of them, out of a store."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import BinaryIO

from memory_manage.exchange_lines import Header, end_line, header_line, memory_line, tree_line
from memory_tool.errors import InputError
from memory_tool.exchange_ports import Exchange
from memory_tool.scope import Namespace, Scope
from memory_tool.tool import MemoryTool


def export_memories(
    tool: MemoryTool,
    out: BinaryIO,
    *,
    scope: Scope | None = None,
    with_vectors: bool = False,
    advance: Callable[[int], None] = lambda _done: None,
) -> int:
    """Write the memories of a scope, or all, as lines of JSON; how many there were.

    A namespace is read at one moment; those of different ones may differ by as long as it takes.

    Raises:
        InputError: The record store can't be read out.
        TooManyNamespaces: The scope covers more than 1,000.
    """
    exchange = exchange_of(tool)
    places = exchange.namespaces() if scope is None else _covered(tool, scope)
    header = Header(store=exchange.identity(), exported_at=datetime.now(UTC))
    out.write(header_line(header))
    count = 0
    for place in places:
        with exchange.memories(place, with_vectors=with_vectors) as memories:
            for memory in memories:
                out.write(memory_line(memory))
                count += 1
                advance(1)
        # Behind the memories, which make the namespace where they are taken in.
        if nodes := exchange.tree(place):
            out.write(tree_line(place, nodes))
    out.write(end_line(count))
    return count


def exchange_of(tool: MemoryTool) -> Exchange:
    """What reads memories out.

    Raises:
        InputError: The record store can't do it.
    """
    exchange = tool.stores.exchange
    if exchange is None:
        message = "this record store can't be exported, nor trees be put into it"
        raise InputError(message)
    return exchange


def _covered(tool: MemoryTool, scope: Scope) -> tuple[Namespace, ...]:
    view = tool.stores.records.view(scope, ())
    return tuple(clock.namespace for clock in sorted(view.namespaces, key=lambda one: one.ns_id))
