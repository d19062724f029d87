"""The named statements of ``sql/queries*.sql``, read once."""

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final, LiteralString

_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"^--.*\n", re.MULTILINE)
_PART: Final = re.compile(r"\{@(\w+)\}")
"""Names the text that is to stand here."""


@functools.cache
def _statements() -> Mapping[str, str]:
    statements: dict[str, str] = {}
    for file in (resources.files("memory_tool.adapters") / "sql").iterdir():
        if not file.name.startswith("queries"):
            continue
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in statements:
                message = f"two statements are named {name}"
                raise ValueError(message)
            statements[name] = _COMMENT.sub("", text).strip()
    return {
        name: _PART.sub(lambda part: statements[part[1]], text) for name, text in statements.items()
    }


def statement(name: str, **inserts: str) -> LiteralString:
    """The statement of that name.

    ``inserts`` fill its places and are always text of this house (compiled filters, column names),
    never of a caller.
    """
    text = _statements()[name]
    for place, value in inserts.items():
        text = text.replace("{" + place + "}", value)
    # The driver asks for literal text; every part of this one comes from files of the house.
    return text
