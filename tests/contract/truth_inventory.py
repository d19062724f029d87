"""What a truth has to say that an index should hold."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from memory_tool.inventory import NOTHING, Entry, Settled, fingerprint_of
from memory_tool.inventory_ports import TruthInventory
from memory_tool.model import Chunk, MemoryId, NewMemory, Patch, Tier
from memory_tool.port_values import DeadLetter
from memory_tool.write_changes import Move, Remove, Revise
from tests.contract.truth import Truth
from tests.factories import BEN, chunk_of, put

TARGET = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A truth with its inventory."""

    truth: Truth
    inventory: TruthInventory

    def settled(self, clock: int) -> Settled:
        """What a keyword index has to hold whose clock of ANNA is this one."""
        return self.inventory.settled(TARGET, "keyword", clocks={self.truth.number(): clock})

    def agrees(self, clock: int, entries: Iterable[Entry], *moving: MemoryId) -> bool:
        """Whether every answer for that clock says these entries, and these memories moving."""
        ns_id = self.truth.number()
        expected = list(entries)
        settled = self.settled(clock)
        told = self.inventory.entries(
            TARGET, "keyword", clocks={ns_id: clock}, ns_ids=frozenset({ns_id})
        )
        left_out = self.inventory.moving(TARGET, "keyword", clocks={ns_id: clock})
        return (
            settled.fingerprints.get(ns_id, NOTHING) == fingerprint_of(expected)
            and list(told) == [(ns_id, entry) for entry in sorted(expected)]
            and left_out == settled.moving == ({ns_id: frozenset(moving)} if moving else {})
        )


class TruthInventoryContract:
    """Subclass it for an adapter and override ``counted``."""

    @pytest.fixture
    def counted(self) -> Counted:
        """An empty truth."""
        raise NotImplementedError

    def test_living_chunks_up_to_the_clock_have_to_be_there(self, counted: Counted) -> None:
        """In the row's own version; rows above the clock may be or not, and are named."""
        long = put(NewMemory(content="one two"), chunk_of("one"), chunk_of("two", ordinal=1))
        (written,) = counted.truth.write(long)
        first = written.id or ""
        (second,) = counted.truth.add("three")
        chunks = [Entry(first, 0, 1), Entry(first, 1, 1)]
        assert counted.agrees(2, [*chunks, Entry(second, 0, 2)])
        assert counted.agrees(1, chunks, second)
        assert counted.agrees(0, [], first, second)

    def test_a_deleted_row_moves_until_the_clock_has_passed_it(self, counted: Counted) -> None:
        """Until then an index may still hold it."""
        first, second = counted.truth.add("one", "two")
        counted.truth.write(Remove(memory_id=first))
        assert counted.agrees(2, [Entry(second, 0, 2)], first)
        assert counted.agrees(3, [Entry(second, 0, 2)])

    def test_a_change_that_no_index_holds_moves_nothing(self, counted: Counted) -> None:
        """The row's own number counts, not that of any change."""
        (memory_id,) = counted.truth.add("one")
        counted.truth.write(Revise(memory_id=memory_id, patch=Patch(importance=5)))
        assert counted.agrees(1, [Entry(memory_id, 0, 1)])
        counted.truth.write(Revise(memory_id=memory_id, patch=Patch(tags=("tea",))))
        assert counted.agrees(1, [], memory_id)
        assert counted.agrees(3, [Entry(memory_id, 0, 3)])

    def test_what_an_index_does_not_hold_is_not_wanted(self, counted: Counted) -> None:
        """A chunk without tokens has no place in one, one without vector none in the other."""
        silent = Chunk(ordinal=0, start=0, stop=1, language="en", words="", bigrams="")
        results = counted.truth.write(put(NewMemory(content="…"), silent), put("tea"))
        tea = Entry(results[1].id or "", 0, 2)
        clocks = {counted.truth.number(): 2}
        vectors = counted.inventory.settled(TARGET, "vector", clocks=clocks)
        assert counted.agrees(2, [tea])
        assert vectors.fingerprints == {counted.truth.number(): fingerprint_of([tea])}

    def test_words_of_lower_memories_are_in_no_index(self, counted: Counted) -> None:
        """Their vectors are, in the version that they had before."""
        first, second = counted.truth.add("one", "two")
        counted.truth.write(Move(memory_id=first, tier=Tier.WARM, nseq=1))
        assert counted.agrees(3, [Entry(second, 0, 2)])
        clocks = {counted.truth.number(): 3}
        vectors = counted.inventory.settled(TARGET, "vector", clocks=clocks)
        both = fingerprint_of([Entry(first, 0, 1), Entry(second, 0, 2)])
        assert vectors.fingerprints == {counted.truth.number(): both}

    def test_what_a_target_can_not_take_moves(self, counted: Counted) -> None:
        """It may hold an older version of it, or nothing; other targets have to hold it."""
        first, second = counted.truth.add("green tea", "black tea")
        letter = DeadLetter(ns_id=counted.truth.number(), memory_id=first, version=1, reason="400")
        counted.truth.log.bury(TARGET, "keyword", letters=[letter], delivered={})
        assert counted.agrees(2, [Entry(second, 0, 2)], first)
        clocks = {counted.truth.number(): 2}
        assert counted.inventory.moving("other", "keyword", clocks=clocks) == {}

    def test_a_namespace_that_an_index_never_saw_moves_as_a_whole(self, counted: Counted) -> None:
        """It is late, not wrong; and one that the truth does not know has nothing."""
        (first,) = counted.truth.add("one")
        (other,) = counted.truth.add("two", namespace=BEN)
        anna, ben = counted.truth.number(), counted.truth.number(BEN)
        settled = counted.inventory.settled(TARGET, "vector", clocks={anna: 1, 999: 5})
        assert settled.fingerprints == {anna: fingerprint_of([Entry(first, 0, 1)])}
        assert settled.moving == {ben: frozenset({other})}
