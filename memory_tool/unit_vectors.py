"""The one check of what an embedding model hands over."""

import numpy as np
from numpy.typing import ArrayLike

from memory_tool.errors import InvalidEmbedding
from memory_tool.model import Vector


def unit_vectors(rows: ArrayLike, *, count: int, dimension: int) -> Vector:
    """``rows`` as unit vectors.

    Args:
        rows: One row of numbers for each text; nothing at all for no text.
        count: How many rows there have to be.
        dimension: How many numbers each row has to have.

    Returns:
        A new array, float32, shape (count, dimension), every row of length 1.

    Raises:
        InvalidEmbedding: The shape is another one, a value is not finite, or a row is all zeros
            and so has no direction.
    """
    if count == 0:
        return np.empty((0, dimension), dtype=np.float32)
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        message = "the embeddings are no rows of numbers of one length"
        raise InvalidEmbedding(message) from error
    if matrix.shape != (count, dimension):
        message = f"expected embeddings of shape {(count, dimension)}, got {matrix.shape}"
        raise InvalidEmbedding(message)
    # A value beyond 1e154 makes the length infinite, one below 1e-162 makes it zero: refused too.
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        message = "an embedding holds values that are not finite, or far too large"
        raise InvalidEmbedding(message)
    if not lengths.all():
        message = "an embedding is all zeros"
        raise InvalidEmbedding(message)
    unit: Vector = (matrix / lengths).astype(np.float32)
    return unit
