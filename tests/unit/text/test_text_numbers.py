"""One number, however it is written, is one token; what only looks like a number is none."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory_tool.text.normalise import normalise
from memory_tool.text.numbers import canonical_numbers, numbers_of_normalised


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("一百万", "1000000"),
        ("100万", "1000000"),
        ("1百万", "1000000"),
        ("1,000,000", "1000000"),
        ("１００萬", "1000000"),
        ("一百萬", "1000000"),
        ("1.5亿", "150000000"),
        ("1.23456万", "12345.6"),
        ("100万亿", "100000000000000"),
        ("3千5百", "3500"),
        ("1万2千", "12000"),
        ("壹佰贰拾叁", "123"),
        ("壹仟伍佰萬", "15000000"),
        ("兩千三百", "2300"),
        ("一亿两千万", "120000000"),
        ("四十二", "42"),
        ("42", "42"),
        ("0042", "42"),
        ("000", "0"),
        ("3.14", "3.14"),
        ("三点一四", "3.14"),
        ("0.50", "0.5"),
        ("1,234.5", "1234.5"),
        ("20%", "20%"),
        ("20％", "20%"),
        ("百分之二十", "20%"),
        ("百分之五", "5%"),
        ("百分之三点五", "3.5%"),
        ("二〇二五年", "2025"),
        ("一九四九年", "1949"),
        ("第一百零一条", "101"),
        ("二十三点一起走", "23"),
        ("$42.", "42"),
        ("123456789012345678.123456789", "123456789012345678.123456789"),
    ],
)
def test_every_way_to_write_a_number_meets(text: str, number: str) -> None:
    """A question about 100万 must find a memory that says 1,000,000."""
    assert canonical_numbers(text) == (f"num:{number}",)


@pytest.mark.parametrize(
    "text",
    [
        "张三",
        "十分重要",
        "一些",
        "五",
        "万一",
        "千万不要",
        "一五一十",
        "三三两两",
        "三四个",
        "两三天",
        "十五六岁",
        "七上八下",
        "下午三点一起走",
        "百分之百",
        "五两两",
        "一点一点",
    ],
)
def test_idioms_names_and_single_numerals_are_no_numbers(text: str) -> None:
    """A whole-sentence converter turns the name 张三 into 张3."""
    assert canonical_numbers(text) == ()


@pytest.mark.parametrize(
    "text", ["100多万", "一百多万", "一百余万", "几十万", "数百万", "几十万亿", "十几万"]
)
def test_vague_amounts_are_no_numbers(text: str) -> None:
    """More than a million is not a million, and some tens of thousands are not ten thousand."""
    assert canonical_numbers(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "order-2024-0042",
        "v1.2.3",
        "1.2.3",
        "192.168.1.1",
        "2024-01-15",
        "2024/01/15",
        "a1",
        "foo_42",
        "42kg",
        "1e5",
        "1234567890123456789",
        "3.14159265358979",
    ],
)
def test_digits_of_identifiers_are_no_numbers(text: str) -> None:
    """Else every order of a year would match a question that names the year's number."""
    assert canonical_numbers(text) == ()


def test_numbers_come_in_order_and_repeat() -> None:
    """Term frequency counts, so a number said twice counts twice."""
    text = "预算100-200万,共42个,另有四十二个,10:30 开会"
    assert canonical_numbers(text) == ("num:2000000", "num:42", "num:42", "num:10", "num:30")


@pytest.mark.parametrize("text", ["一" * 25, "百分之" + "一" * 25, "一" * 2000, "1" * 2000])
def test_endless_numerals_are_no_number(text: str) -> None:
    """The converter's cost is quadratic: 100,000 numerals took it three minutes."""
    assert canonical_numbers(text) == ()


@settings(deadline=None)
@given(st.text("〇零一二两三九十百千万亿壹佰点分之几多%.,-/x0123456789"))
@example("一亿一")
@example("一五一十")
def test_odd_spans_never_raise(text: str) -> None:
    """The converter fails in more than one way on spans that are no number."""
    for number in canonical_numbers(text):
        assert number.startswith("num:")
        assert float(number.removeprefix("num:").removesuffix("%")) >= 0


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_grouping_does_not_change_an_integer(value: int) -> None:
    """1,000,000 and 1000000 are the same."""
    assert canonical_numbers(f"{value:,}") == canonical_numbers(str(value)) == (f"num:{value}",)


@settings(deadline=None)
@given(st.text())
def test_normalised_text_takes_the_short_way(text: str) -> None:
    """The tokeniser normalises once and must get the same numbers."""
    assert numbers_of_normalised(normalise(text)) == canonical_numbers(text)
