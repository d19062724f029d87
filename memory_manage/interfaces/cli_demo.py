"""The command that shows what Threefold does: store a story, search it, explain the results."""

import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_output import aligned, explained, explanation_key
from memory_manage.interfaces.cli_session import note, opened, print_json, print_lines
from memory_manage.interfaces.demo_story import Example, Session, Story, read_story

if TYPE_CHECKING:
    from memory_manage.manager import MemoryManage
    from memory_manage.results import Found, Written

USER: Final = "demo"
_SHOWN: Final = 2
"""Results of each search: enough to see the right one stand above another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How many items were added, and how many were there from an earlier run."""

    added: int = 0
    already_there: int = 0

    def __add__(self, other: "Stored") -> "Stored":
        return Stored(
            added=self.added + other.added,
            already_there=self.already_there + other.already_there,
        )


@with_groups
def demo(*, store: StoreOptions) -> None:
    """Store a story in two languages, then search it by meaning, by exact words and by time.

    A second run adds nothing. Everything is stored for the user "demo".
    """
    story = read_story()
    started = time.monotonic()
    note("opening the store (the first time it makes a database)")
    with opened(store, on_progress=note) as memory:
        mine = memory.scoped(user_id=USER)
        stored = _store(mine, story)
        note(f"asking {len(story.examples)} questions")
        found = [_search(mine, example) for example in story.examples]
        where = dict(memory.health().where)
    seconds = time.monotonic() - started
    if store.as_json:
        searches = list(zip(story.examples, found, strict=True))
        print_json(_document(stored, searches, where=where))
        return
    print_lines(f"{stored.added} memories added, {stored.already_there} were there already.")
    for example, results in zip(story.examples, found, strict=True):
        print_lines("", *_shown(example, results))
    print_lines("", explanation_key())
    some_id = next((item.id for results in found for item in results), "ID")
    print_lines(
        "",
        *_next_steps(where, store, some_id=some_id),
        "",
        f"All of it took {seconds:.0f} seconds.",
    )


def _store(mine: "MemoryManage", story: Story) -> Stored:
    note(f"storing {len(story.memories)} memories (the first one loads the embedding model)")
    stored = _counted(mine.add_many(story.memories))
    for number, session in enumerate(story.sessions, start=1):
        count = f"{number} of {len(story.sessions)}, {len(session.messages)} messages"
        note(f"storing conversation {count}: {session.title}")
        stored += _store_session(mine, session)
    return stored


def _store_session(mine: "MemoryManage", session: Session) -> Stored:
    # A session is one transaction, so it is there as a whole or not at all.
    there = mine.get_all(filters={"conversation_id": session.run_id}, limit=len(session.messages))
    if there.results:
        return Stored(already_there=len(there))
    return _counted(mine.add(session.messages, run_id=session.run_id))


def _counted(written: "Written") -> Stored:
    added = sum(item.status == "added" for item in written)
    return Stored(added=added, already_there=len(written) - added)


def _search(mine: "MemoryManage", example: Example) -> "Found":
    return mine.search(example.query, limit=_SHOWN, explain=True, **example.options)


def _shown(example: Example, found: "Found") -> Iterator[str]:
    options = "".join(f"  {name}={value}" for name, value in example.options.items())
    yield f"── {example.title}"
    yield f"   “{example.query}”{options}"
    yield from explained(found)


def _next_steps(where: dict[str, str], store: StoreOptions, *, some_id: str) -> Iterator[str]:
    yield f"The data lies in {where['data']}: {where['records']}, {where['keywords']} for words,"
    yield f"{where['vectors']} for vectors made by {where['embedder']}. What to try next:"
    yield ""
    further = f" --data-dir {shlex.quote(str(store.data_dir))}" if store.data_dir else ""
    further += " --database-url URL" if store.database_url else ""
    scope = f"--user {USER}{further}"
    steps = [
        (f'search "对什么过敏？" {scope} --explain', "ask something"),
        (f'search "colour of the lamp" {scope} --since 2025-03-24', "only what was said since"),
        (f'add "I moved to the fourth floor" {scope}', "tell it something; prints an id"),
        (f"list {scope} --type procedure", "what is there"),
        (f"get {some_id} {scope}", "one memory"),
        (f"delete {some_id} {scope}", "forget it"),
        (f"stats{further}", "how much is there"),
        (f"doctor{further}", "whether all is well"),
    ]
    command = _command()
    yield from aligned([(f"  {command} {step}", f"# {what}") for step, what in steps])


def _command() -> str:
    """How this program is called from here: by its name, if the shell would find it."""
    program = Path(sys.executable).with_name("threefold")
    found = shutil.which("threefold")
    if not program.exists() or (found is not None and Path(found) == program):
        return "threefold"
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


def _document(
    stored: Stored, searches: "list[tuple[Example, Found]]", *, where: dict[str, str]
) -> dict[str, Any]:
    return {
        "stored": {"added": stored.added, "already_there": stored.already_there},
        "searches": [
            {
                "title": example.title,
                "query": example.query,
                "options": dict(example.options),
                **found.to_dict(),
            }
            for example, found in searches
        ],
        "where": where,
        "user": USER,
    }
