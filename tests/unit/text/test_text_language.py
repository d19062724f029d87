"""The language decides calibration, so a few foreign words must not turn it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tool.text.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("客户张先生偏好蓝色系产品", "zh"),
        ("我們喜歡繁體字", "zh"),
        ("把 PostgreSQL 的 max_connections 调大", "zh"),
        ("Redis 缓存命中率", "zh"),
        ("T恤", "zh"),
        ("二〇二五年", "zh"),
        ("The customer prefers blue products", "en"),
        ("Our customer is called 张先生 here", "en"),
        ("café naïve", "en"),
        ("ＦＵＬＬ ＷＩＤＴＨ", "en"),
        ("日本語のテストです", "other"),
        ("ありがとう", "other"),
        ("ﾃｽﾄ", "other"),
        ("東京都知事選挙の結果について", "other"),
        ("안녕하세요 세계", "other"),
        ("Привет, как дела?", "other"),
        ("42 % !? 2024-01-15", "other"),
        ("🎉，。", "other"),
        ("___", "other"),
        ("", "other"),
    ],
)
def test_script_tells_the_language(text: str, language: str) -> None:
    """Each chunk carries this, and questions are matched to it."""
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("他在东京吃了一顿叫すし的饭，觉得味道还不错，打算下次再去", "zh"),
        ("She met Сергей at the station", "en"),
    ],
)
def test_one_foreign_name_does_not_turn_it(text: str, language: str) -> None:
    """A name in a third script is no reason to leave the language of the sentence."""
    assert detect_language(text) == language


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_one_of_three_languages(text: str) -> None:
    """A fourth value would have no calibration."""
    assert detect_language(text) in {"zh", "en", "other"}
