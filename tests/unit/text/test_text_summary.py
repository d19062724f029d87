"""Summaries: the weightiest sentences of a text, in its own words and order."""

import pytest

from memory_tool.text.summary import SUMMARY_LENGTH, sentences_of, summarise

ENGLISH = (
    "The harbour ledger is blue. Anna bought the harbour ledger in 1999 for 3.14 dollars. "
    "It rained. Anna keeps the blue harbour ledger in her office. Nobody saw the cat. "
    "See example.com for more. The office of Anna is near the harbour. Ben sleeps late. "
    "Whoever wants the ledger asks Anna in the office. A bird sang on the roof all night long."
)
CHINESE = (
    "港口的账本是蓝色的。安娜在1999年买了港口的账本。天下雨了。安娜把蓝色的账本放在办公室里。"
    "没有人看见那只猫！价格是3.14元。安娜的办公室在港口附近。小明起得很晚。"
    "想要账本的人要去办公室找安娜。一只鸟在屋顶上唱了一整夜。"
) * 3


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_a_summary_is_whole_sentences_in_their_order(text: str) -> None:
    """Nothing is invented, nothing twice, and what the text is about is in it."""
    summary = summarise(text)
    sentences = sentences_of(text)
    chosen = sentences_of(summary)
    assert len(summary) <= SUMMARY_LENGTH < len(text)
    assert len(chosen) == len(set(chosen)) > 1
    places = [sentences.index(sentence) for sentence in chosen]
    assert places == sorted(places)


def test_sentences_that_share_words_outweigh_those_that_stand_alone() -> None:
    """The ledger is what it is about, the bird is not."""
    summary = summarise(ENGLISH)
    assert "Anna keeps the blue harbour ledger in her office." in summary
    assert "Whoever wants the ledger" in summary
    assert "bird" not in summary


def test_a_chinese_summary_has_no_blanks() -> None:
    """They would stand in it like a foreign body."""
    assert " " not in summarise(CHINESE)


@pytest.mark.parametrize("text", ["likes tea", "喜欢绿茶。" * 20, "x" * SUMMARY_LENGTH])
def test_a_short_text_is_its_own_summary(text: str) -> None:
    """To the letter: nothing has to be loaded for it."""
    assert summarise(text) == text


def test_a_text_of_one_long_sentence_is_cut() -> None:
    """Any text has a summary."""
    summary = summarise("word " * 400)
    assert len(summary) <= SUMMARY_LENGTH
    assert summary.startswith("word word")
    assert summary.endswith("…")


def test_sentences_end_where_a_reader_ends_them() -> None:
    """Neither inside a number nor an address, nor before a closing quotation mark."""
    assert sentences_of("It cost 3.14 dollars. See a.b.com! Why? No.") == [
        "It cost 3.14 dollars.",
        "See a.b.com!",
        "Why?",
        "No.",
    ]
    assert sentences_of("“你好！”她说。天气很坏……大家都知道。\n下一行") == [
        "“你好！”她说。",
        "天气很坏……",
        "大家都知道。",
        "下一行",
    ]
