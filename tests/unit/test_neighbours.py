"""The turn before, in the relevance of a turn."""

import pytest

from memory_tool.model import MemoryType
from memory_tool.neighbours import LENGTH, with_turn_before
from memory_tool.query import Hit, Outline


def hit(name: str, relevance: float, *, position: int | None, tokens: int = 10, ns: int = 1) -> Hit:
    """A turn of the dialogue ``d`` at a position, or a memory outside any."""
    outline = Outline(
        id=name,
        ns_id=ns,
        vector_nseq=1,
        keyword_nseq=1,
        content_hash=name.encode(),
        type=MemoryType.CONVERSATION,
        importance=None,
        pinned=False,
        confidence=1.0,
        event_time=0.0,
        tokens=tokens,
        conversation_id=None if position is None else "d",
        position=position or 0,
    )
    return Hit(outline, 0, relevance, 1, 0.9, None, None)


def relevances(*hits: Hit) -> dict[str, float]:
    """Relevance by memory, afterwards."""
    return {found.outline.id: found.relevance for found in with_turn_before(hits)}


def test_an_answer_is_raised_by_its_question() -> None:
    """It holds no word of what was asked; the turn before does."""
    found = relevances(
        hit("question", 0.9, position=4),
        hit("answer", 0.4, position=5),
        hit("other", 0.4, position=9),
    )

    assert found["answer"] == pytest.approx((0.4 + 0.3 * 0.9) / 1.3)
    assert found["answer"] > found["other"] == pytest.approx(0.4 / 1.3)


def test_a_long_turn_speaks_for_itself() -> None:
    """At twice the length its neighbour counts a quarter."""
    found = relevances(
        hit("before", 0.8, position=1), hit("long", 0.4, position=2, tokens=2 * LENGTH)
    )

    assert found["long"] == pytest.approx((0.4 + 0.3 * 0.25 * 0.8) / 1.3)


def test_what_has_no_turn_before_gets_the_mean() -> None:
    """A first turn, and a memory outside any dialogue, must not lose by standing alone."""
    found = relevances(
        hit("first", 0.8, position=0),
        hit("second", 0.5, position=1),
        hit("note", 0.6, position=None),
    )

    assert found["first"] == pytest.approx((0.8 + 0.3 * 0.8) / 1.3)
    assert found["note"] == pytest.approx((0.6 + 0.3 * 0.8) / 1.3)


def test_the_turn_of_another_namespace_is_no_neighbour() -> None:
    """Two users may name their conversations alike."""
    found = relevances(hit("mine", 0.5, position=1), hit("theirs", 0.9, position=0, ns=2))

    assert found["mine"] == pytest.approx(0.5 / 1.3)


def test_without_dialogues_nothing_changes() -> None:
    """Notes and documents keep their relevance to the digit."""
    hits = [hit("a", 0.3, position=None), hit("b", 0.7, position=None)]

    assert with_turn_before(hits) == hits
