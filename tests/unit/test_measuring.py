"""The calibration of a model that nobody measured, from a store's own memories."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from memory_manage.calibration import ANCHOR, UNKNOWN, calibration_for
from memory_manage.measuring import LEAST, MeasuredCalibration, measured, question_for
from memory_tool.adapters.hashing_embedder import HashingEmbedder
from memory_tool.model import EmbeddingSpace, Json
from memory_tool.port_values import StoredVectors
from memory_tool.space_ports import SideShelf, VectorSamples
from memory_tool.space_values import EmbeddedText, KnownSpace

EMBEDDER = HashingEmbedder()
MADE = KnownSpace(number=2, space=EmbeddingSpace(model="made", dimension=64), state="building")


@dataclass(slots=True)
class Store(VectorSamples, SideShelf):
    """A few texts with their vectors, and what is kept of them."""

    sentences: Sequence[str]
    content: dict[tuple[str, int], Json] = field(default_factory=dict)

    def sample(self, space: int, limit: int) -> StoredVectors:
        """Nobody asks."""
        raise NotImplementedError

    def namespace(self, space: int, ns_id: int, *, limit: int) -> StoredVectors | None:
        """Nobody asks."""
        raise NotImplementedError

    def texts(self, space: int, limit: int) -> tuple[EmbeddedText, ...]:
        """All of them."""
        vectors = EMBEDDER.embed_passages(self.sentences)
        pairs = zip(self.sentences, vectors, strict=True)
        return tuple(EmbeddedText(text=text, vector=vector) for text, vector in pairs)

    def keep(self, name: str, space: int, *, content: Json) -> None:
        """In a dictionary."""
        self.content[name, space] = content

    def kept(self, name: str, space: int) -> Json:
        """From it."""
        return self.content.get((name, space))


def sentences(count: int) -> list[str]:
    """Texts of words that hardly any two share."""
    draw = np.random.default_rng(1)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    return [" ".join("".join(draw.choice(letters, 6)) for _ in range(16)) for _ in range(count)]


@pytest.mark.parametrize(
    ("own", "others"),
    [((0.791, 0.858), 0.800), ((0.853, 0.900), 0.853)],
)
def test_right_answers_stay_above_the_cut(own: tuple[float, float], others: float) -> None:
    """Questions made of a text's words lie nearer to it than real ones: the cut is lowered."""
    low, middle = own
    found = measured([low] * 3 + [middle] * 97, [others] * 100)
    assert found.relevant == pytest.approx(low - (middle - others), abs=1e-6)
    assert found.unrelated == pytest.approx(min(others, found.relevant - 0.02), abs=1e-6)
    assert found.calibrated(middle) > ANCHOR


def test_a_question_shares_words_with_its_text_in_any_language() -> None:
    """Chinese has no blanks to cut at, and of a short text nothing can be asked."""
    assert question_for("one two three four five six seven eight nine") == "one five nine"
    assert question_for("我很喜欢旅游和看电影你呢今天去哪里") == "我很电影里"
    assert question_for("too short") is None


def test_what_was_measured_counts_for_models_that_are_not_known() -> None:
    """One that was measured on sets made for it keeps its own figures."""
    store = Store(sentences(LEAST))
    MeasuredCalibration().rebuild(MADE, store, embedder=EMBEDDER, shelf=store)
    kept = store.kept("calibration", 2)
    found = calibration_for("made", kept)
    assert found != UNKNOWN
    assert found.unrelated < found.relevant < 0.6
    assert calibration_for("hashing", kept) == calibration_for("hashing")
    assert calibration_for("made", None) == calibration_for("made", {"relevant": "x"}) == UNKNOWN


def test_too_few_texts_say_nothing() -> None:
    """A figure of ten texts would cut by chance."""
    store = Store(sentences(LEAST - 1))
    MeasuredCalibration().rebuild(MADE, store, embedder=EMBEDDER, shelf=store)
    assert store.content == {}
