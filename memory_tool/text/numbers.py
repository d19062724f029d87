"""Numbers in one canonical form, whether written in digits or in Chinese numerals."""

import functools
import re
from decimal import Decimal
from typing import Final

import cn2an

from memory_tool.text.normalise import normalise

_POWERS: Final = {"十": 1, "百": 2, "千": 3, "万": 4, "亿": 8}
_SCALES: Final = "十百千万亿拾佰仟"
_DIGITS: Final = "〇零一二两三四五六七八九壹贰叁肆伍陆柒捌玖"
_NUMERALS: Final = _DIGITS + _SCALES

# At most 27 digits, so that the default precision of Decimal (28) keeps each; a longer run of
# digits is an identifier, not an amount.
_AMOUNT: Final = r"(?:[0-9]{0,2}(?:,[0-9]{3}){1,5}|[0-9]{0,17})(?:\.[0-9]{1,9})?"

# Longer than any number somebody says, short enough for a converter of quadratic cost.
_SOME_NUMERALS: Final = rf"[{_NUMERALS}]{{1,23}}+(?![{_NUMERALS}])"

# "More than a million", "some tens of thousands": the digit that matters is not told.
_VAGUE_AHEAD: Final = rf"(?![多几余]?[{_SCALES}])"

_SPAN: Final = re.compile(
    rf"""
    [0-9{_NUMERALS}]        # a plain first set of characters lets the search skip ahead
    (?:
        # 42, 1,000,000, 3.14, 20%, 1.5亿, 3千5百; not in a word, a version or a compound token
        (?<=[0-9]) (?<! [a-z0-9_.][0-9])
        (?:
            {_AMOUNT} (?: % | [十百千万亿]{{1,3}}+ (?: [0-9]{{1,4}} [十百千万] ){{0,3}}+ )
            |
            (?<! [a-z0-9_][-/][0-9]) {_AMOUNT} (?! [a-z0-9_] | [.][0-9] | [-/][a-z0-9] )
        )
        {_VAGUE_AHEAD}
        |
        # 百分之二十, 百分之三点五
        (?<=百) 分之 {_SOME_NUMERALS} (?: 点 [{_DIGITS}]{{1,9}}+ )?
        |
        # 一百万, 壹佰贰拾叁, 二〇二五, 三点一四; two decimals at least, as 三点一起 is a time
        (?<=[{_NUMERALS}]) (?<! [几数{_NUMERALS}].)
        (?: {_SOME_NUMERALS} (?: 点 [{_DIGITS}]{{2,9}}+ )? | 点 [{_DIGITS}]{{2,9}}+ )
        {_VAGUE_AHEAD}
    )
    """,
    re.VERBOSE,
)

# A number may be spelt out digit by digit, as the year 二〇二五; but 三四 is "three or four", and
# nobody spells with 两.
_NOT_SPELT_OUT: Final = re.compile(f"[{_DIGITS}]{{2}}|[{_DIGITS}]*两[{_DIGITS}]*")
_PLAIN: Final = re.compile(r"([0-9,.]+)([十百千万亿]*)(%?)")


def canonical_numbers(text: str) -> tuple[str, ...]:
    """Return a token such as `num:1000000` for each number, in the order of the text.

    Only spans that are surely numbers count: digits, digits with a scale, and two or more Chinese
    numerals. So 张三 (a name), 十分 (very), 万一 (in case) and 三四个 (three or four) give nothing.

    Args:
        text: Any text, normalised or not.

    Returns:
        `num:` and the number in decimal digits, with `%` for a percentage; repeats are kept. There
        is no minus, as a hyphen before a number is more often a dash.
    """
    return numbers_of_normalised(normalise(text))


def numbers_of_normalised(text: str) -> tuple[str, ...]:
    """Return what `canonical_numbers` does, for a text that is normalised already."""
    values = (_value(match.group()) for match in _SPAN.finditer(text))
    return tuple(f"num:{value}" for value in values if value)


@functools.lru_cache(maxsize=4096)
def _value(span: str) -> str:
    """Return the span's value in digits, or nothing if it only looked like a number."""
    plain = _PLAIN.fullmatch(span)
    if plain:
        digits, scales, percent = plain.groups()
        power = sum(_POWERS[scale] for scale in scales)
        return _in_digits(Decimal(digits.replace(",", "")).scaleb(power)) + percent
    numerals = span.removeprefix("百分之")
    percent = "%" if numerals != span else ""
    value = _from_numerals(numerals)
    return "" if value is None else _in_digits(value) + percent


def _from_numerals(numerals: str) -> Decimal | None:
    if _NOT_SPELT_OUT.fullmatch(numerals):
        return None
    # Found by their characters alone, some spans are idioms (一五一十, 万一) or not one number
    # (十五六). The converter refuses them with a ValueError, or trips over them with a KeyError;
    # there is no number to add then, and the words are indexed as they are.
    try:
        return Decimal(str(cn2an.cn2an(numerals, "smart")))
    except (ValueError, KeyError):
        return None


def _in_digits(number: Decimal) -> str:
    return format(number.normalize(), "f")
