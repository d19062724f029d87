"""Texts and questions as tokens: one function for both, so that they meet."""

import functools
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import rjieba
from snowballstemmer.english_stemmer import (  # type: ignore[import-untyped] # generated, no stubs
    EnglishStemmer,
)

from memory_tool.text.normalise import compatibility_form, lower_simplified
from memory_tool.text.numbers import numbers_of_normalised
from memory_tool.text.scripts import HAN, LATIN
from memory_tool.text.stop_words import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS

TOKENISER_VERSION: Final = 1
"""Stored beside every index; a change of any token asks for a rebuild."""

MAX_TOKEN_LENGTH: Final = 64
"""Characters of the longest token. Its use is to keep encoded blobs from filling the dictionary."""

_LETTER: Final = f"[0-9{LATIN}]"
# What may join letters into one compound: a dot, a path, an address, an apostrophe, underscores,
# and a comma if it groups thousands.
_JOINT: Final = r"(?:[.@/+\\'’-]|_+|,(?=[0-9]{3}(?![0-9]))(?<=[0-9],))"
_RUN: Final = re.compile(
    rf"{_LETTER}+(?:{_JOINT}{_LETTER}+)*|[{HAN}]+|[^\W_0-9{LATIN}{HAN}]+",
)
_NOT_INDEXED: Final = CHINESE_STOP_WORDS | {"\n"}
_HAN: Final = re.compile(f"[{HAN}]")
_PART: Final = re.compile(f"{_LETTER}+")
_AMOUNT: Final = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
_CLITIC: Final = re.compile(r"['’](?:s|m|d|ll|re|ve)$")
_NEGATED: Final = re.compile(r"[a-z]+n['’]t")

# The capital that begins a part: the S of maximumSize and PostgreSQL, the P of JSONParser. The I of
# APIs begins none.
_CAMEL_EDGE: Final = re.compile("[A-Z](?:(?<=[a-z].)|(?<=[A-Z0-9].)(?=[a-z]{2}))")
# Read after a NUL was put before each such capital.
_CAMEL_RUN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:\0[A-Za-z0-9]++)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What is indexed of a text, and asked for by a question.

    Attributes:
        words: Words, stems, compounds and numbers, for the main field. Repeats count.
        bigrams: Pairs of adjacent Chinese characters, and of adjacent English stop words, for a
            field of low weight. They find what was cut otherwise, and questions wholly of stop
            words.
    """

    words: tuple[str, ...]
    bigrams: tuple[str, ...]


def tokenise(text: str) -> Tokens:
    """Return the tokens of a text or of a question.

    Args:
        text: Any text, as the caller gave it: capitals tell where `maximumPoolSize` has parts.

    Returns:
        Tokens without white space, of 1 to `MAX_TOKEN_LENGTH` characters, in the order of the
        text within each kind: words with letters, Chinese words, parts of camel case, numbers.
    """
    folded = compatibility_form(text)
    normalised = lower_simplified(folded)
    words: list[str] = []
    bigrams: list[str] = []
    han_runs: list[str] = []
    stop_word_before = ""
    for run in _RUN.findall(normalised):
        if run in ENGLISH_STOP_WORDS:
            if stop_word_before:
                bigrams.append(f"{stop_word_before}_{run}")
            stop_word_before = run
            continue
        stop_word_before = ""
        if _HAN.match(run):
            han_runs.append(run)
            bigrams += map(operator.add, run, run[1:]) if len(run) > 1 else (run,)
        elif run.isalnum():
            words.append(_stem(run[:MAX_TOKEN_LENGTH]))
        else:
            words += _compound_words(run)
    if han_runs:
        words += _han_words(han_runs)
    if _CAMEL_EDGE.search(folded):
        words += _camel_parts(folded)
    words += numbers_of_normalised(normalised)
    return Tokens(words=tuple(words), bigrams=tuple(bigrams))


def _han_words(runs: Sequence[str]) -> list[str]:
    # One call for all runs, as a call for each costs 6 microseconds more in 200 characters; the
    # cutter never joins what a line break parts.
    cut = rjieba.cut_for_search("\n".join(runs))
    words = [word for word in cut if word not in _NOT_INDEXED]
    if max(map(len, runs)) > MAX_TOKEN_LENGTH:
        # A run of rare characters may come back in one piece.
        return [word[:MAX_TOKEN_LENGTH] for word in words]
    return words


def _compound_words(run: str) -> list[str]:
    """Return the words of letters and digits with joints between: the whole and its parts."""
    if _AMOUNT.fullmatch(run):
        return [run.replace(",", "")[:MAX_TOKEN_LENGTH]]
    if _NEGATED.fullmatch(run):
        return ["not"]
    whole = _CLITIC.sub("", run).replace("’", "'")
    parts = _words_of_parts(_PART.findall(whole))
    return parts if whole.isalnum() else [whole[:MAX_TOKEN_LENGTH], *parts]


def _camel_parts(folded: str) -> list[str]:
    marked = _CAMEL_EDGE.sub(r"\0\g<0>", folded)
    parts = "\0".join(_CAMEL_RUN.findall(marked)).lower().split("\0")
    return _words_of_parts(parts)


def _words_of_parts(parts: Iterable[str]) -> list[str]:
    return [_stem(part[:MAX_TOKEN_LENGTH]) for part in parts if part not in ENGLISH_STOP_WORDS]


# 32,768 entries of at most 64 characters take about 8 MB and hold the vocabulary of a language: a
# stem costs 27 microseconds, a look-up 0.1.
@functools.lru_cache(maxsize=32_768)
def _stem(word: str) -> str:
    # A stemmer works on fields of its own, so threads can't share one; making one costs 0.2
    # microseconds.
    stem: str = EnglishStemmer().stemWord(word)
    return stem
