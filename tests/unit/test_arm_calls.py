"""How arms are asked: within a deadline, and blamed only for what is theirs."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from memory_tool.arm_calls import ArmCalls
from memory_tool.bm25 import DEFAULT_FIELD_PARAMETERS
from memory_tool.breaker import Breaker, Condition
from memory_tool.errors import Corrupt, InputError
from memory_tool.model import MemoryId
from memory_tool.port_values import KeywordQuery, Pointer, ReadView
from memory_tool.query import Arm, Candidate
from memory_tool.search_arms import Asked

OLD = Pointer(target="words", generation=1, locator="old", mark="m")
NEW = Pointer(target="words", generation=2, locator="new", mark="n")


class Index:
    """The words' index, which hangs until it is released, or fails as it is told to."""

    target = "words"
    remote = True
    mark = None

    def __init__(self) -> None:
        self.released = threading.Event()
        self.fault: Exception | None = None
        self.asked = 0

    def view(self, pointer: Pointer | None) -> "Index":
        """Itself."""
        return self

    def clock(self, ns_id: int) -> int:
        """Up to date."""
        return 1

    def search(
        self,
        query: KeywordQuery,
        ns_ids: tuple[int, ...],
        *,
        depth: int,
        within: frozenset[MemoryId] | None = None,
    ) -> tuple[Candidate, ...]:
        """Nothing, late."""
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        self.released.wait()
        return ()

    def term_documents(self, terms: tuple[str, ...]) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Nothing to close."""


@dataclass(slots=True, kw_only=True)
class Searcher:
    """One thread for the calls of all searches, and what was said of the index."""

    index: Index
    calls: ArmCalls
    current: Pointer = OLD
    distrusted: list[str] = field(default_factory=list)

    def search(self) -> str:
        """Ask; the reason why there is no answer."""
        asked = Asked(
            ns_ids=(1,),
            vector=None,
            keywords=KeywordQuery(words=("a",), bigrams=()),
            matching=None,
            within=None,
            depth=5,
            wanted=(Arm.KEYWORD,),
            bm25=DEFAULT_FIELD_PARAMETERS,
        )
        view = ReadView(
            namespaces=(), pointers={"words": OLD}, incarnation="", now=datetime.now(UTC)
        )
        opened = self.calls.open(view, asked)
        self.calls.ask(opened, asked)
        return opened.reasons.get(Arm.KEYWORD, "")


@pytest.fixture
def searcher() -> Iterator[Searcher]:
    """A fresh one."""
    index = Index()
    with ThreadPoolExecutor(1) as executor:
        one = Searcher(
            index=index,
            calls=ArmCalls(
                vector_index=index,  # type: ignore[arg-type] # never asked
                keyword_index=index,  # type: ignore[arg-type] # takes what it is given here
                executor=executor,
                seconds=0.05,
                breakers={arm: Breaker(failures=100) for arm in Arm},
                pointer=lambda _target: one.current,
                distrust=lambda target, _reason: one.distrusted.append(target),
            ),
        )
        yield one
        index.released.set()


def test_calls_that_nobody_waits_for_any_more_are_not_made(searcher: Searcher) -> None:
    """Behind a server that hangs they would pile up, and keep the next searches waiting."""
    reasons = {searcher.search() for _ in range(5)}
    searcher.index.released.set()

    assert reasons == {"no answer within 0.05 s"}
    assert searcher.search() == ""
    assert searcher.index.asked == 2


def test_damage_is_reported(searcher: Searcher) -> None:
    """The index has to be built again."""
    searcher.index.fault = Corrupt()
    searcher.search()

    assert searcher.distrusted == ["words"]


def test_damage_of_an_index_that_was_replaced_meanwhile_is_not(searcher: Searcher) -> None:
    """The search began before the new one was there: that one has no fault."""
    searcher.index.fault = Corrupt()
    searcher.current = NEW
    searcher.search()

    assert searcher.distrusted == []


def test_a_question_that_an_index_refuses_is_not_its_fault(searcher: Searcher) -> None:
    """Whoever asks a question of ten thousand words must not have the index built again."""
    searcher.index.fault = InputError("too many words")

    assert "too many words" in searcher.search()
    assert searcher.distrusted == []
    assert searcher.calls.breakers[Arm.KEYWORD].condition is Condition.UP
