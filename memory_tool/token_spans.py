"""Where the tokens of a text lie: offsets made fit for chunking, and a guess without a tokenizer.

A span is a pair (start, stop) of character offsets. Spans as the house uses them are not empty, in
order, don't overlap, and together cover every character that is not white space, so that a text
cut between two of them loses nothing.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]

_GUESS: Final = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,3}|\S")


def approximate_spans(text: str) -> tuple[Span, ...]:
    """A guess at the tokens of ``text`` for models whose tokenizer is out of reach.

    Four ASCII letters, three digits or any other single character that is not white space count
    as a token. That is about what byte-pair and word-piece vocabularies need at worst for English
    and Chinese; real counts are mostly lower, so that a window of so many guessed tokens fits.
    Emoji and rare scripts can take up to four real tokens for a guessed one.
    """
    return tuple(match.span() for match in _GUESS.finditer(text))


def covering_spans(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """A tokenizer's own offsets, without overlaps and gaps.

    Tokens that share a character (an emoji cut into bytes, a ligature spelt out) are one span:
    a text can't be cut inside a character. Characters that the tokenizer drops, such as control
    characters and accents, are taken in by the next token, the last ones by the last token.
    """
    covered: list[Span] = []
    end = 0
    for start, stop in spans:
        if stop <= max(start, end):
            continue
        dropped = text[end:start].lstrip()
        first = start - len(dropped) if dropped else max(start, end)
        covered.append((first, stop))
        end = stop
    rest = text[end:].rstrip()
    if rest:
        start = covered.pop()[0] if covered else len(text) - len(text.lstrip())
        covered.append((start, end + len(rest)))
    return tuple(covered)
