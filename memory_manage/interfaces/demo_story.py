"""The demo's memories, conversation and questions, as they are shipped in ``demo/*.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

_FOLDER: Final = resources.files("memory_manage.interfaces") / "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One day's conversation.

    Attributes:
        run_id: Names the session, also in the store.
        title: What it is about.
        messages: As :meth:`memory_manage.manager.MemoryManage.add` takes them.
    """

    run_id: str
    title: str
    messages: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question worth asking.

    Attributes:
        title: What it shows.
        query: The question.
        options: Those of :meth:`memory_manage.manager.MemoryManage.search`.
    """

    title: str
    query: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything that the demo stores and asks.

    Attributes:
        memories: Records, each under a key of its own, so that they can be stored again.
        sessions: A conversation over five weeks, oldest first.
        examples: The searches.
    """

    memories: tuple[Mapping[str, Any], ...]
    sessions: tuple[Session, ...]
    examples: tuple[Example, ...]


def read_story() -> Story:
    """The story that this version ships."""
    return Story(
        memories=tuple(_read("memories")),
        sessions=tuple(
            Session(**{**session, "messages": tuple(session["messages"])})
            for session in _read("sessions", file="conversation")
        ),
        examples=tuple(Example(**example) for example in _read("searches")),
    )


def _read(name: str, *, file: str | None = None) -> list[dict[str, Any]]:
    text = (_FOLDER / f"{file or name}.json").read_text(encoding="utf-8")
    listed: list[dict[str, Any]] = json.loads(text)[name]
    return listed
