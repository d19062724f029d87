"""What is never indexed must carry no meaning."""

import pytest

from memory_tool.text.normalise import normalise
from memory_tool.text.stop_words import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS


@pytest.mark.parametrize(
    "word", ["not", "no", "never", "nor", "none", "without", "off", "before", "after", "may", "us"]
)
def test_english_negations_and_content_words_are_indexed(word: str) -> None:
    """Without them "likes" and "does not like" would be the same, and May no month."""
    assert word not in ENGLISH_STOP_WORDS


@pytest.mark.parametrize("word", ["不", "没", "没有", "不是", "无", "别", "未", "最", "喜欢"])
def test_chinese_negations_and_content_words_are_indexed(word: str) -> None:
    """Without them 喜欢 and 不喜欢 would be the same."""
    assert word not in CHINESE_STOP_WORDS


@pytest.mark.parametrize("word", ["what", "who", "when", "where", "why", "how", "did", "does"])
def test_english_question_words_are_stop_words(word: str) -> None:
    """A question's own words must not outweigh what it asks about."""
    assert word in ENGLISH_STOP_WORDS


@pytest.mark.parametrize("word", ["什么", "怎么", "吗", "谁", "哪里", "为什么", "多少", "的"])
def test_chinese_question_words_are_stop_words(word: str) -> None:
    """A question's own words must not outweigh what it asks about."""
    assert word in CHINESE_STOP_WORDS


def test_stop_words_are_spelt_as_tokens_are() -> None:
    """A stop word in another spelling would never match."""
    words = ENGLISH_STOP_WORDS | CHINESE_STOP_WORDS
    assert {normalise(word) for word in words} == words
