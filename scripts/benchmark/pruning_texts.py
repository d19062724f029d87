"""Chunks and questions of natural shape, in Chinese and English, for a keyword index."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np

from memory_tool.text.stop_words import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS
from scripts.benchmark.made import word
from scripts.evaluation.sets import is_there, read_set

Language: TypeAlias = Literal["English", "Chinese"]
LANGUAGES: Final[tuple[Language, ...]] = ("English", "Chinese")
QUESTIONS: Final = 200
STOP_QUESTIONS: Final[Mapping[Language, Sequence[str]]] = {
    "English": (
        "who is it",
        "what was that",
        "where have you been",
        "to be or so",
        "it is what it is",
    ),
    "Chinese": ("你是谁", "这是什么", "为什么", "怎么办", "那个怎么样"),
}
"""Wholly of stop words: the field of words has nothing for them."""

_SENTENCES: Final = 5
"""Of a chunk: about 60 words, or 100 characters."""

_SETS: Final[dict[Language, tuple[str, ...]]] = {
    "English": ("locomo", "memorybank-en", "madial-en", "beam-128k", "xquad-en"),
    "Chinese": ("memorybank-zh", "madial-zh", "xquad-zh", "cmrc2018"),
}
_END: Final[dict[Language, str]] = {
    "English": r"(?<=[.!?])\s+|\n+",
    "Chinese": r"(?<=[。！？])|\n+",
}
_SHORTEST: Final = 10
_MADE_SENTENCES: Final = 20_000
_MADE_WORDS: Final = 12
_STOP_SHARE: Final = 0.45
"""Of the words of a made sentence, as in English prose."""

_HAN_FIRST, _HAN_COUNT = 0x4E00, 3000
_ZIPF: Final = 1.3
_VOCABULARY: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Chunks of one language, and questions that part of them answer."""

    language: Language
    origin: str
    chunks: Sequence[str]
    questions: Sequence[str]


def texts_of(language: Language, size: int, *, folder: Path | None) -> Texts:
    """``size`` chunks of sentences drawn at random: of the evaluation sets, or of made ones.

    Each also has a word of its own, as a ticket or a name would be.

    Args:
        language: Of the sentences.
        size: Chunks.
        folder: The evaluation sets, if they are there.
    """
    rng = np.random.default_rng(20_251_130)
    names = [name for name in _SETS[language] if folder and is_there(folder, name)]
    if folder and names:
        sets = [read_set(folder, name) for name in names]
        pieces = (
            part for one in sets for text in one.memories for part in _parts(text.text, language)
        )
        sentences = list(dict.fromkeys(pieces))
        asked = [question.text for one in sets for question in one.questions]
        origin = f"sentences of {', '.join(names)}"
    else:
        # Somebody said those too.
        sentences = list(STOP_QUESTIONS[language])
        sentences += [_made_sentence(language, rng) for _ in range(_MADE_SENTENCES)]
        asked = [_made_sentence(language, rng) for _ in range(QUESTIONS)]
        origin = "made sentences"
    drawn = rng.integers(0, len(sentences), (size, _SENTENCES))
    chunks = [
        " ".join([*(sentences[place] for place in row), word(_VOCABULARY + number)])
        for number, row in enumerate(drawn.tolist())
    ]
    chosen = rng.permutation(len(asked))[:QUESTIONS]
    return Texts(
        language=language,
        origin=origin,
        chunks=chunks,
        questions=[asked[place] for place in chosen.tolist()],
    )


def _parts(text: str, language: Language) -> list[str]:
    return [part for part in re.split(_END[language], text) if len(part) >= _SHORTEST]


def _made_sentence(language: Language, rng: np.random.Generator) -> str:
    stop_words = sorted(ENGLISH_STOP_WORDS if language == "English" else CHINESE_STOP_WORDS)
    make: Callable[[int], str] = word if language == "English" else _han_word
    ranks = rng.zipf(_ZIPF, _MADE_WORDS) - 1
    stops = rng.random(_MADE_WORDS) < _STOP_SHARE
    words = [
        stop_words[rank % len(stop_words)] if stop else make(rank % _VOCABULARY)
        for rank, stop in zip(ranks.tolist(), stops.tolist(), strict=True)
    ]
    return f"{' '.join(words)}." if language == "English" else f"{''.join(words)}。"


def _han_word(number: int) -> str:
    """Two characters, the same for the same number."""
    return "".join(chr(_HAN_FIRST + number * step % _HAN_COUNT) for step in (7, 1_009))
