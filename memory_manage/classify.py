"""What kind of memory a text is, by rules over its length, structure and words. Pure.

A first, small set of rules; each names what it saw, and the first that applies decides.
"""

import re
from dataclasses import dataclass
from typing import Final

from memory_tool.model import MemoryType

LONG_TEXT: Final = 600
"""Characters from which a text counts as a document rather than a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """A type with its confidence in [0, 1] and the reason."""

    type: MemoryType
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    type: MemoryType
    pattern: re.Pattern[str]
    confidence: float
    reason: str


_RULES: Final = (
    _Rule(
        type=MemoryType.PREFERENCE,
        pattern=re.compile(
            r"偏好|喜欢|喜爱|爱吃|讨厌|不爱|更愿意|最爱"
            r"|\b(?:prefers?|likes?|loves?|hates?|dislikes?|enjoys?|favou?rite|would rather)\b",
            re.IGNORECASE,
        ),
        confidence=0.85,
        reason="a word of liking or disliking",
    ),
    _Rule(
        type=MemoryType.PROCEDURE,
        pattern=re.compile(
            r"^\s*(?:步骤|第一步|1[.、)])|首先.*然后|\b(?:step 1|first,.*then|how to)\b",
            re.IGNORECASE | re.DOTALL,
        ),
        confidence=0.75,
        reason="steps in order",
    ),
    _Rule(
        type=MemoryType.EVENT,
        pattern=re.compile(
            r"\d{4}[-/年]\d{1,2}|\d{1,2}月\d{1,2}[日号]|昨天|今天|明天|上周|下周|会议|开会"
            r"|\b(?:yesterday|today|tomorrow|last week|next week|meeting|met with"
            r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
            re.IGNORECASE,
        ),
        confidence=0.7,
        reason="a time or an occasion",
    ),
    _Rule(
        type=MemoryType.REFLECTION,
        pattern=re.compile(
            r"反思|总结来看|我意识到|教训|\b(?:i realized|lesson learned|in hindsight|i learned)\b",
            re.IGNORECASE,
        ),
        confidence=0.75,
        reason="a conclusion about oneself",
    ),
)


def classify(text: str, *, in_conversation: bool = False) -> Classification:
    """The type of a text.

    Args:
        text: What is to be stored.
        in_conversation: It is a message of a dialogue.
    """
    if in_conversation:
        return Classification(
            type=MemoryType.CONVERSATION, confidence=0.95, reason="a message of a conversation"
        )
    if len(text) > LONG_TEXT:
        return Classification(type=MemoryType.KNOWLEDGE, confidence=0.7, reason="a long text")
    for rule in _RULES:
        if rule.pattern.search(text):
            return Classification(type=rule.type, confidence=rule.confidence, reason=rule.reason)
    return Classification(type=MemoryType.SEMANTIC, confidence=0.5, reason="a plain statement")
