"""Spans of tokens: guessed, and made to cover a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tool.token_spans import Span, approximate_spans, covering_spans


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("international", ["inte", "rnat", "iona", "l"]),
        ("2025-07", ["202", "5", "-", "07"]),
        ("张先生 likes", ["张", "先", "生", "like", "s"]),
        ("naïve😀", ["na", "ï", "ve", "😀"]),
        (" \n\t", []),
    ],
)
def test_a_guess_has_at_least_the_tokens_of_common_vocabularies(
    text: str, pieces: list[str]
) -> None:
    """Too few would make chunks that a model cuts."""
    assert [text[start:stop] for start, stop in approximate_spans(text)] == pieces


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("ab cd", [(0, 2), (3, 5)], [(0, 2), (3, 5)]),
        ("ab cd", [(0, 2), (2, 5)], [(0, 2), (2, 5)]),
        ("😀b", [(0, 1), (0, 1), (0, 2)], [(0, 1), (1, 2)]),
        ("abc", [(1, 2)], [(0, 3)]),
        (" \x07 a\x07 ", [(3, 4)], [(1, 5)]),
        (" \x07 ", [], [(1, 2)]),
        ("ab", [(0, 0), (0, 2), (2, 2)], [(0, 2)]),
        ("  ", [], []),
        ("", [], []),
    ],
)
def test_overlaps_and_gaps_are_mended(text: str, spans: list[Span], expected: list[Span]) -> None:
    """Tokenizers drop control characters and cut an emoji into several tokens."""
    assert list(covering_spans(text, spans)) == expected


@given(text=st.text(alphabet="ab 好\n\x07", max_size=12), places=st.lists(st.integers(0, 12)))
def test_whatever_a_tokenizer_says_the_text_is_covered(text: str, places: list[int]) -> None:
    """Text that lies in no span would be in no chunk, and never be found."""
    ordered = sorted(place for place in places if place <= len(text))
    spans = list(zip(ordered[::2], ordered[1::2], strict=False))
    end = 0
    for start, stop in covering_spans(text, spans):
        assert end <= start < stop <= len(text)
        assert not text[end:start].strip()
        end = stop
    assert not text[end:].strip()
