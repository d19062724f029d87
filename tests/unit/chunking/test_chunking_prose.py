"""Windows over a text: exact pieces, nothing lost, little cut in two."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tool.chunking.prose import Span, fits_one_chunk, split_prose

Offsets = list[tuple[int, int]]

ANY_TEXT = st.text(st.characters(exclude_categories=()))
PROSE = st.text("ab中文。！？.!?”\n \t\0", max_size=200)


def offsets(text: str) -> Offsets:
    """Return the offsets of letters, digits and signs, as a tokeniser without subwords would."""
    return [match.span() for match in re.finditer(r"[A-Za-z]+|[^\sA-Za-z]", text)]


def pieces(text: str, *, size: int, overlap: int) -> list[str]:
    """Return the text of each window."""
    spans = split_prose(text, offsets(text), size=size, overlap=overlap)
    return [text[span.start : span.stop] for span in spans]


def test_windows_slide_by_size_less_overlap() -> None:
    """The mission's window: each shares its overlap with the next."""
    assert pieces("a b c d e f g h", size=4, overlap=1) == ["a b c d ", "d e f g ", "g h"]


def test_default_window_is_512_with_128_shared() -> None:
    """The mission names both numbers."""
    text = "字" * 1000
    spans = split_prose(text, offsets(text))
    assert spans == (
        Span(start=0, stop=512),
        Span(start=384, stop=896),
        Span(start=768, stop=1000),
    )


@pytest.mark.parametrize("text", ["", " ", "one", "  spaced out  ", "十个字以内的一句话。"])
def test_short_text_is_one_window(text: str) -> None:
    """A short memory is never cut, and keeps its outer blanks."""
    expected = (Span(start=0, stop=len(text)),) if text else ()
    assert split_prose(text, offsets(text), size=10, overlap=2) == expected


def test_no_window_inside_its_predecessor() -> None:
    """A last window that only repeats would be found twice."""
    assert pieces("a b c d", size=4, overlap=3) == ["a b c d"]
    assert pieces("a b c d e", size=4, overlap=3) == ["a b c d ", "b c d e"]


@pytest.mark.parametrize(
    ("end", "rest"),
    [
        ("。", "后"),
        ("！", "后"),
        ("？", "后"),
        ("!", " n"),
        ("?", " n"),
        (".", " n"),
        (".", "\n"),
        ("\n", "后"),
        ("。”", "后"),
        ('."', " n"),
    ],
)
def test_window_prefers_to_end_with_a_sentence(end: str, rest: str) -> None:
    """A sentence cut in two is found by neither half."""
    text = "字" * 29 + end + rest + "字" * 40
    first, second, *_ = pieces(text, size=32, overlap=4)
    assert first.rstrip() == ("字" * 29 + end).rstrip()
    assert second.startswith("字" if end == "\n" else "字" * (4 - len(end)) + end)


@pytest.mark.parametrize("sign", [".", ",", "，"])
def test_other_signs_end_no_sentence(sign: str) -> None:
    """The dot of 3.14 is no full stop."""
    text = "字" * 29 + sign + "1" + "字" * 40
    assert pieces(text, size=32, overlap=4)[0] == text[:32]


def test_full_stop_at_the_very_end_of_a_window_counts() -> None:
    """A token may begin with its blank, so what follows a full stop lies outside the window."""
    text = "w" + " w" * 13 + " w! w." + " w" * 20
    tokens = [match.span() for match in re.finditer(r"\s?\S+", text)]
    first, *_ = split_prose(text, tokens, size=16, overlap=4)
    assert text[: first.stop].endswith(" w! w.")


def test_sentence_end_before_the_last_eighth_is_ignored() -> None:
    """Windows must not shrink for the sake of a sentence."""
    text = "字" * 27 + "。" + "字" * 40
    assert pieces(text, size=32, overlap=4)[0] == text[:32]


def test_shared_tokens_never_reach_over_the_sentence_end() -> None:
    """With nearly all tokens shared there is no room to end early, and still each moves on."""
    text = "字" * 14 + "。" + "字" * 20
    spans = split_prose(text, offsets(text), size=16, overlap=15)
    assert [span.start for span in spans] == list(range(len(spans)))
    assert spans[-1].stop == len(text)


@pytest.mark.parametrize(("size", "overlap"), [(4, 4), (4, 5), (0, 0), (4, -1)])
def test_window_that_can_not_move_is_refused(size: int, overlap: int) -> None:
    """It would never reach the end."""
    with pytest.raises(ValueError, match="overlap must be"):
        split_prose("a b", offsets("a b"), size=size, overlap=overlap)


def test_tokens_without_characters_do_not_count() -> None:
    """Special tokens come with the offsets (0, 0)."""
    text = "a b c d"
    marked = [(0, 0), *offsets(text), (0, 0)]
    assert split_prose(text, marked, size=4, overlap=1) == (Span(start=0, stop=7),)


@pytest.mark.parametrize(
    ("text", "expected"), [("a𠮷b", ["a𠮷", "𠮷b"]), ("𠮷", ["𠮷"]), ("ab𠮷", ["ab", "b𠮷"])]
)
def test_bytes_of_one_character_stay_together(text: str, expected: list[str]) -> None:
    """Byte tokens of a rare character share its offsets; no window repeats for each byte."""
    tokens = [(at, at + 1) for at, character in enumerate(text) for _ in character.encode("utf-8")]
    spans = split_prose(text, tokens, size=2, overlap=1)
    assert [text[span.start : span.stop] for span in spans] == expected


@settings(deadline=None)
@given(PROSE, st.integers(1, 24), st.data())
def test_windows_cover_the_text_and_share_their_overlap(
    text: str, size: int, data: st.DataObject
) -> None:
    """Nothing of a memory may be lost, and no window may exceed the embedder's limit."""
    overlap = data.draw(st.integers(0, size - 1))
    tokens = offsets(text)
    spans = split_prose(text, tokens, size=size, overlap=overlap)
    assert spans == split_prose(text, tokens, size=size, overlap=overlap)
    if not text:
        assert spans == ()
        return
    assert spans[0].start == 0
    assert spans[-1].stop == len(text)
    held = [
        {token for token in tokens if span.start <= token[0] and token[1] <= span.stop}
        for span in spans
    ]
    assert all(len(window) <= size for window in held)
    for at, (one, other) in enumerate(pairwise(spans)):
        assert one.start < other.start <= one.stop < other.stop
        assert len(held[at] & held[at + 1]) == overlap
        assert len(held[at]) >= size - size // 8


@settings(deadline=None)
@given(ANY_TEXT)
def test_any_text_can_be_cut(text: str) -> None:
    """Cutting never fails on a text, whatever is in it."""
    assert "".join(pieces(text, size=3, overlap=0)) == text


@settings(deadline=None)
@given(ANY_TEXT, st.integers(1, 64))
def test_text_that_fits_is_short_in_every_form(text: str, size: int) -> None:
    """A wrong yes would let the embedder drop the end of a memory without a word."""
    if fits_one_chunk(text, size=size):
        folded = unicodedata.normalize("NFKC", text)
        assert len(text.encode("utf-8", "surrogatepass")) <= size
        assert len(folded.encode("utf-8", "surrogatepass")) <= size


@pytest.mark.parametrize(
    ("text", "size", "fits"),
    [
        ("", 1, True),
        ("abcd", 4, True),
        ("abcde", 4, False),
        ("中", 3, True),
        ("中文", 3, False),
        ("\ufdfa", 3, False),
        ("\ufdfa", 64, True),
    ],
)
def test_bytes_bound_the_tokens(text: str, size: int, fits: bool) -> None:  # noqa: FBT001 # a case
    """Short texts, nearly all memories, need no tokeniser."""
    assert fits_one_chunk(text, size=size) is fits
