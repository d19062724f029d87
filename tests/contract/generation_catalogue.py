"""What every catalogue of generations has to do."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from memory_tool.errors import WriteConflict
from memory_tool.generations import successor_name
from memory_tool.port_values import DeadLetter, Pointer
from memory_tool.renewal_ports import GenerationCatalogue
from memory_tool.write_changes import Remove
from tests.contract.truth import Truth

TARGET = "t"
NEXT = successor_name(TARGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogued:
    """A catalogue beside its truth; ``letters`` counts the dead letters of a target."""

    truth: Truth
    catalogue: GenerationCatalogue
    letters: Callable[[str], int]

    def pointer(self, generation: int, mark: str) -> Pointer:
        """A generation of the target."""
        return Pointer(target=TARGET, generation=generation, locator="x", mark=mark)


class GenerationCatalogueContract:
    """Subclass it for an adapter and override ``catalogued``."""

    @pytest.fixture
    def catalogued(self) -> Catalogued:
        """An empty one beside an empty truth."""
        raise NotImplementedError

    def test_what_is_known_of_a_successor_is_adopted(self, catalogued: Catalogued) -> None:
        """Marks, so that searches believe it at once; and rows that it can't take."""
        truth, log = catalogued.truth, catalogued.truth.log
        (memory_id,) = truth.add("green tea")
        mark = truth.marked(NEXT)
        letter = DeadLetter(ns_id=truth.number(), memory_id=memory_id, version=1, reason="400")
        log.bury(NEXT, "keyword", letters=[letter], delivered={})
        log.note_progress(NEXT, {truth.number(): 1})
        assert not log.knows(TARGET, mark)
        catalogued.catalogue.adopt(TARGET)
        assert log.knows(TARGET, mark)
        assert log.knows(NEXT, mark)
        assert catalogued.letters(TARGET) == 1
        catalogued.catalogue.end_succession(TARGET)
        assert log.knows(TARGET, mark)
        assert not log.knows(NEXT, mark)
        assert catalogued.letters(NEXT) == 0

    def test_letters_that_a_successor_does_not_have_are_gone(self, catalogued: Catalogued) -> None:
        """What it took is found in it, and must not be read from the truth beside."""
        truth, log = catalogued.truth, catalogued.truth.log
        (memory_id,) = truth.add("green tea")
        letter = DeadLetter(ns_id=truth.number(), memory_id=memory_id, version=1, reason="400")
        log.bury(TARGET, "keyword", letters=[letter], delivered={})
        catalogued.catalogue.adopt(TARGET)
        assert catalogued.letters(TARGET) == 0

    def test_generations_are_noted_left_and_forgotten(self, catalogued: Catalogued) -> None:
        """One is read at a time; a copy is none that is."""
        catalogue = catalogued.catalogue
        mark = catalogued.truth.marked(TARGET)
        catalogue.note(catalogued.pointer(1, mark), "full")
        catalogue.note(catalogued.pointer(2, mark), "incremental", read=False)
        first, second = sorted(catalogue.kept(TARGET), key=lambda one: one.pointer.generation)
        assert (first.origin, first.left_at) == ("full", None)
        assert second.left_at is not None
        catalogue.note(catalogued.pointer(3, mark), "incremental")
        left = {one.pointer.generation: one.left_at for one in catalogue.kept(TARGET)}
        assert [number for number, left_at in left.items() if left_at is None] == [3]
        assert second.left_at == left[2]
        assert catalogue.now() >= second.made_at
        catalogue.forget(TARGET, [1, 3, 9])
        assert [one.pointer for one in catalogue.kept(TARGET)] == [catalogued.pointer(2, mark)]
        assert catalogue.kept("another") == ()

    def test_a_generation_noted_again_is_as_it_was_noted_last(self, catalogued: Catalogued) -> None:
        """An index on a server goes on under the same number, and ends with another mark."""
        catalogue = catalogued.catalogue
        first, last = catalogued.truth.marked(TARGET), catalogued.truth.marked(TARGET)
        catalogue.note(catalogued.pointer(1, first), "full")
        catalogue.note(catalogued.pointer(1, last), "full", read=False)
        (kept,) = catalogue.kept(TARGET)
        assert kept.pointer.mark == last
        assert kept.left_at is not None

    def test_there_is_no_way_back_below_a_purge(self, catalogued: Catalogued) -> None:
        """The deletion of what was purged would never come to it."""
        truth = catalogued.truth
        (memory_id, _) = truth.add("green tea", "black tea")
        truth.write(Remove(memory_id=memory_id))
        number = truth.number()
        catalogued.catalogue.go_back(TARGET, {number: 2})
        truth.purge(number, 3)
        with pytest.raises(WriteConflict, match="purged"):
            catalogued.catalogue.go_back(TARGET, {number: 2})
        catalogued.catalogue.go_back(TARGET, {number: 3})
        catalogued.catalogue.go_back(TARGET, {})
