"""Spelling variants meet, and only invisible differences count as duplicates."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_tool.text.normalise import compatibility_form, content_hash, normalise

ANY_TEXT = st.text(st.characters(exclude_categories=()))
STORABLE_TEXT = st.text()
# Signs with a short cut of their own, between letters and marks that compose.
PUNCTUATED = st.text("，：；！？（）％～　…ａＡ中e\u0301\u0327")
CHINESE = st.text(st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ１２３", "abc123"),
        ("ﾃｽﾄ", "テスト"),
        ("我們喜歡繁體字", "我们喜欢繁体字"),
        ("乾隆皇帝", "乾隆皇帝"),
        ("乾燥", "干燥"),
        ("Straße ﬁne", "straße fine"),
        ("PostgreSQL", "postgresql"),
        ("你好，世界！", "你好,世界!"),
        ("…", "..."),
        ("", ""),
    ],
)
def test_variants_have_one_spelling(text: str, expected: str) -> None:
    """Width, case and script variants of a word must find each other."""
    assert normalise(text) == expected


@pytest.mark.parametrize("text", ["薴", "H\u0331", "T\u0308ext", "İ", "㍿ﷺ"])
def test_normalising_once_is_enough(text: str) -> None:
    """These came out differently the second time with one pass of each step."""
    once = normalise(text)
    assert normalise(once) == once


@settings(deadline=None)
@given(st.one_of(ANY_TEXT, PUNCTUATED, CHINESE))
def test_normalise_is_idempotent(text: str) -> None:
    """Stored text may be normalised again anywhere without harm."""
    once = normalise(text)
    assert normalise(once) == once


@settings(deadline=None)
@given(st.one_of(STORABLE_TEXT, PUNCTUATED))
def test_compatibility_form_is_nfkc(text: str) -> None:
    """The short cut for common punctuation must not change what NFKC gives."""
    assert compatibility_form(text) == unicodedata.normalize("NFKC", text)


def test_lone_surrogate_is_replaced() -> None:
    """Text that no engine can store must not crash a search."""
    assert normalise("A\ud800中") == "a?中"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("  a fact \n", "a fact"),
        ("a\t\n fact", "a fact"),
        ("a\u3000fact", "a fact"),
        ("cafe\u0301", "caf\u00e9"),
    ],
)
def test_invisible_differences_are_duplicates(one: str, other: str) -> None:
    """The same sentence pasted with other blanks is the same memory."""
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bill", "bill"),
        ("Ａ", "A"),
        ("體", "体"),
        ("ab", "a b"),
        ("喜欢", "不喜欢"),
        ("x²", "x2"),
    ],
)
def test_visible_differences_are_no_duplicates(one: str, other: str) -> None:
    """A hash that folds too much would refuse a new fact as known."""
    assert content_hash(one) != content_hash(other)


def test_hash_is_sha256() -> None:
    """The hash is stored, so it may never change between releases."""
    assert content_hash(" 张三  likes blue ").hex() == (
        "d605a48b0a54c12c61ba0aae03c6667d96f7e9179fc60241130281d2d9329372"
    )


@settings(deadline=None)
@given(ANY_TEXT)
@example("\ud800")
def test_any_text_has_a_hash_of_32_bytes(text: str) -> None:
    """The column is 32 bytes wide, and hashing comes before validation in some paths."""
    assert len(content_hash(text)) == 32
