"""The language of a text, as far as its script tells."""

import re
from typing import Final

from memory_tool.text.scripts import HAN, KANA, LATIN

_HAN: Final = re.compile(f"[{HAN}]+")
_KANA: Final = re.compile(f"[{KANA}]+")
_LATIN_WORD: Final = re.compile(f"[{LATIN}]+")
_OTHER_WORD: Final = re.compile(rf"[^\W\d_{HAN}{KANA}{LATIN}]+")

# Japanese is about half kana, and a Chinese text that quotes a Japanese name holds a few. With a
# fifth as the border, 9 Han and 3 kana are Japanese, 20 Han and 3 kana are Chinese.
_HAN_PER_KANA: Final = 4


def detect_language(text: str) -> str:
    """Return `"zh"`, `"en"` or `"other"`, judged by the shares of the scripts.

    A Chinese character weighs as much as a Latin *word*, so a Chinese sentence full of product
    names stays Chinese, and an English one that names 张先生 stays English. Latin letters mean
    `"en"` whatever the language, as the same stems and stop words are used for it.

    Args:
        text: Any text, normalised or not.

    Returns:
        `"other"` for a text mostly in other scripts, and for one without letters.
    """
    latin = len(_LATIN_WORD.findall(text))
    if text.isascii():
        return "en" if latin else "other"
    han = sum(map(len, _HAN.findall(text)))
    kana = sum(map(len, _KANA.findall(text)))
    other = len(_OTHER_WORD.findall(text)) + _HAN_PER_KANA * kana
    if other >= max(han, latin):
        return "other"
    return "zh" if han >= latin else "en"
