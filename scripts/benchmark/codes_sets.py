"""The vectors that kinds of index are compared with: real ones, where they are, and made ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_tool.model import Vector
from memory_tool.unit_vectors import unit_vectors
from scripts.benchmark.made import make_vectors
from scripts.evaluation.looked_up_embedder import KEY_CHARACTERS, key_of
from scripts.evaluation.sets import FORMS, is_there, read_set

QUESTIONS: Final = 300
DIMENSIONS: Final = (384, 1536)
_SHARE_LARGE: Final = 0.25
"""How many vectors of 1,536 numbers are made for each of 384: one takes four times as long."""

_ROWS_A_CLUSTER: Final = 50
_JOINED: Final = DIMENSIONS[1] // DIMENSIONS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSet:
    """Unit vectors of memories, and of questions to them; ``what`` says where they are from."""

    what: str
    vectors: Vector
    questions: Vector


def vector_sets(
    size: int, folder: Path | None, *, say: Callable[[str], None]
) -> Iterator[VectorSet]:
    """One set after the other, as each takes some hundred megabytes.

    Args:
        size: Made vectors of 384 numbers; a quarter as many have 1,536.
        folder: The evaluation sets with their vectors, if they are there.
        say: Told why there are no real ones.
    """
    file = folder / "vectors" / "e5-small.npz" if folder else None
    if folder is None or file is None or not file.is_file():
        say("no real vectors: THREEFOLD_EVALUATION_DATA names no folder with vectors/e5-small.npz")
    else:
        known = _Known.read(folder, file)
        yield known.asked()
        yield known.joined()
    for dimension, rows in zip(DIMENSIONS, (size, int(_SHARE_LARGE * size)), strict=True):
        vectors, asked = make_vectors(
            rows, QUESTIONS, dimension=dimension, clusters=max(1, rows // _ROWS_A_CLUSTER)
        )
        yield _set("made", vectors, questions=asked)


def _set(origin: str, vectors: Vector, *, questions: Vector) -> VectorSet:
    rows, dimension = vectors.shape
    return VectorSet(
        what=f"{origin}, {rows:,} × {dimension:,}", vectors=vectors, questions=questions
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Real vectors: of memories and of questions, each in the order of the sets, and of others."""

    memories: Vector
    questions: Vector
    others: Vector

    @classmethod
    def read(cls, folder: Path, file: Path) -> "_Known":
        """Those of the file, told apart by the texts of the sets."""
        with np.load(file, allow_pickle=False) as stored:
            known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))
        sets = [read_set(folder, name) for name in FORMS if is_there(folder, name)]
        texts = {
            False: [memory.text for one in sets for memory in one.memories],
            True: [question.text for one in sets for question in one.questions],
        }
        found: dict[bool, list[NDArray[np.float16]]] = {}
        for is_query, of in texts.items():
            keys = [key_of(text[:KEY_CHARACTERS], is_query=is_query).encode() for text in of]
            # A text of two sets has one vector.
            vectors = (known.pop(key, None) for key in keys)
            found[is_query] = [vector for vector in vectors if vector is not None]
        return cls(
            memories=_units(found[False]),
            questions=_units(found[True]),
            others=_units(list(known.values())),
        )

    def asked(self) -> VectorSet:
        """Some questions held back, everything else stored."""
        order = np.random.default_rng(1).permutation(len(self.questions))
        asked, rest = self.questions[order[:QUESTIONS]], self.questions[order[QUESTIONS:]]
        return _set("real", np.concatenate((self.memories, rest, self.others)), questions=asked)

    def joined(self) -> VectorSet:
        """Four neighbouring texts as one: real vectors of 1,536 numbers, though no model made them.

        Questions are such windows too, held back with all that share a text with them.
        """
        texts = np.concatenate((self.memories, self.questions))
        windows = len(texts) - _JOINED + 1
        joined = np.hstack([texts[at : at + windows] for at in range(_JOINED)])
        vectors = unit_vectors(joined, count=windows, dimension=DIMENSIONS[1])
        places = np.random.default_rng(1).permutation(windows)[:QUESTIONS]
        near = places[:, np.newaxis] + np.arange(1 - _JOINED, _JOINED)
        held_back = np.zeros(windows, np.bool_)
        held_back[near[(near >= 0) & (near < windows)]] = True
        return _set("real, four joined", vectors[~held_back], questions=vectors[places])


def _units(vectors: list[NDArray[np.float16]]) -> Vector:
    return unit_vectors(vectors, count=len(vectors), dimension=DIMENSIONS[0])
