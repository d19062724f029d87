"""BM25 in Python agrees with the engines that index the same tokens."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tantivy import (
    Document,
    Index,
    Occur,
    Query,
    SchemaBuilder,
    TextAnalyzerBuilder,
    Tokenizer,
)

from memory_tool.bm25 import (
    FIELDS,
    NOTHING,
    Bm25Parameters,
    CorpusStatistics,
    FieldParameters,
    FieldWeights,
    best,
    byte_length,
    scores,
)
from memory_tool.port_values import ChunkTokens, KeywordQuery

WORDS = ("营收", "季度", "绿茶", "tea", "coffee", "spring.datasource", *map(str, range(200)))
BIGRAMS = ("营收", "收增", "绿茶", *(f"b{n}" for n in range(100)))
TAGS = ("tea", "营收", "work", "home", "notes")


def document(
    number: int = 0, words: str = "", *, bigrams: str = "", extra: str = "", ordinal: int = 0
) -> ChunkTokens:
    """A chunk of these tokens."""
    return ChunkTokens(
        ns_id=1,
        memory_id=f"{number:032x}",
        ordinal=ordinal,
        keyword_nseq=number + 1,
        words=words,
        bigrams=bigrams,
        extra=extra,
    )


def made_documents(count: int) -> list[ChunkTokens]:
    """Chinese and English chunks of 1 to 400 tokens; some without bigrams, some without tags."""
    random_ = random.Random(7)

    def some(terms: tuple[str, ...], count: int) -> str:
        weights = [1 / rank for rank in range(1, len(terms) + 1)]
        return " ".join(random_.choices(terms, weights, k=count))

    return [
        document(
            number,
            some(WORDS, random_.randint(1, random_.choice((5, 40, 400)))),
            bigrams=some(BIGRAMS, random_.randint(0, 60)) if number % 3 else "",
            extra=some(TAGS, random_.randint(0, 3)),
        )
        for number in range(count)
    ]


class TantivyScores:
    """The scores that a real Tantivy gives to the same documents."""

    def __init__(self, folder: Path, documents: list[ChunkTokens]) -> None:
        """Index the documents in ``folder``."""
        builder = SchemaBuilder().add_unsigned_field("number", fast=True)
        for field in FIELDS:
            builder.add_text_field(field, tokenizer_name="blanks", index_option="freq")
        self._schema = builder.build()
        index = Index(self._schema, str(folder))
        index.register_tokenizer("blanks", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
        writer = index.writer(15_000_000, num_threads=1)
        for number, made in enumerate(documents):
            fields = {field: getattr(made, field) or NOTHING for field in FIELDS}
            writer.add_document(Document.from_dict({"number": number, **fields}, self._schema))
        writer.commit()
        index.reload()
        self._searcher = index.searcher()
        self._count = len(documents)

    def of(self, query: KeywordQuery, weights: FieldWeights) -> list[float]:
        """The score of each document, 0 for those that Tantivy does not find."""
        asked = (
            ("words", query.words, weights.words),
            ("bigrams", query.bigrams, weights.bigrams),
            ("extra", query.words, weights.extra),
        )
        terms = [
            Query.boost_query(Query.term_query(self._schema, field, term, "freq"), weight)
            for field, terms, weight in asked
            for term in terms
        ]
        any_of = Query.boolean_query([(Occur.Should, term) for term in terms])
        hits = self._searcher.search(any_of, self._count).hits
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits])
        found = {number: float(score) for number, (score, _) in zip(numbers, hits, strict=True)}
        return [found.get(number, 0.0) for number in range(self._count)]


def test_scores_agree_with_tantivy(tmp_path: Path) -> None:
    """Rows in the index and rows of the overlay are ranked in one list."""
    documents = made_documents(300)
    tantivy = TantivyScores(tmp_path, documents)
    weights = FieldWeights(words=1.0, bigrams=0.4, extra=0.2)
    random_ = random.Random(8)
    for _ in range(60):
        query = KeywordQuery(
            words=tuple({*random_.sample(WORDS, 4), "tea"}),
            bigrams=tuple(random_.sample(BIGRAMS, 3)),
        )
        statistics = CorpusStatistics.counted(query, documents)
        ours = scores(query, documents, statistics=statistics, weights=weights)
        assert ours == pytest.approx(tantivy.of(query, weights), rel=1e-5)


@pytest.mark.parametrize(
    ("length", "kept"),
    [(0, 0), (1, 1), (40, 40), (41, 40), (42, 42), (55, 54), (57, 56), (1_000, 984)],
)
def test_a_length_is_rounded_down_to_what_a_byte_holds(length: int, kept: int) -> None:
    """A finer length than the engines' would rank a row by whether it is indexed yet."""
    assert byte_length(length) == kept


def test_all_lengths_fit_into_256_values() -> None:
    """The number of values and the largest one are those of the engines' tables."""
    # 24 values as they are, then steps of one, two, four and so on, eight of each size but 16 of
    # the first: a value is reached where its step begins.
    steps = {byte_length(24 + (top << shift)) for shift in range(28) for top in range(16)}
    assert len(steps | set(range(24))) == 256
    assert byte_length(2**31 - 1) == max(steps) == 2_013_265_944


def test_the_worked_values_of_the_parameters_hold() -> None:
    """The docstring of a constant is what an operator tunes by."""
    statistics = CorpusStatistics(
        documents=100,
        average_length={"words": 4.0, "bigrams": 0.0, "extra": 0.0},
        document_frequency={"words": {"tea": 3}, "bigrams": {}, "extra": {}},
    )
    query = KeywordQuery(words=("tea",), bigrams=())
    texts = ("tea a b c", "tea tea b c", "tea a b c d e f g")
    once, twice, long = scores(query, [document(0, text) for text in texts], statistics=statistics)
    assert twice / once == pytest.approx(1.375)
    assert long / once == pytest.approx(0.71, abs=0.001)
    (flat,) = scores(
        query,
        [document(0, texts[2])],
        statistics=statistics,
        parameters=FieldParameters(words=Bm25Parameters(b=0.0)),
    )
    assert flat == pytest.approx(once)


def test_a_tag_weighs_the_same_however_few_others_have_tags() -> None:
    """A field that is mostly empty must not make those that are not look long."""
    query = KeywordQuery(words=("tea",), bigrams=())
    weighed: list[float] = []
    for tagged in (100, 2):
        documents = [document(0, "x", extra="tea")] + [
            document(number, "x", extra="work" if number < tagged else "")
            for number in range(1, 100)
        ]
        statistics = CorpusStatistics.counted(query, documents)
        weighed += scores(query, documents[:1], statistics=statistics)
    assert weighed[0] == pytest.approx(weighed[1])


def test_the_best_come_first_and_others_not_at_all() -> None:
    """Equal scores are ordered by id and ordinal, as in every keyword search."""
    documents = [
        document(3, "tea", ordinal=1),
        document(9, "coffee"),
        document(3, "tea"),
        document(1, "tea"),
        document(2, "tea tea"),
    ]
    query = KeywordQuery(words=("tea",), bigrams=("茶",))
    statistics = CorpusStatistics.counted(query, documents)
    found = best(query, documents, statistics=statistics, depth=10)
    places = [(int(one.memory_id, 16), one.ordinal, one.version) for one in found]
    assert places == [(2, 0, 3), (1, 0, 2), (3, 0, 4), (3, 1, 4)]
    assert best(query, documents, statistics=statistics, depth=2) == found[:2]
    assert best(query, documents, statistics=statistics, depth=-1) == ()


def test_nothing_is_found_in_nothing() -> None:
    """A fresh store has neither documents nor statistics."""
    query = KeywordQuery(words=("tea",), bigrams=())
    statistics = CorpusStatistics.recorded(query, [], term_documents={})
    assert best(query, [], statistics=statistics, depth=10) == ()
    assert scores(query, [document(1, "tea")], statistics=statistics)[0] > 0


def test_recorded_counts_are_completed_by_what_is_newer() -> None:
    """The record is as old as the last rebuild; a word may have come up since."""
    documents = [
        document(1, "tea x", bigrams="茶叶", extra="shop"),
        document(2, "tea"),
        document(3, "x"),
    ]
    query = KeywordQuery(words=("tea", "x"), bigrams=("茶叶",))
    statistics = CorpusStatistics.recorded(query, documents, term_documents={"": 50, "x": 20})
    assert statistics.documents == 50
    assert statistics.document_frequency["words"] == {"tea": 2, "x": 20}
    assert statistics.document_frequency["extra"] == {"tea": 0, "x": 20}
    assert statistics.document_frequency["bigrams"] == {"茶叶": 1}
    assert statistics.average_length["words"] == pytest.approx(4 / 3)
    younger = CorpusStatistics.recorded(query, documents, term_documents={"": 2})
    assert younger.documents == 3


def test_counts_that_contradict_each_other_keep_scores_positive() -> None:
    """Documents and terms are counted at different moments; a word must never count against."""
    documents = [document(1, "tea")]
    query = KeywordQuery(words=("tea",), bigrams=())
    counted = CorpusStatistics.counted(query, documents)
    skewed = replace(counted, document_frequency={field: {"tea": 9} for field in FIELDS})
    assert scores(query, documents, statistics=skewed)[0] > 0
