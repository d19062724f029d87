"""A keyword index with its stop words left out, and with them: size and latency.

Three indexes of the same chunks. "Pruned" is what the product writes. "With stop words" has them in
the field of words, so that its field of bigrams needs no pairs of English ones. "Without rare
words" lacks what stands in one chunk alone: the difference is what rare words take.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import rjieba

from memory_tool.model import Chunk
from memory_tool.port_values import ChangeRow, KeywordQuery
from memory_tool.text.normalise import compatibility_form, lower_simplified
from memory_tool.text.stop_words import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS
from memory_tool.text.tokenise import Tokens, tokenise
from scripts.benchmark.pruning_indexes import (
    ElasticsearchBench,
    KeywordBench,
    SearchedIndex,
    TantivyBench,
)
from scripts.benchmark.pruning_texts import LANGUAGES, STOP_QUESTIONS, Texts, texts_of
from scripts.benchmark.rows import Row, median_of, seconds_of

DEPTH: Final = 100
ROUNDS: Final = 3
Variant: TypeAlias = Literal["pruned", "with stop words", "without rare words"]
VARIANTS: Final[tuple[Variant, ...]] = ("pruned", "with stop words", "without rare words")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokenised:
    """Chunks of one language as each variant indexes them."""

    texts: Texts
    rare: frozenset[str]

    @classmethod
    def of(cls, texts: Texts) -> "_Tokenised":
        """Find the rare words."""
        counts = Counter(word for text in texts.chunks for word in set(tokenise(text).words))
        return cls(texts=texts, rare=frozenset(one for one, count in counts.items() if count == 1))

    def rows(self, variant: Variant) -> Iterator[ChangeRow]:
        """The chunks, each a memory of its own."""
        # Kept, the tokens of 100,000 chunks would take a gigabyte.
        for place, text in enumerate(self.texts.chunks):
            yield _row(place, self._varied(text, tokenise(text), variant=variant))

    def questions(self, variant: Variant) -> list[KeywordQuery]:
        """The questions as the variant needs them asked."""
        return [
            _query(self._varied(text, tokenise(text), variant=variant))
            for text in self.texts.questions
        ]

    def _varied(self, text: str, tokens: Tokens, *, variant: Variant) -> Tokens:
        if variant == "with stop words":
            return with_stop_words(text, tokens)
        if variant == "without rare words":
            return replace(tokens, words=tuple(one for one in tokens.words if one not in self.rare))
        return tokens


def with_stop_words(text: str, tokens: Tokens) -> Tokens:
    """The tokens of a text as if no word were a stop word."""
    normalised = lower_simplified(compatibility_form(text))
    stop_words = [
        word
        for word in rjieba.cut_for_search(normalised)
        if word in CHINESE_STOP_WORDS or word in ENGLISH_STOP_WORDS
    ]
    pairs = tuple(pair for pair in tokens.bigrams if "_" not in pair)
    return Tokens(words=(*tokens.words, *stop_words), bigrams=pairs)


def _row(place: int, tokens: Tokens) -> ChangeRow:
    chunk = Chunk(
        ordinal=0,
        start=0,
        stop=1,
        language="",
        words=" ".join(tokens.words),
        bigrams=" ".join(tokens.bigrams),
    )
    return ChangeRow(
        ns_id=1,
        memory_id=hashlib.blake2b(str(place).encode(), digest_size=16).hexdigest(),
        nseq=place + 1,
        version=place + 1,
        live=True,
        extra="",
        chunk_high=1,
        chunks=(chunk,),
    )


def _query(tokens: Tokens) -> KeywordQuery:
    return KeywordQuery(
        words=tuple(dict.fromkeys(tokens.words)), bigrams=tuple(dict.fromkeys(tokens.bigrams))
    )


def measure_pruning(
    size: int, folder: Path, *, url: str, real: Path | None, say: Callable[[str], None]
) -> list[Row]:
    """Both languages in Tantivy, and in the Elasticsearch at ``url`` if there is one.

    Args:
        size: Chunks of each language.
        folder: An empty folder to work in.
        url: The address; empty for none.
        real: The folder of the evaluation sets, if there is one.
        say: Told what is being measured.
    """
    benches: list[KeywordBench] = [TantivyBench(folder)]
    if url:
        benches.append(ElasticsearchBench(url))
    else:
        say("no Elasticsearch: THREEFOLD_TEST_ELASTICSEARCH_URL names none")
    rows: list[Row] = []
    for language in LANGUAGES:
        texts = texts_of(language, size, folder=real)
        say(f"{language}: {size:,} chunks of {texts.origin}")
        tokenised = _Tokenised.of(texts)
        for bench in benches:
            say(f"{language}: {bench.name}")
            for row in _compared(tokenised, bench):
                say(f"  {row.what}: {row.value:.2f} {row.unit} ({row.against or 'alone'})")
                rows.append(row)
    return rows


def _compared(tokenised: _Tokenised, bench: KeywordBench) -> list[Row]:
    of = f"{bench.name}, {tokenised.texts.language}"
    with ExitStack() as indexes:
        pruned, stopped, common = (
            indexes.enter_context(closing(bench.filled(tokenised.rows(variant))))
            for variant in VARIANTS
        )
        ours, theirs = _in_turn(
            (pruned, tokenised.questions("pruned")),
            (stopped, tokenised.questions("with stop words")),
        )
        rare = (pruned.size - common.size) / max(len(tokenised.rare), 1)
        found = _found(pruned, STOP_QUESTIONS[tokenised.texts.language])
    against = "with stop words"
    return [
        Row(
            what=f"{of}: size",
            value=pruned.size / 1e6,
            unit="MB",
            against=f"{against}: {stopped.size / 1e6:.1f} MB",
            ratio=pruned.size / stopped.size,
        ),
        Row(
            what=f"{of}: search",
            value=ours * 1000,
            unit="ms p50",
            against=f"{against}: {theirs * 1000:.2f} ms",
            ratio=ours / theirs,
        ),
        Row(
            what=f"{of}: a word of one chunk",
            value=rare,
            unit=f"bytes, {len(tokenised.rare):,} words",
        ),
        Row(what=f"{of}: found by stop words alone", value=found, unit="share of questions"),
    ]


def _in_turn(*asked: tuple[SearchedIndex, Sequence[KeywordQuery]]) -> list[float]:
    """The median seconds of each, question by question: a busy moment hits all."""
    calls = [[partial(index.search, query, DEPTH) for query in queries] for index, queries in asked]
    taken: list[list[float]] = [[] for _ in asked]
    for _ in range(ROUNDS):
        for turn in zip(*calls, strict=True):
            for seconds, second in zip(taken, seconds_of(turn), strict=True):
                seconds.append(second)
    return [median_of(seconds) for seconds in taken]


def _found(index: SearchedIndex, questions: Sequence[str]) -> float:
    asked = [_query(tokenise(question)) for question in questions]
    if any(query.words for query in asked):
        message = "a question of stop words has other words"
        raise ValueError(message)
    return sum(index.search(query, DEPTH) > 0 for query in asked) / len(asked)
