"""The shapes of answers for OpenAPI, made from the SDK's own results, so that both say the same."""

import types
import typing
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, create_model

from memory_manage.results import (
    Deleted,
    Found,
    Health,
    Listing,
    MemoryItem,
    Record,
    Stats,
    WriteItem,
    Written,
)
from memory_tool.query import Degradation

_AS_THEY_ARE: Final[Mapping[object, Any]] = {
    **{plain: plain for plain in (str, int, float, bool, datetime)},
    Degradation: str,
}
_OPTIONAL: Final = 2
"""Alternatives of ``X | None``, the only union of a result beside any JSON."""


def answer_model(record: type[Record], made: dict[type, type[BaseModel]]) -> type[BaseModel]:
    """The shape of ``record.to_dict()``, where every field is there.

    Args:
        record: A result of the SDK.
        made: The shapes made so far, which are shared.
    """
    if record not in made:
        hints = typing.get_type_hints(record)
        fields: dict[str, Any] = {name: (_json(hint, made), ...) for name, hint in hints.items()}
        made[record] = create_model(
            record.__name__,
            __config__=ConfigDict(extra="forbid"),
            __doc__=(record.__doc__ or "").partition("\n\nAttributes:")[0],
            **fields,
        )
    return made[record]


def _json(hint: object, made: dict[type, type[BaseModel]]) -> Any:  # noqa: ANN401 - a type
    """What :meth:`~memory_manage.results.Record.to_dict` makes of a field."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return answer_model(hint, made)
    if hint in _AS_THEY_ARE:
        return _AS_THEY_ARE[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return list[_json(arguments[0], made)]  # type: ignore[misc] # a type made at run time
    if origin is Mapping:
        return dict[str, _json(arguments[1], made)]  # type: ignore[misc] # as above
    if origin in (typing.Union, types.UnionType) and len(arguments) == _OPTIONAL:
        return _json(arguments[0], made) | None
    return Any


_MADE: Final[dict[type, type[BaseModel]]] = {}

FOUND: Final = answer_model(Found, _MADE)
LISTING: Final = answer_model(Listing, _MADE)
MEMORY: Final = answer_model(MemoryItem, _MADE)
WRITTEN: Final = answer_model(Written, _MADE)
WRITE: Final = answer_model(WriteItem, _MADE)
DELETED: Final = answer_model(Deleted, _MADE)
STATS: Final = answer_model(Stats, _MADE)
HEALTH: Final = answer_model(Health, _MADE)
