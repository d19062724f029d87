"""Commands over memories: add, search, list, get, delete."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import (
    ConditionOptions,
    NewMemoryOptions,
    ScopeOptions,
    SearchOptions,
    StoreOptions,
)
from memory_manage.interfaces.cli_output import (
    explained,
    explanation_key,
    fields_of,
    print_fields,
    print_memories,
)
from memory_manage.interfaces.cli_session import note, opened, print_json, print_lines

if TYPE_CHECKING:
    import memory_manage.options as options_of
    from memory_manage.results import Found, Listing

MemoryIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id, as add, search and list print it.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How much of a listing to show."""

    limit: Annotated[int, typer.Option("--limit", "-n", help="Most memories of a page.")] = 20
    cursor: Annotated[str | None, typer.Option(help="The next page, as the last one named it.")] = (
        None
    )


@with_groups
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")],
    *,
    said: NewMemoryOptions,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Store a text. It is safe on disk, and every search sees it, when this returns."""
    words: options_of.WriteOptions = {**said.words(), **where.words()}
    content = sys.stdin.read() if text == "-" else text
    with opened(store) as memory:
        written = memory.add(content, **words)
    if store.as_json:
        print_json(written.to_dict())
    else:
        print_lines(*(f"{item.status} {item.id}" for item in written))


@with_groups
def search(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="In any words, of any language.")
    ],
    *,
    how: SearchOptions,
    conditions: ConditionOptions,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Find memories by meaning, by exact words and by time, best first."""
    words: options_of.SearchOptions = {
        **how.words(),
        **conditions.words(),
        **where.words(conditions.filters),
    }
    with opened(store) as memory:
        found = memory.search(question, **words)
    if store.as_json:
        print_json(found.to_dict())
        return
    if how.explain:
        print_lines(*explained(found), "", explanation_key())
    else:
        print_memories(found.results)
    for missing in found.degraded:
        note(f"part of the answer is missing: {missing}")
    _note_end(found)


@with_groups
def list_memories(
    *,
    page: PageOptions,
    conditions: ConditionOptions,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """List memories, the newest event first."""
    words: options_of.ListOptions = {
        "limit": page.limit,
        "cursor": page.cursor,
        **conditions.words(),
        **where.words(conditions.filters),
    }
    with opened(store) as memory:
        listing = memory.get_all(**words)
    if store.as_json:
        print_json(listing.to_dict())
        return
    print_memories(listing.results)
    _note_end(listing)


@with_groups
def get(
    memory_id: MemoryIdArgument,
    *,
    version: Annotated[
        int | None, typer.Option(help="As it was then; left out, as it is now.")
    ] = None,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Show one memory with all that is known of it."""
    words = where.words()
    with opened(store) as memory:
        item = memory.get(memory_id, version=version, **words)
    if store.as_json:
        print_json(item.to_dict())
    else:
        print_fields(fields_of(item))


@with_groups
def delete(memory_id: MemoryIdArgument, *, where: ScopeOptions, store: StoreOptions) -> None:
    """Delete one memory: gone from every search at once. A repetition says already_deleted."""
    words = where.words()
    with opened(store) as memory:
        item = memory.delete(memory_id, **words)
    if store.as_json:
        print_json(item.to_dict())
    else:
        print_lines(f"{item.status} {item.id}")


def _note_end(page: "Found | Listing") -> None:
    """What a person wants to know after the last line, beside the answer itself."""
    if not page.results:
        note("nothing found")
    if page.cursor is not None:
        note(f"there is more: --cursor {page.cursor}")
