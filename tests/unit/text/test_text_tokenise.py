"""Texts and questions must meet in the same tokens."""

import string
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import rjieba
from hypothesis import given, settings
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import (  # type: ignore[import-untyped] # generated, no stubs
    EnglishStemmer,
)

from memory_tool.text.tokenise import MAX_TOKEN_LENGTH, TOKENISER_VERSION, Tokens, tokenise

ANY_TEXT = st.text(st.characters(exclude_categories=()))
MIXED_TEXT = st.text("张先生的不喜欢什么圌㐀𠮷abCDé'’09._-/,@ \n\0あ한д%万")
LATIN_WORD = st.text(string.ascii_letters + string.digits + "._-/@+'\\,", min_size=1)


def words(text: str) -> list[str]:
    """Return the words of a text, sorted."""
    return sorted(tokenise(text).words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("客户张先生偏好蓝色系产品", ["客户", "张", "先生", "偏好", "蓝色", "系", "产品"]),
        ("客戶張先生偏好藍色系產品", ["客户", "张", "先生", "偏好", "蓝色", "系", "产品"]),
        ("我不喜歡藍色", ["不", "喜欢", "蓝色"]),
        ("订单号是多少？", ["订单", "单号", "订单号"]),
        ("他说的是什么", ["说"]),
    ],
)
def test_chinese_words(text: str, expected: list[str]) -> None:
    """Words of both scripts, long ones in parts as well, stop words left out."""
    assert words(text) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The customers were retrieving memories", ["custom", "retriev", "memori"]),
        ("She does not like it", ["not", "like"]),
        ("She doesn't like it", ["not", "like"]),
        ("can’t", ["not"]),
        ("John's dog’s bone", ["john", "dog", "bone"]),
        ("I'm sure they'll know we've won", ["sure", "know", "won"]),
        ("O'Brien", ["o'brien", "o", "brien"]),
        ("O’Brien", ["o'brien", "o", "brien"]),
        ("café", ["café"]),
        ("No! No.", ["no", "no"]),
    ],
)
def test_english_words(text: str, expected: list[str]) -> None:
    """Stems without stop words; a contraction keeps its negation, and repeats count."""
    assert words(text) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        (
            "spring.datasource.hikari.maximum-pool-size",
            "spring.datasource.hikari.maximum-pool-size",
            "spring datasource hikari maximum pool size",
        ),
        ("订单Order-2024-0042号", "order-2024-0042", "order 2024 0042"),
        ("FOO_BAR", "foo_bar", "foo bar"),
        ("app__store__url", "app__store__url", "app store url"),
        ("Zhang.San+inbox@Example.com", "zhang.san+inbox@example.com", "zhang san inbox com"),
        ("./src/shop/orders/app.py", "src/shop/orders/app.py", "src shop orders app py"),
        (r"logs\today.txt", r"logs\today.txt", "logs today txt"),
        ("v1.2.3", "v1.2.3", "v1 2 3"),
        ("2024-01-15", "2024-01-15", "2024 01 15"),
        ("state-of-the-art", "state-of-the-art", "state art"),
    ],
)
def test_compounds_are_found_whole_and_in_parts(text: str, whole: str, parts: str) -> None:
    """A setting is asked for by its full name or by the words in it."""
    found = tokenise(text).words
    assert whole in found
    asked = {word for word in tokenise(parts).words if not word.startswith("num:")}
    assert asked <= set(found)
    assert not {"of", "the"} & set(found)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("maximumPoolSize", ["maximum", "pool", "size"]),
        ("PostgreSQL", ["postgr", "sql"]),
        ("JSONParser", ["json", "parser"]),
        ("utf8Decoder", ["utf8", "decod"]),
        ("我们用orderService查询", ["order", "servic"]),
        ("ｏｒｄｅｒＳｅｒｖｉｃｅ", ["order", "servic"]),
        ("com.shop.OrderStore", ["order", "store"]),
        ("a\0Zb orderStore", ["order", "store"]),
    ],
)
def test_camel_case_is_found_whole_and_in_parts(text: str, parts: list[str]) -> None:
    """Names in code are asked for by their words, with or without capitals."""
    found = tokenise(text).words
    assert set(parts) <= set(found)
    assert set(tokenise(text.lower()).words) <= set(found)


@pytest.mark.parametrize("text", ["APIs", "URLs", "Word", "WORD", "3D", "H2O"])
def test_other_capitals_part_nothing(text: str) -> None:
    """A plural is not cut into one letter and a rest."""
    assert tokenise(text) == tokenise(text.lower())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12,345.67", ["12345.67", "num:12345.67"]),
        ("3.14", ["3.14", "num:3.14"]),
        ("1,000,000", ["1000000", "num:1000000"]),
        ("预算100万", ["预算", "100", "万", "num:1000000"]),
        ("1,23", ["1", "23", "num:1", "num:23"]),
        ("1,2345", ["1", "2345", "num:1", "num:2345"]),
        ("b,000", ["000", "b", "num:0"]),
    ],
)
def test_amounts_are_one_word_and_a_number(text: str, expected: list[str]) -> None:
    """The 000 of one amount must not find another."""
    assert words(text) == sorted(expected)


def test_numbers_meet_across_notations() -> None:
    """A number is asked for in the notation of the one who asks."""
    assert "num:1000000" in tokenise("预算是一百万").words
    assert "num:1000000" in tokenise("a budget of 1,000,000").words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("これはテスト", ["これはテスト"]),
        ("привет мир", ["привет", "мир"]),
        ("한국어 abc", ["abc", "한국어"]),
        ("foo한국", ["foo", "한국"]),
        ("foo_한국_bar", ["bar", "foo", "한국"]),
    ],
)
def test_other_scripts_are_whole_words(text: str, expected: list[str]) -> None:
    """Every script can be stored and found again, if only by whole words."""
    assert words(text) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("蓝色系", ("蓝色", "色系")),
        ("藍色系", ("蓝色", "色系")),
        ("蓝，红色", ("蓝", "红色")),
        ("什么", ("什么",)),
        ("的", ("的",)),
        ("what is it", ("what_is", "is_it")),
        ("to be or not to be", ("to_be", "be_or", "to_be")),
        ("who 是 it", ("是",)),
        ("blue products", ()),
        ("the blue", ()),
    ],
)
def test_bigrams(text: str, expected: tuple[str, ...]) -> None:
    """Pairs find what was cut otherwise, and questions wholly of stop words."""
    assert tokenise(text).bigrams == expected


@pytest.mark.parametrize("question", ["什么", "他是谁？", "who is it", "What was that?"])
def test_question_of_stop_words_still_asks(question: str) -> None:
    """The mission asks that a query wholly of stop words still finds something."""
    tokens = tokenise(question)
    assert tokens.words == ()
    assert tokens.bigrams


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200,
        "㐀" * 200,
        "あ" * 200,
        "a." * 200,
        "9" * 200 + ".5",
        "xY" + "z" * 200,
        "瑡滋" * 80,
    ],
)
def test_long_tokens_are_cut(text: str) -> None:
    """An encoded blob must not become a dictionary entry of its own length."""
    tokens = tokenise(text)
    assert tokens.words
    assert max(map(len, tokens.words)) <= MAX_TOKEN_LENGTH
    assert tokenise(text) == tokens


@pytest.mark.parametrize("text", ["", " \n\t", "!?…", "🎉", "\0", "\ud800", "_", "'", "-"])
def test_text_without_words_has_no_tokens(text: str) -> None:
    """Nothing to index is an empty answer, not an error."""
    assert tokenise(text) == Tokens(words=(), bigrams=())


@settings(deadline=None)
@given(st.one_of(ANY_TEXT, MIXED_TEXT, LATIN_WORD))
def test_tokens_of_any_text_are_fit_for_an_index(text: str) -> None:
    """Tokens are stored joined by blanks and sent to engines that refuse some characters."""
    tokens = tokenise(text)
    for token in (*tokens.words, *tokens.bigrams):
        assert 1 <= len(token) <= MAX_TOKEN_LENGTH
        assert token.split() == [token]
        assert "\0" not in token
        assert token.encode("utf-8").decode("utf-8") == token
    assert tokenise(text) == tokens


@settings(deadline=None)
@given(LATIN_WORD, ANY_TEXT, ANY_TEXT)
def test_a_latin_word_finds_the_text_that_holds_it(word: str, before: str, after: str) -> None:
    """Indexing and asking agree whatever stands around a word."""
    asked = tokenise(word).words
    indexed = tokenise(f"{before} {word} {after}").words
    assert set(asked) <= set(indexed)


@settings(deadline=None)
@given(st.lists(st.text("张先生偏好蓝色系产品的什么", min_size=1), min_size=1))
def test_runs_are_cut_apart_from_each_other(runs: list[str]) -> None:
    """Cutting all runs in one call is only a matter of speed."""
    apart = [word for run in runs for word in tokenise(run).words]
    assert list(tokenise("，".join(runs)).words) == apart


@settings(deadline=None)
@given(st.text("客户张先生偏好蓝色系产品订单服务", min_size=2))
def test_bigrams_follow_the_characters(text: str) -> None:
    """Any two adjacent characters can be asked for, however the words were cut."""
    assert tokenise(text).bigrams == tuple(text[at : at + 2] for at in range(len(text) - 1))


def test_search_mode_is_on() -> None:
    """A long word is found by the words in it."""
    assert set(tokenise("中华人民共和国").words) == set(rjieba.cut_for_search("中华人民共和国"))
    assert "共和国" in tokenise("中华人民共和国").words


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
def test_threads_do_not_share_a_stemmer() -> None:
    """A stemmer works on fields of its own; shared by threads it mixes their words."""
    nouns = [f"{a}{b}{c}" for a in "bdgk" for b in "aeiou" for c in "lmnrst"]
    texts = [f"{noun}{ending}" for ending in ("izations", "fulness", "ingly") for noun in nouns]
    with ThreadPoolExecutor(4) as threads:
        together = [tokens.words for tokens in threads.map(tokenise, texts)]
    assert together == [(EnglishStemmer().stemWord(text),) for text in texts]


def test_tokens_of_this_version() -> None:
    """Another outcome here needs another version, or old indexes are asked with new tokens."""
    text = "張先生用 orderService 在2024年第三季度花了一百万 (20%) on foo-bar, didn't he? Is it so"
    assert TOKENISER_VERSION == 1
    assert " ".join(tokenise(text).words) == (
        "orderservic 2024 20 foo-bar foo bar not "
        "张 先生 用 年 第三 三季 季度 第三季 三季度 第三季度 花 一百 百万 一百万 "
        "order servic num:2024 num:1000000 num:20%"
    )
    assert " ".join(tokenise(text).bigrams) == (
        "张先 先生 生用 在 年第 第三 三季 季度 度花 花了 了一 一百 百万 he_is is_it it_so"
    )
