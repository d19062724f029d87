"""What long work tells of itself while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from memory_tool.generations import Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """How far a target has come: rows applied so far, and rows that are pending still.

    ``building`` tells the progress of its successor from that of what is read meanwhile.
    """

    target: str
    building: bool
    applied: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A target reads another build from now on, made in so many seconds of this process.

    ``verified`` says whether it was compared with the truth, beyond being looked at by itself.
    """

    target: str
    quality: Quality
    seconds: float
    verified: bool


Watch: TypeAlias = Callable[[Advance | Built], None]
"""Hears of each step, in the thread that takes it."""
