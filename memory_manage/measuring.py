"""The calibration of a model that nobody measured, from the memories of the store itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from memory_manage.calibration import CALIBRATION, Calibration, is_known
from memory_tool.log import logger
from memory_tool.model import MemoryId, Vector
from memory_tool.ports import Embedder
from memory_tool.space_ports import SideShelf, SideStructure, VectorSamples
from memory_tool.space_values import KnownSpace

SAMPLES: Final = 200
LEAST: Final = 50
"""Texts that are looked at, and the fewest that say anything."""

EVERY: Final = 4
"""One piece in so many of a text is kept as a question for it. At 4, the cosines of such questions
come near those of real ones; at 2 they lie too high, and right answers would be cut."""

_PIECES: Final = 8
_LOWEST: Final = 2.0
_APART: Final = 0.02
"""Least distance of the two cosines, as that of multilingual-e5-small."""


def measured(own: Sequence[float], others: Sequence[float]) -> Calibration:
    """The calibration from cosines of questions to their own text, and to another one.

    A question made of a text's own words lies nearer to it than a real one would. So what 98 % of
    them exceed is lowered by as much as their median lies above that of other texts: a wrong cut
    loses what was asked for. For multilingual-e5-small on English dialogues the own cosines have
    the median .858 and the 2nd percentile .791, the others the median .800: relevant is .733 and
    unrelated .713, where pairs of questions and answers gave .76. On Chinese ones .900, .853 and
    .853 give .806 and .786, where those gave .85.
    """
    near, far = float(np.median(own)), float(np.median(others))
    relevant = float(np.percentile(own, _LOWEST)) - max(0.0, near - far)
    return Calibration(relevant=relevant, unrelated=min(far, relevant - _APART))


def question_for(text: str) -> str | None:
    """A question that shares some words with a text; ``None`` where the text is too short."""
    words = text.split()
    if len(words) >= _PIECES:
        return " ".join(words[::EVERY])
    # Chinese has no blanks.
    plain = "".join(words)
    pieces = [plain[start : start + 2] for start in range(0, len(plain), 2)]
    return "".join(pieces[::EVERY]) if len(pieces) >= _PIECES else None


class MeasuredCalibration(SideStructure):
    """See :class:`memory_tool.space_ports.SideStructure`. Keeps two numbers, and no memory."""

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.space_ports.SideStructure.name`."""
        return CALIBRATION

    def rebuild(
        self, space: KnownSpace, vectors: VectorSamples, *, embedder: Embedder, shelf: SideShelf
    ) -> None:
        """Measure, unless the model was measured before on sets made for it."""
        if is_known(space.space.model):
            return
        asked = [
            (question, sampled.vector)
            for sampled in vectors.texts(space.number, SAMPLES)
            if (question := question_for(sampled.text)) is not None
        ]
        if len(asked) < LEAST:
            logger().info("calibration_unmeasured", space=space.space.name, texts=len(asked))
            return
        questions = embedder.embed_queries([question for question, _ in asked])
        found = measured(*_cosines(questions, np.stack([vector for _, vector in asked])))
        content = {"relevant": found.relevant, "unrelated": found.unrelated}
        shelf.keep(self.name, space.number, content=content)
        logger().info("calibration_measured", space=space.space.name, **content)

    def erase(self, targets: Sequence[tuple[int, MemoryId | None]]) -> None:
        """Nothing of any memory is kept."""


def _cosines(questions: Vector, texts: Vector) -> tuple[list[float], list[float]]:
    """Of each question to its own text, and to the next one."""
    own = np.einsum("nd,nd->n", questions, texts)
    others = np.einsum("nd,nd->n", questions, np.roll(texts, 1, axis=0))
    return own.tolist(), others.tolist()
