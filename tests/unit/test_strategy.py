"""Which strategy a question gets, and why."""

import pytest

from memory_manage.strategy import choose
from memory_tool.errors import InputError


@pytest.mark.parametrize(
    ("question", "strategy"),
    [
        ("order-2024-0042", "keyword"),
        ("SO-77812", "keyword"),
        ("“蓝色系产品”", "keyword"),
        ('"hikari pool"', "keyword"),
        ("张先生喜欢什么颜色？", "hybrid"),
        ("why did we move the launch?", "hybrid"),
        ("order 42 was late", "hybrid"),
        ("2025年预算是多少", "hybrid"),
        ("3月份我去了哪里", "hybrid"),
        ("5G手机多少钱", "hybrid"),
    ],
)
def test_identifiers_and_quotes_are_searched_by_words(question: str, strategy: str) -> None:
    """An order number has no meaning that a vector could find."""
    choice = choose(question)

    assert choice.strategy.name == strategy
    assert choice.reason


def test_a_mode_that_is_asked_for_wins() -> None:
    """The caller knows better than a rule."""
    assert choose("SO-77812", "vector").strategy.name == "vector"


def test_an_unknown_mode_is_refused_by_name() -> None:
    """A misspelt mode must not silently become another one."""
    with pytest.raises(InputError, match="fuzzy"):
        choose("anything", "fuzzy")
