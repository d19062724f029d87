"""How a question is searched: keyword, vector or both, with the reason. Pure rules."""

import re
from dataclasses import dataclass
from typing import Final

from memory_tool.errors import InputError
from memory_tool.query import HYBRID, KEYWORD, VECTOR, Strategy

_BY_NAME: Final = {strategy.name: strategy for strategy in (KEYWORD, VECTOR, HYBRID)}

_IDENTIFIER: Final = re.compile(
    r"(?:[A-Za-z]+[-_./#])*[A-Za-z]*\d[\w./#-]*|[0-9a-f]{8}-[0-9a-f-]{27}|[\w.+-]+@[\w.-]+",
    # Chinese has no blanks: without this "3月份我去了哪里" would be one identifier.
    re.ASCII,
)
_QUOTED: Final = re.compile(r"[\"“「『'‘]([^\"”」』'’]+)[\"”」』'’]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A strategy and why it was chosen."""

    strategy: Strategy
    reason: str


def choose(query: str, mode: str = "auto") -> Choice:
    """The strategy for a question.

    Raises:
        InputError: The mode is unknown.
    """
    if mode != "auto":
        if mode not in _BY_NAME:
            known = ", ".join(_BY_NAME)
            message = f"mode {mode!r} is unknown; known are auto, {known}"
            raise InputError(message)
        return Choice(strategy=_BY_NAME[mode], reason="asked for")
    text = query.strip()
    if _IDENTIFIER.fullmatch(text):
        return Choice(strategy=KEYWORD, reason="an identifier or number: exact words decide")
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return Choice(strategy=KEYWORD, reason="a quoted phrase: exact words decide")
    return Choice(strategy=HYBRID, reason="words and meaning both count")
