"""The few sentences that say most of a text: TextRank, for Chinese and English. Pure.

Sentences that share words recommend each other, as pages do by links, and the ones with most weight
stand for the text, in its own words and order. (Mihalcea and Tarau, "TextRank: Bringing Order into
Texts", 2004.)
"""

import math
import re
from collections.abc import Sequence
from typing import Final

from memory_tool.text.tokenise import tokenise

SUMMARY_LENGTH: Final = 280
"""Characters of the longest summary: about three English sentences, or six Chinese ones. A text
that is no longer is its own summary. Change it when a summary is too little to choose a memory
by."""

_SENTENCES_MAX: Final = 300
"""Comparing every two takes 0.1 s for 300; of a longer text the first ones are weighed, which in
notes and articles are those that say what it is about."""

_DAMPING: Final = 0.85
"""The share of a sentence's weight that comes from others; the usual constant of PageRank."""
_ROUNDS: Final = 30
"""0.85 to the power of 30 is below 0.01: by then the order stands."""

# A full stop ends a sentence before white space only: 3.14 and example.com go on.
_END: Final = re.compile(r"(?<=[。！？；…!?])(?![。！？；…!?”’」』）)\"'])|(?<=[.;][\s])|\n+")
_CUT: Final = "…"
_FULL_WIDTH: Final = frozenset("。！？；…”’」』）")


def summarise(text: str) -> str:
    """The text itself if it is short, else its weightiest sentences in their order.

    Never longer than :data:`SUMMARY_LENGTH`.
    """
    if len(text) <= SUMMARY_LENGTH:
        return text
    # Said twice is no reason to say it twice in the summary.
    sentences = list(dict.fromkeys(sentences_of(text)))[:_SENTENCES_MAX]
    weights = _weights([frozenset(tokenise(sentence).words) for sentence in sentences])
    chosen: list[int] = []
    length = 0
    for place in sorted(range(len(sentences)), key=lambda at: (-weights[at], at)):
        # One more for the blank between two sentences.
        if length + len(sentences[place]) + 1 <= SUMMARY_LENGTH:
            chosen.append(place)
            length += len(sentences[place]) + 1
    if not chosen:
        weightiest = max(range(len(sentences)), key=lambda at: (weights[at], -at))
        return sentences[weightiest][: SUMMARY_LENGTH - 1].rstrip() + _CUT
    return _joined([sentences[place] for place in sorted(chosen)])


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without the white space around them."""
    return [sentence for part in _END.split(text) if (sentence := part.strip())]


def _joined(sentences: Sequence[str]) -> str:
    text = sentences[0]
    for sentence in sentences[1:]:
        # A Chinese sentence is followed by no blank.
        text += sentence if text[-1] in _FULL_WIDTH else f" {sentence}"
    return text


def _weights(words: Sequence[frozenset[str]]) -> list[float]:
    """The weight of each sentence, given its words."""
    links = _links(words)
    sums = [sum(row.values()) for row in links]
    weights = [1.0] * len(words)
    for _ in range(_ROUNDS):
        weights = [
            (1 - _DAMPING)
            + _DAMPING * sum(weights[other] * link / sums[other] for other, link in row.items())
            for row in links
        ]
    return weights


def _links(words: Sequence[frozenset[str]]) -> list[dict[int, float]]:
    links: list[dict[int, float]] = [{} for _ in words]
    for first, ours in enumerate(words):
        for second in range(first):
            shared = len(ours & words[second])
            if shared:
                # Long sentences share more by chance: their lengths weigh against them.
                link = shared / (math.log(1 + len(ours)) + math.log(1 + len(words[second])))
                links[first][second] = links[second][first] = link
    return links
