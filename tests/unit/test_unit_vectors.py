"""The check of what a model hands over."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from memory_tool.errors import InvalidEmbedding
from memory_tool.unit_vectors import unit_vectors


def test_rows_are_scaled_to_length_one() -> None:
    """Inner products are cosines only then; also from whole numbers and from tiny values."""
    rows = unit_vectors([[3.0, 4.0], [0.0, -1e-30]], count=2, dimension=2)
    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, -1]]


def test_the_callers_array_is_left_alone() -> None:
    """It may be the caller's own vector, or a row of a cache."""
    given = np.array([[2.0, 0.0]], dtype=np.float32)
    made = unit_vectors(given, count=1, dimension=2)
    assert given.tolist() == [[2, 0]]
    assert not np.shares_memory(given, made)


def test_no_rows_still_have_a_dimension() -> None:
    """An empty batch stacks with others."""
    assert unit_vectors([], count=0, dimension=3).shape == (0, 3)


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([[1.0, 2.0]], r"shape \(1, 3\), got \(1, 2\)"),
        ([[1.0, 2.0, 3.0]] * 2, r"got \(2, 3\)"),
        ([1.0, 2.0, 3.0], r"got \(3,\)"),
        ([], r"got \(0,\)"),
        ([[1.0], [1.0, 2.0]], "no rows of numbers"),
        ([["a", "b", "c"]], "no rows of numbers"),
        ([[1.0, 2.0, 10**400]], "no rows of numbers"),
        ([[1.0, 2.0, float("nan")]], "not finite"),
        ([[1.0, 2.0, None]], "not finite"),
        ([[1.0, float("-inf"), 0.0]], "not finite"),
        ([[1e200, 1.0, 1.0]], "far too large"),
        ([[0.0, 0.0, 0.0]], "all zeros"),
    ],
)
def test_anything_else_is_refused(rows: ArrayLike, complaint: str) -> None:
    """One such vector in an index breaks the scores of every search that meets it."""
    with pytest.raises(InvalidEmbedding, match=complaint):
        unit_vectors(rows, count=1, dimension=3)
