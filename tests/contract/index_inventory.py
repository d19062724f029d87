"""What every inventory of an index has to tell of what its target was given."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pytest

from memory_tool.inventory import Entry, fingerprint_of
from memory_tool.inventory_ports import IndexInventory
from memory_tool.log_ports import IndexTarget
from memory_tool.model import EmbeddingSpace, MemoryId
from memory_tool.port_values import ChangeBatch, ChangeRow
from tests.contract.elasticsearch_pairs import PointerLog
from tests.factories import DIMENSION, chunk_of

STORE = "store-1"
TARGET = "folder-1"
SPACE = EmbeddingSpace(model="made", dimension=DIMENSION)


def memory_id(number: int) -> MemoryId:
    """An id that uses all its bits, from the lowest to the highest."""
    return f"{(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128:032x}"


def row(number: int, *texts: str, ns_id: int = 1, version: int = 1) -> ChangeRow:
    """A memory with a chunk for each text; without any it has to go."""
    chunks = tuple(chunk_of(text, ordinal=ordinal) for ordinal, text in enumerate(texts))
    return ChangeRow(
        ns_id=ns_id,
        memory_id=memory_id(number),
        nseq=version,
        version=version,
        live=bool(texts),
        extra="",
        chunk_high=3,
        chunks=chunks,
    )


def entry(number: int, *, ordinal: int = 0, version: int = 1) -> Entry:
    """What :func:`row` becomes."""
    return Entry(memory_id(number), ordinal, version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """An index with its target, and how to look at what it holds now."""

    target: IndexTarget
    look: Callable[[], AbstractContextManager[IndexInventory]]
    log: PointerLog = field(default_factory=PointerLog)

    def apply(self, *rows: ChangeRow, clocks: Mapping[int, int], mark: str = "") -> None:
        """Bring the index forward."""
        base = self.target.base()
        batch = ChangeBatch(
            rows=iter(rows),
            clocks=clocks,
            mark=mark or f"{base.mark}+",
            base_mark=base.mark,
            space=SPACE,
            store=STORE,
        )
        self.target.apply(batch, self.log)

    def entries(self, *ns_ids: int) -> set[tuple[int, Entry]]:
        """What is in these namespaces, or in all; each once."""
        with self.look() as inventory:
            found = list(inventory.entries(frozenset(ns_ids) if ns_ids else None))
        assert len(found) == len(set(found))
        return set(found)


class IndexInventoryContract:
    """Subclass it for an adapter and override ``inspected``; its target is named ``TARGET``."""

    @pytest.fixture
    def inspected(self) -> Inspected:
        """An empty index."""
        raise NotImplementedError

    def test_it_tells_each_chunk_in_its_version(self, inspected: Inspected) -> None:
        """With the clocks and the mark that hold for all of them."""
        inspected.apply(
            row(1, "tea", "茶"),
            row(2, "coffee", version=2),
            row(1, "water", ns_id=70),
            clocks={1: 2, 70: 1},
            mark="first",
        )
        assert inspected.entries() == {
            (1, entry(1)),
            (1, entry(1, ordinal=1)),
            (1, entry(2, version=2)),
            (70, entry(1)),
        }
        with inspected.look() as inventory:
            assert (inventory.mark, dict(inventory.clocks)) == ("first", {1: 2, 70: 1})

    def test_what_a_search_could_not_find_is_left_out(self, inspected: Inspected) -> None:
        """Deleted memories, older versions, and chunks that a shorter text no longer has."""
        inspected.apply(
            row(1, "one", "two", "three"), row(2, "four"), row(3, "five"), clocks={1: 3}
        )
        inspected.apply(
            row(1, "six", version=4), row(2, version=5), row(3, "seven", version=6), clocks={1: 6}
        )
        assert inspected.entries() == {(1, entry(1, version=4)), (1, entry(3, version=6))}

    def test_some_namespaces_are_told_alone(self, inspected: Inspected) -> None:
        """One that it lacks has nothing."""
        inspected.apply(
            *(row(1, "tea", ns_id=ns_id) for ns_id in (1, 2, 3)), clocks={1: 1, 2: 1, 3: 1}
        )
        assert inspected.entries(2) == {(2, entry(1))}
        assert inspected.entries(1, 3, 9) == {(1, entry(1)), (3, entry(1))}
        assert inspected.entries(9) == set()

    def test_fingerprints_are_those_of_the_entries(self, inspected: Inspected) -> None:
        """So that two sides which hold the same say the same; some memories can be left out."""
        inspected.apply(
            row(1, "tea", "茶"), row(2, "milk"), row(2, "milk", ns_id=2), clocks={1: 2, 2: 1}
        )
        ordinals = [entry(1), entry(1, ordinal=1)]
        with inspected.look() as inventory:
            everything = inventory.fingerprints(leaving_out={})
            some = inventory.fingerprints(leaving_out={1: frozenset({memory_id(2)})})
        assert everything == {
            1: fingerprint_of([*ordinals, entry(2)]),
            2: fingerprint_of([entry(2)]),
        }
        assert some == {1: fingerprint_of(ordinals), 2: fingerprint_of([entry(2)])}

    def test_a_look_does_not_change(self, inspected: Inspected) -> None:
        """What is applied meanwhile belongs to the next one."""
        inspected.apply(row(1, "tea"), clocks={1: 1}, mark="first")
        with inspected.look() as inventory:
            inspected.apply(row(1, version=2), row(2, "milk", version=3), clocks={1: 3})
            assert list(inventory.entries()) == [(1, entry(1))]
            assert (inventory.mark, dict(inventory.clocks)) == ("first", {1: 1})
        assert inspected.entries() == {(1, entry(2, version=3))}

    def test_many_are_told_in_parts_without_a_gap(self, inspected: Inspected) -> None:
        """However many are read at once; the adapter's test makes it few."""
        rows = [row(number, "tea", ns_id=number % 3 + 1) for number in range(100)]
        rows.sort(key=lambda one: one.ns_id)
        inspected.apply(*rows, clocks=dict.fromkeys((1, 2, 3), 1))
        assert inspected.entries() == {(one.ns_id, Entry(one.memory_id, 0, 1)) for one in rows}
