"""The checks of what embedding models hand over and of what indexes take."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from memory_tool.errors import InvalidEmbedding
from memory_tool.model import Vector

UNIT_TOLERANCE: Final = 0.01
"""How far a length may be from 1. Half floats move it by less than 0.001; a vector that was never
normalised is off by more than this in practice."""


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


def check_units(vectors: Vector, dimension: int) -> None:
    """Refuse what is not of shape (count, dimension), float32, finite and of length 1.

    A NaN in a graph spoils the search for its neighbours too, and a wrong dimension makes FAISS
    read foreign memory where its own ``assert`` is switched off.

    Raises:
        InvalidEmbedding: Says which of it.
    """
    if vectors.ndim != 2 or vectors.shape[1] != dimension:  # noqa: PLR2004 - rows and columns
        shape = vectors.shape[1:]
        message = f"an embedding has the shape {shape}, not ({dimension},)"
        raise InvalidEmbedding(message)
    if vectors.dtype != np.float32:
        message = f"an embedding has the type {vectors.dtype}, not float32"
        raise InvalidEmbedding(message)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not np.isfinite(lengths).all():
        message = "an embedding holds values that are not finite"
        raise InvalidEmbedding(message)
    if (np.abs(lengths - 1) > UNIT_TOLERANCE).any():
        message = "an embedding is not of length 1"
        raise InvalidEmbedding(message)


def check_unit(vector: Vector, dimension: int) -> None:
    """Refuse a vector that is not of shape (dimension,), float32, finite and of length 1.

    Raises:
        InvalidEmbedding: Says which of it.
    """
    if vector.ndim != 1:
        message = f"an embedding has the shape (dimension,), not {vector.shape}"
        raise InvalidEmbedding(message)
    check_units(vector[np.newaxis], dimension)
