"""Tantivy, Elasticsearch and the BM25 over newer rows rank the same documents in the same way."""

import itertools
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from memory_tool.adapters.elasticsearch_connection import ElasticsearchConnection
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_keyword_index import ElasticsearchKeywordIndex
from memory_tool.adapters.elasticsearch_layout import KeywordLayout
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.adapters.tantivy_keyword_index import TantivyKeywordIndex
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.bm25 import CorpusStatistics, FieldParameters, best
from memory_tool.port_values import ChangeRow, ChunkTokens, KeywordQuery
from memory_tool.ports import KeywordView
from memory_tool.query import Candidate
from memory_tool.text.tokenise import tokenise
from scripts.evaluation.sets import is_there, read_set
from tests.contract.elasticsearch_pairs import PointerLog, access_of
from tests.contract.keyword_rows import STORE, NotedProgress, batch, chunk, row
from tests.integration.keyword_corpus import CHINESE, ENGLISH, TAGS, questions, sentences
from tests.services.elasticsearch import ElasticsearchServer

DOCUMENTS: Final = 3_000
QUESTIONS: Final = 300
PAGE: Final = 10
DEPTH: Final = 50
NEAR: Final = 1e-3
"""How far scores of the same document may be apart, as a share of the best one."""

CONTROLS: Final = 2
"""Documents that Tantivy counts beside the chunks: where these are few, common words look rarer."""

LANGUAGES: Final = {"chinese": [CHINESE], "english": [ENGLISH], "both": [CHINESE, ENGLISH]}
SETS: Final = ("madial-zh", "memorybank-en")


def rows_of(texts: Sequence[str]) -> list[ChangeRow]:
    """A memory of one chunk for each text; two in three have tags."""
    rng = random.Random(3)
    return [
        row(
            number,
            chunk(" ".join(tokens.words), " ".join(tokens.bigrams)),
            extra=" ".join(rng.sample(TAGS, rng.randint(0, 2))),
        )
        for number, tokens in enumerate(map(tokenise, texts))
    ]


def query_of(text: str) -> KeywordQuery:
    """The question as the read path asks it."""
    tokens = tokenise(text)
    return KeywordQuery(
        words=tuple(dict.fromkeys(tokens.words)), bigrams=tuple(dict.fromkeys(tokens.bigrams))
    )


def with_elasticsearch(
    server: ElasticsearchServer,
    prefix: str,
    *,
    rows: Sequence[ChangeRow],
    parameters: Sequence[str] = (),
) -> KeywordView:
    """The rows in an Elasticsearch index of one shard."""
    connection = ElasticsearchConnection(access_of(server))
    generations = Generations(connection, family=f"{prefix}-keyword", copies=Copies(replicas=0))
    layout = KeywordLayout(tokeniser=1, parameters=FieldParameters.parsed(parameters))
    log = PointerLog()
    target = ElasticsearchTarget(generations, name="elasticsearch", layout=layout, log=log)
    target.apply(batch(rows, {1: 1}, mark="a", base_mark=None), log)
    index = ElasticsearchKeywordIndex(
        generations, target="elasticsearch", store=STORE, layout=layout
    )
    return index.view(log.pointer("elasticsearch"))


def with_tantivy(folder: Path, rows: Sequence[ChangeRow]) -> KeywordView:
    """The rows in a Tantivy index."""
    target = TantivyTarget(folder, name="tantivy", tokeniser=1)
    target.apply(batch(rows, {1: 1}, mark="a", base_mark=None), NotedProgress())
    target.close()
    return TantivyKeywordIndex(folder, target="tantivy", tokeniser=1).view()


@dataclass(slots=True)
class Comparison:
    """How many questions got the same page from both, and scores that were too far apart."""

    near: float = NEAR
    same: int = 0
    asked: int = 0
    apart: int = 0

    def add(self, ours: Sequence[Candidate], theirs: Sequence[Candidate]) -> None:
        """Count one question."""
        scores, others = _by_place(ours), _by_place(theirs)
        near = self.near * max([*scores.values(), *others.values()], default=0.0)
        both = scores.keys() & others.keys()
        self.apart += sum(abs(scores[place] - others[place]) > near for place in both)
        cut = theirs[:PAGE][-1].score if theirs else 0.0
        only_one = {*_by_place(ours[:PAGE])} ^ {*_by_place(theirs[:PAGE])}
        # A document at the cut may be on either page.
        tied = all(
            abs(found.get(place, cut) - cut) <= near
            for place, found in itertools.product(only_one, (scores, others))
        )
        self.same += tied
        self.asked += 1


def _by_place(found: Sequence[Candidate]) -> dict[tuple[str, int], float]:
    return {(hit.memory_id, hit.ordinal): hit.score for hit in found}


def compared(
    ours: KeywordView, theirs: KeywordView, *, asked: Sequence[str], documents: int
) -> Comparison:
    """Both asked the same."""
    comparison = Comparison(near=max(NEAR, 4 * CONTROLS / documents))
    for query in map(query_of, asked):
        pages = [view.search(query, [1], depth=DEPTH) for view in (ours, theirs)]
        comparison.add(*pages)
    return comparison


@pytest.mark.parametrize("languages", LANGUAGES)
def test_tantivy_and_elasticsearch_rank_alike(
    languages: str, elasticsearch: ElasticsearchServer, index_prefix: str, tmp_path: Path
) -> None:
    """Who moves from a laptop to servers finds what was found before."""
    words = LANGUAGES[languages]
    rows = rows_of(sentences(DOCUMENTS, seed=1, languages=words))
    ours = with_elasticsearch(elasticsearch, index_prefix, rows=rows)
    theirs = with_tantivy(tmp_path, rows)
    asked = questions(QUESTIONS, seed=2, languages=words)
    comparison = compared(ours, theirs, asked=asked, documents=DOCUMENTS)
    assert comparison.asked == QUESTIONS
    assert comparison.same >= 0.99 * QUESTIONS
    assert comparison.apart == 0


@pytest.fixture(params=SETS)
def real_set(request: pytest.FixtureRequest) -> tuple[list[str], list[str]]:
    """Texts and questions of an evaluation set."""
    name, folder = request.param, os.environ.get("THREEFOLD_EVALUATION_DATA", "")
    if not folder or not is_there(Path(folder), name):
        pytest.skip("THREEFOLD_EVALUATION_DATA does not name the sets")
    found = read_set(Path(folder), name)
    return (
        [memory.text for memory in found.memories],
        [question.text for question in found.questions][:QUESTIONS],
    )


def test_they_rank_real_texts_alike(
    real_set: tuple[list[str], list[str]],
    elasticsearch: ElasticsearchServer,
    index_prefix: str,
    tmp_path: Path,
) -> None:
    """Real sentences have what made ones lack: numbers, names, lengths of all kinds."""
    texts, asked = real_set
    rows = rows_of(texts)
    ours = with_elasticsearch(elasticsearch, index_prefix, rows=rows)
    theirs = with_tantivy(tmp_path, rows)
    comparison = compared(ours, theirs, asked=asked, documents=len(rows))
    assert comparison.same >= 0.99 * comparison.asked
    assert comparison.apart == 0


@pytest.mark.parametrize("parameters", [(), ("words:0.9:0.4", "bigrams:2:0", "extra:0.5:1")])
def test_rows_that_are_newer_score_as_if_they_were_in_elasticsearch(
    parameters: tuple[str, ...], elasticsearch: ElasticsearchServer, index_prefix: str
) -> None:
    """They are ranked among its hits: on another scale they would always win, or never."""
    words = LANGUAGES["both"]
    rows = rows_of(sentences(DOCUMENTS, seed=1, languages=words))
    view = with_elasticsearch(elasticsearch, index_prefix, rows=rows, parameters=parameters)
    newer = [
        ChunkTokens(
            ns_id=1,
            memory_id=each.memory_id,
            ordinal=0,
            keyword_nseq=each.version,
            words=each.chunks[0].words,
            bigrams=each.chunks[0].bigrams,
            extra=each.extra,
        )
        for each in rows
    ]
    comparison = Comparison()
    for query in map(query_of, questions(30, seed=2, languages=words)):
        statistics = CorpusStatistics.counted(query, newer)
        ours = best(
            query,
            newer,
            statistics=statistics,
            depth=DEPTH,
            parameters=FieldParameters.parsed(parameters),
        )
        comparison.add(ours, view.search(query, [1], depth=DEPTH))
    assert (comparison.same, comparison.apart) == (30, 0)
