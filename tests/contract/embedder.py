"""What every embedder has to do."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory_tool.model import Vector
from memory_tool.ports import Embedder

TEXTS = (
    "张先生喜欢蓝色系的产品。",
    "Alice moved to Berlin in March 2025 and works at 42 Main St.",
    "  两端有空格\tand\n\nnew lines  ",
    "Mixed 中英文 text, “quotes”, ｆｕｌｌｗｉｄｔｈ，１２３ and ½ ㍿ ﷺ.",
    "👩‍👩‍👧‍👦 said 😀😀 to 🇨🇳",
    "e\u0301te\u0301, naïve, Ελληνικά, עברית, ไทย",
    "control\x07 and\u200bzero width\ufeff and ▁ underscores ▁▁",
    "<s> </s> [CLS] [SEP] <|endoftext|> query: passage: ",
    "https://example.com/picture.png",
    "好",
    "-",
)
LONG_TEXT = "每次会议之后，the notes were sent to 47 people. " * 45
"""More tokens than any small model reads at once."""


def check_unit_rows(rows: Vector, *, count: int, dimension: int) -> None:
    """Hold ``rows`` against what the port promises of vectors."""
    assert rows.dtype == np.float32
    assert rows.shape == (count, dimension)
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(count), abs=1e-5)


class EmbedderContract:
    """Subclass it for an adapter and override ``embedder``."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError

    def test_it_names_its_space(self, embedder: Embedder) -> None:
        """A store compares the space with the recorded one: it has to stay the same."""
        space = embedder.space
        assert space.model
        assert space.dimension > 0
        assert space.normalised
        assert embedder.space == space

    def test_every_text_gets_a_unit_vector(self, embedder: Embedder) -> None:
        """Indexes take inner products for cosines, which is only true of unit vectors."""
        dimension = embedder.space.dimension
        for rows in (embedder.embed_passages(TEXTS), embedder.embed_queries(TEXTS)):
            check_unit_rows(rows, count=len(TEXTS), dimension=dimension)

    def test_no_text_gives_no_rows(self, embedder: Embedder) -> None:
        """An empty group commit and a conversation of skipped messages are ordinary calls."""
        dimension = embedder.space.dimension
        check_unit_rows(embedder.embed_passages([]), count=0, dimension=dimension)
        check_unit_rows(embedder.embed_queries([]), count=0, dimension=dimension)

    def test_the_same_text_gives_the_same_vector(self, embedder: Embedder) -> None:
        """Otherwise a repeated search could rank differently."""
        first = embedder.embed_passages(TEXTS[:3])
        assert np.array_equal(embedder.embed_passages(TEXTS[:3]), first)

    def test_rows_follow_their_texts(self, embedder: Embedder) -> None:
        """A vector on the wrong memory is found by nobody; batches are where rows get mixed."""
        texts = [f"{text} {number}" for number in range(6) for text in TEXTS[:6]]
        rows = embedder.embed_passages(texts)
        for number in (0, 7, 31, 32, 35):
            alone = embedder.embed_passages([texts[number]])[0]
            assert rows[number] == pytest.approx(alone, abs=1e-4)

    def test_different_texts_get_different_vectors(self, embedder: Embedder) -> None:
        """A model that ignores its input would pass every other test here."""
        rows = embedder.embed_passages(TEXTS[:2])
        assert float(rows[0] @ rows[1]) < 0.999

    def test_questions_carry_the_query_prefix(self, embedder: Embedder) -> None:
        """Models such as e5 lose recall when a question is embedded as a passage."""
        space = embedder.space
        question, passage = embedder.embed_queries(TEXTS[:1]), embedder.embed_passages(TEXTS[:1])
        assert np.array_equal(question, passage) == (space.query_prefix == space.passage_prefix)

    def test_a_text_beyond_the_model_still_has_a_vector(self, embedder: Embedder) -> None:
        """Chunks of guessed tokens and long questions may be longer than the model reads."""
        dimension = embedder.space.dimension
        check_unit_rows(embedder.embed_passages([LONG_TEXT]), count=1, dimension=dimension)
        check_unit_rows(embedder.embed_queries([LONG_TEXT]), count=1, dimension=dimension)

    def test_results_belong_to_the_caller(self, embedder: Embedder) -> None:
        """A caller that scales its vectors in place must not scale those of the next one."""
        expected = embedder.embed_queries(TEXTS[:1]).copy()
        for _ in range(2):
            rows = embedder.embed_queries(TEXTS[:1])
            assert np.array_equal(rows, expected)
            rows *= 0

    def test_threads_get_the_vectors_of_their_texts(self, embedder: Embedder) -> None:
        """The write path and several searches embed at the same time."""
        texts = TEXTS[:8]
        expected = [embedder.embed_passages([text]) for text in texts]
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda text: embedder.embed_passages([text]), texts))
            spans = list(pool.map(embedder.token_spans, texts))
        for row, alone in zip(rows, expected, strict=True):
            assert row == pytest.approx(alone, abs=1e-4)
        assert spans == [embedder.token_spans(text) for text in texts]

    @pytest.mark.parametrize("text", [*TEXTS, LONG_TEXT, "", " \n\t"])
    def test_token_spans_cover_the_text_in_order(self, embedder: Embedder, text: str) -> None:
        """Chunks are cut between spans: a gap would lose text, an overlap would double it."""
        end = 0
        for start, stop in embedder.token_spans(text):
            assert end <= start < stop <= len(text)
            assert not text[end:start].strip()
            end = stop
        assert not text[end:].strip()

    def test_a_long_text_has_many_tokens(self, embedder: Embedder) -> None:
        """One span for a whole text would satisfy the rule above and prevent chunking."""
        assert len(embedder.token_spans(LONG_TEXT)) > embedder.max_tokens // 20 > 0
        longest = max(stop - start for start, stop in embedder.token_spans(LONG_TEXT))
        assert longest <= 16
