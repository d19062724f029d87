"""Embedding spaces as a store keeps them: numbered, one of them active; how they name targets."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from memory_tool.model import EmbeddingSpace, MemoryId, Vector

FIRST_SPACE: Final = 1
"""The number of a store's first space, which its indexes are of before any is recorded."""

SpaceState: TypeAlias = Literal["filling", "building", "active", "kept"]
"""``filling``: vectors are being made, nothing follows. ``building``: indexes follow, and whatever
still gets its vector takes a number, so that they hear of it. ``active``: this one is searched.
``kept``: it was, and is there for a way back."""

FOLLOWED: Final[tuple[SpaceState, ...]] = ("active", "building")
"""Spaces whose indexes are brought forward."""

_OF_SPACE: Final = re.compile(r"(.*):space(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSpace:
    """A space that the store knows.

    ``embedder`` is what the setting of that name has to say to get its model; empty where the
    space itself tells.
    """

    number: int
    space: EmbeddingSpace
    state: SpaceState
    embedder: str = ""


class SpaceChanged(Exception):
    """Another space than expected is active: vectors made for the expected one fit nothing now.

    A fact that the front door acts upon, so it is none of the errors that callers see.
    """


def followed(known: Iterable[KnownSpace]) -> tuple[int, ...]:
    """The numbers of the spaces whose indexes are brought forward, the active one first."""
    spaces = tuple(known)
    first = [one.number for one in spaces if one.state == "active"] or [FIRST_SPACE]
    others = (one.number for one in spaces if one.state in FOLLOWED)
    return tuple(dict.fromkeys((*first, *others)))


def target_in_space(name: str, number: int) -> str:
    """The name of a vector target that holds one space: ``faiss:ab12:space2``."""
    return f"{name}:space{number}"


def space_of_target(target: str) -> int | None:
    """The space that a target's name says it holds; ``None`` where it follows the active one."""
    named = _OF_SPACE.fullmatch(target)
    return int(named[2]) if named else None


def without_space(target: str) -> str:
    """The target's name without the space that it holds: what stays when the model changes."""
    named = _OF_SPACE.fullmatch(target)
    return named[1] if named else target


@dataclass(frozen=True, slots=True, kw_only=True)
class Unembedded:
    """A memory with chunks that lack a vector in some space: (ordinal, start, stop) of each.

    ``content`` is the whole text, also of a cold memory; ``None`` where what the archive keeps of
    it is damaged.
    """

    ns_id: int
    memory_id: MemoryId
    content: str | None
    content_hash: bytes
    chunks: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledChunk:
    """The vector that such a chunk got, with all that tells whether it still is that chunk."""

    memory_id: MemoryId
    content_hash: bytes
    ordinal: int
    start: int
    stop: int
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedText:
    """The text of a chunk and its stored vector."""

    text: str
    vector: Vector


class Step(NamedTuple):
    """How far a change of model is, for people: ``done`` of ``every``, where there is a number."""

    what: str
    done: int = 0
    every: int = 0
