"""BM25 over stored tokens: for rows that no keyword index holds yet, and for stores without one.

The same formula as Tantivy's and Lucene's, so that scores of a row are comparable whether an index
or this module made them: for each query term of a field

    idf = ln(1 + (N - n + 0.5) / (n + 0.5))
    score = weight * idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b * length / average length))

where N counts the documents, n those that hold the term, tf its occurrences in this one. As in
those engines, the length of a field is rounded down to what fits into one byte.

A field without tokens counts as one of length 1, and every index holds :data:`NOTHING` in it.
Otherwise Lucene would leave its document out of N and of the average, Tantivy would count it in
both as 0: the two would rank differently where only some memories are Chinese, and one tag of a
memory would weigh the less the fewer others have tags.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeAlias

from memory_tool.errors import SettingsError
from memory_tool.port_values import ChunkTokens, KeywordQuery
from memory_tool.query import Candidate

Field: TypeAlias = Literal["words", "bigrams", "extra"]
FIELDS: Final[tuple[Field, ...]] = ("words", "bigrams", "extra")

NOTHING: Final = "\N{EMPTY SET}"
"""The token of an empty field in an index. The tokeniser makes no such word: nobody asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Parameters:
    """The two knobs of BM25.

    Attributes:
        k1: How slowly repetitions saturate. With 1.2, in a field of average length, a term that
            occurs once counts 1.0 times its idf, twice 1.375, very often at most 2.2.
        b: How much a long field is held back. With 0.75, a single occurrence in a field of twice
            the average length counts 0.71 times its idf; with 0 the length is ignored.

    The values are those of Lucene and Elasticsearch, and the only ones that Tantivy has: change
    them only together with those of the index, or rows of both stop being comparable.
    """

    k1: float = 1.2
    b: float = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWeights:
    """How much a match counts in each field; a field of weight 0 is not searched.

    Attributes:
        words: The text itself. 1 keeps plain BM25, and 2 would only double the other two.
        bigrams: Pairs of neighbouring Chinese characters, which find what the segmentation of text
            or question cut otherwise. With 0.3 a pair counts 0.3 times what a word as rare counts.
            Measured on four Chinese sets with weights 0, 0.3 and 1, NDCG@10 was .703 .701 .690,
            .489 .514 .516, .987 .991 .991 and .976 .981 .980, flat between 0.2 and 0.5; English
            lost up to .002 at 0.3 and .02 at 1. Measure again when the tokeniser's bigrams change.
        extra: Tags, source and metadata strings, in which the words of the question are looked
            for. A tag is short, so at 0.3 it is about a third of a word of the text, at 1 it would
            rank above it. Not measured, as no set has tags: change it when one has.
    """

    words: float = 1.0
    bigrams: float = 0.3
    extra: float = 0.3

    def by_field(self) -> Mapping[Field, float]:
        """The weights, by the name of the field."""
        return {"words": self.words, "bigrams": self.bigrams, "extra": self.extra}


DEFAULT_PARAMETERS: Final = Bm25Parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldParameters:
    """The knobs of each field. An index and the BM25 over newer rows have to have the same."""

    words: Bm25Parameters = DEFAULT_PARAMETERS
    bigrams: Bm25Parameters = DEFAULT_PARAMETERS
    extra: Bm25Parameters = DEFAULT_PARAMETERS

    def by_field(self) -> Mapping[Field, Bm25Parameters]:
        """The knobs, by the name of the field."""
        return {"words": self.words, "bigrams": self.bigrams, "extra": self.extra}

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> "FieldParameters":
        """From texts such as ``words:0.9:0.4``: field, k1, b.

        Raises:
            SettingsError: One of them is no such text.
        """
        knobs: dict[str, Bm25Parameters] = {}
        for text in texts:
            name, _, numbers = text.partition(":")
            try:
                k1, b = map(float, numbers.split(":"))
            except ValueError:
                k1 = b = math.nan
            # A comparison that NaN fails too.
            if name not in FIELDS or not (k1 >= 0 and 0 <= b <= 1):
                message = (
                    f"elasticsearch_bm25: {text!r} is not field:k1:b with a field of"
                    f" {', '.join(FIELDS)}, k1 from 0 on and b from 0 to 1"
                )
                raise SettingsError(message)
            knobs[name] = Bm25Parameters(k1=k1, b=b)
        return cls(**knobs)


DEFAULT_FIELD_PARAMETERS: Final = FieldParameters()
DEFAULT_WEIGHTS: Final = FieldWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStatistics:
    """What BM25 knows of all documents.

    Attributes:
        documents: How many there are.
        average_length: Mean number of tokens of each field, over all documents.
        document_frequency: For each field, how many documents hold a term; absent means none.
    """

    documents: int
    average_length: Mapping[Field, float]
    document_frequency: Mapping[Field, Mapping[str, int]]

    @classmethod
    def counted(cls, query: KeywordQuery, documents: Sequence[ChunkTokens]) -> "CorpusStatistics":
        """The statistics of exactly these documents, as far as ``query`` needs them."""
        terms = _terms(query)
        return cls(
            documents=len(documents),
            average_length={field: _average_length(documents, field) for field in FIELDS},
            document_frequency={
                field: Counter(
                    chain.from_iterable(
                        terms[field].intersection(_tokens(document, field))
                        for document in documents
                    )
                )
                for field in FIELDS
            },
        )

    @classmethod
    def recorded(
        cls,
        query: KeywordQuery,
        documents: Sequence[ChunkTokens],
        *,
        term_documents: Mapping[str, int],
    ) -> "CorpusStatistics":
        """The statistics that a store recorded, completed by the documents at hand.

        Args:
            query: Its terms are the ones that count.
            documents: They give the average lengths, which no store records, and the counts of
                what is newer than the record.
            term_documents: As :meth:`~memory_tool.ports.TokenSearch.term_documents` returns it:
                one count for all fields, and the number of documents under ``""``.
        """
        at_hand = cls.counted(query, documents)
        return cls(
            documents=max(term_documents.get("", 0), at_hand.documents),
            average_length=at_hand.average_length,
            document_frequency={
                field: {
                    term: max(
                        term_documents.get(term, 0), at_hand.document_frequency[field].get(term, 0)
                    )
                    for term in terms
                }
                for field, terms in _terms(query).items()
            },
        )

    def beside(
        self, query: KeywordQuery, term_documents: Mapping[str, int], *, documents: int
    ) -> "CorpusStatistics":
        """These documents counted together with others.

        Args:
            query: Its terms are the ones that count.
            term_documents: How many of the others hold each term.
            documents: How many there are of both.
        """
        return CorpusStatistics(
            documents=documents,
            average_length=self.average_length,
            document_frequency={
                field: {
                    term: self.document_frequency[field].get(term, 0) + term_documents.get(term, 0)
                    for term in terms
                }
                for field, terms in _terms(query).items()
            },
        )


def scores(
    query: KeywordQuery,
    documents: Iterable[ChunkTokens],
    *,
    statistics: CorpusStatistics,
    parameters: FieldParameters = DEFAULT_FIELD_PARAMETERS,
    weights: FieldWeights = DEFAULT_WEIGHTS,
) -> tuple[float, ...]:
    """The score of each document, in their order; 0 for one that holds no term of the query."""
    searches = _searches(query, statistics=statistics, parameters=parameters, weights=weights)
    return tuple(sum(search.score(document) for search in searches) for document in documents)


def best(
    query: KeywordQuery,
    documents: Sequence[ChunkTokens],
    *,
    statistics: CorpusStatistics,
    depth: int,
    parameters: FieldParameters = DEFAULT_FIELD_PARAMETERS,
    weights: FieldWeights = DEFAULT_WEIGHTS,
) -> tuple[Candidate, ...]:
    """The ``depth`` best documents that hold a term of the query, best first."""
    results = scores(
        query, documents, statistics=statistics, parameters=parameters, weights=weights
    )
    return best_first(
        Candidate(
            ns_id=document.ns_id,
            memory_id=document.memory_id,
            ordinal=document.ordinal,
            version=document.keyword_nseq,
            score=score,
        )
        for document, score in zip(documents, results, strict=True)
        if score > 0
    )[: max(depth, 0)]


def most_possible(
    terms: Iterable[str],
    *,
    statistics: CorpusStatistics,
    parameters: FieldParameters = DEFAULT_FIELD_PARAMETERS,
    weights: FieldWeights = DEFAULT_WEIGHTS,
) -> float:
    """A score that no document reaches which holds no other term of the query than these.

    However often a term occurs, it counts at most k1 + 1 times its idf.
    """
    weight_of, knobs = weights.by_field(), parameters.by_field()
    return sum(
        weight_of[field] * (knobs[field].k1 + 1) * _idf(term, field, statistics=statistics)
        for term in terms
        for field in FIELDS
        if term in statistics.document_frequency[field]
    )


def best_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The order of every keyword search: by score, and equal scores by id and ordinal."""
    return tuple(
        sorted(candidates, key=lambda found: (-found.score, found.memory_id, found.ordinal))
    )


def byte_length(length: int) -> int:
    """``length`` as it survives in one byte: exact to 40, then the top four bits above 24.

    41 becomes 40, 100 becomes 96, 1,000 becomes 984: Lucene's ``SmallFloat.byte4ToInt``, which
    Tantivy's table repeats.
    """
    above = max(length - 24, 0)
    shift = max(above.bit_length() - 4, 0)
    return length - above + (above >> shift << shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FieldSearch:
    """The part of a query that one field answers, with all that is the same for each document."""

    field: Field
    term_weights: Mapping[str, float]
    flat: float
    per_token: float

    def score(self, document: ChunkTokens) -> float:
        tokens = _tokens(document, self.field)
        # Most documents hold no term: asking for all terms at once is what makes them cheap.
        held = self.term_weights.keys() & tokens
        if not held:
            return 0.0
        norm = self.flat + self.per_token * byte_length(len(tokens))
        counts = ((self.term_weights[term], tokens.count(term)) for term in held)
        return sum(weight * count / (count + norm) for weight, count in counts)


def _searches(
    query: KeywordQuery,
    *,
    statistics: CorpusStatistics,
    parameters: FieldParameters,
    weights: FieldWeights,
) -> tuple[_FieldSearch, ...]:
    weight_of = weights.by_field()
    knobs = parameters.by_field()
    return tuple(
        _FieldSearch(
            field=field,
            term_weights={
                term: weight_of[field]
                * (knobs[field].k1 + 1)
                * _idf(term, field, statistics=statistics)
                for term in terms
            },
            flat=knobs[field].k1 * (1 - knobs[field].b),
            # Without documents nothing matches, so any length will do.
            per_token=knobs[field].k1 * knobs[field].b / (statistics.average_length[field] or 1.0),
        )
        for field, terms in _terms(query).items()
        if terms
    )


def _terms(query: KeywordQuery) -> Mapping[Field, frozenset[str]]:
    words = frozenset(query.words)
    return {"words": words, "bigrams": frozenset(query.bigrams), "extra": words}


def _idf(term: str, field: Field, *, statistics: CorpusStatistics) -> float:
    holding = statistics.document_frequency[field].get(term, 0)
    # Recorded counts may be older than the number of documents, and must not turn a weight round.
    others = max(statistics.documents - holding, 0)
    return math.log(1 + (others + 0.5) / (holding + 0.5))


def _tokens(document: ChunkTokens, field: Field) -> Sequence[str]:
    text: str = getattr(document, field)
    return text.split(" ")


def _average_length(documents: Sequence[ChunkTokens], field: Field) -> float:
    texts: list[str] = [getattr(document, field) for document in documents]
    return sum(text.count(" ") + 1 for text in texts) / max(len(texts), 1)
