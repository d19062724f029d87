"""Errors by name: how the failure of one item of a write becomes an error again."""

import pytest

from memory_tool.errors import (
    DuplicateMemory,
    InvalidText,
    NotFound,
    ThreefoldError,
    Unavailable,
    error_named,
)


@pytest.mark.parametrize("kind", [DuplicateMemory, InvalidText, NotFound, Unavailable])
def test_a_named_error_is_of_its_own_class(kind: type[ThreefoldError]) -> None:
    """A caller catches what the docstring promises, however deep in the tree it stands."""
    error = error_named(kind.__name__, "why")

    assert type(error) is kind
    assert str(error) == "why"


@pytest.mark.parametrize("name", ["Literal", "KeyError", ""])
def test_what_is_no_error_of_ours_is_a_plain_one(name: str) -> None:
    """A receipt written by another version must not make the answer to it crash."""
    assert type(error_named(name, "why")) is ThreefoldError
