"""Prose in windows of tokens that overlap."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

# Closing quotes and brackets belong to their sentence. A full stop ends one only before white
# space: 3.14 and example.com go on.
_SENTENCE_END: Final = re.compile(r"""[。！？!?]+[”’"'」』）)]*|\.[”’"')]*(?=\s)|\n""")
_START: Final = itemgetter(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a text, as character offsets: `text[start:stop]`."""

    start: int
    stop: int


def split_prose(
    text: str,
    token_spans: Sequence[tuple[int, int]],
    *,
    size: int = 512,
    overlap: int = 128,
) -> tuple[Span, ...]:
    """Cut a text into windows of at most `size` tokens, each sharing `overlap` with the next.

    A window ends after a sentence if one ends in its last eighth, so that few are cut in two.

    Args:
        text: The text to cut.
        token_spans: Start and stop of each token in `text`, in order, as the embedder counts.
            Tokens without characters (special ones) don't count.
        size: Most tokens of a window; the mission's number.
        overlap: Tokens that a window shares with the next; the mission's number.

    Returns:
        Windows in order; the first starts at 0, the last stops at the end of the text, and
        nothing lies between two. Each reaches further than the one before. A text that fits is
        one window, an empty text none.

    Raises:
        ValueError: If `overlap` is negative or leaves no room to move on.
    """
    if not 0 <= overlap < size:
        message = f"overlap must be at least 0 and below size, got {overlap} and {size}"
        raise ValueError(message)
    if not text:
        return ()
    tokens = [span for span in token_spans if span[0] < span[1]]
    windows: list[Span] = []
    first = 0
    while first + size < len(tokens):
        after = _window_end(
            text, tokens, shared=first + overlap, most=first + size, slack=size // 8
        )
        # White space after the last token stays with it. The bytes of one rare character are
        # tokens with the same offsets: it isn't cut, and is no window of its own again.
        stop = max(tokens[after][0], tokens[after - 1][1])
        if not windows or stop > windows[-1].stop:
            windows.append(Span(start=_window_start(tokens, first), stop=stop))
        first = after - overlap
    if not windows or windows[-1].stop < len(text):
        windows.append(Span(start=_window_start(tokens, first), stop=len(text)))
    return tuple(windows)


def fits_one_chunk(text: str, *, size: int) -> bool:
    """Tell whether a text surely has at most `size` tokens, without asking a tokeniser.

    No token is shorter than a byte, so a text of `size` UTF-8 bytes can't have more tokens. Many
    tokenisers fold to NFKC first, where one character can become eighteen, so both forms have to
    be short. A mark before the first word, which some put there, isn't counted.

    Args:
        text: Any text.
        size: Most tokens of a chunk.

    Returns:
        True if the text is one chunk; False if only the tokeniser can tell.
    """
    if len(text) > size or _utf8_length(text) > size:
        return False
    return text.isascii() or _utf8_length(unicodedata.normalize("NFKC", text)) <= size


def _utf8_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _window_start(tokens: Sequence[tuple[int, int]], first: int) -> int:
    return tokens[first][0] if first else 0


def _window_end(
    text: str, tokens: Sequence[tuple[int, int]], *, shared: int, most: int, slack: int
) -> int:
    """Return the index after a window's last token, above `shared` and at most `most`."""
    earliest = max(most - slack, shared)
    limit = tokens[most][0]
    cut = most
    # One character more than the window, to see whether white space follows its last full stop.
    for match in _SENTENCE_END.finditer(text, tokens[earliest][0], limit + 1):
        if match.end() <= limit:
            cut = bisect_left(tokens, match.end(), earliest + 1, most, key=_START)
    return cut
