"""What a record store has to do whose embedding model can be changed in place."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event
from typing import Final

import numpy as np
import pytest

from memory_tool.errors import InputError
from memory_tool.model import EmbeddingSpace, MemoryId, Patch, Vector
from memory_tool.port_values import Existing, Opening, WritePlan
from memory_tool.scope import Namespace
from memory_tool.space_ports import SpaceKeeper
from memory_tool.space_values import FilledChunk, Unembedded, target_in_space
from memory_tool.text.normalise import content_hash
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import NO_BASE, Truth, present
from tests.factories import ANNA, BEN, chunk_of, commit_of, put, unit_vector

OLD: Final = EmbeddingSpace(model="old", dimension=8)
NEW: Final = EmbeddingSpace(model="new", dimension=4, query_prefix="q: ")


def in_new(text: str) -> Vector:
    """The vector of a text in the new space, as it is read back."""
    return unit_vector(text, 4).astype(np.float16).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A truth with vectors in the old space, and what keeps its spaces."""

    truth: Truth
    keeper: SpaceKeeper

    def missing(self, space: int, *namespaces: Namespace) -> list[Unembedded]:
        """What lacks a vector, in these namespaces."""
        numbers = [self.truth.number(one) for one in namespaces or (ANNA,)]
        return list(self.keeper.missing(space, numbers))

    def fill(self, space: int, gaps: Sequence[Unembedded]) -> int:
        """Give these memories vectors of the new space."""
        filled = 0
        for gap in gaps:
            chunks = [
                FilledChunk(
                    memory_id=gap.memory_id,
                    content_hash=gap.content_hash,
                    ordinal=ordinal,
                    start=start,
                    stop=stop,
                    vector=unit_vector(present(gap.content)[start:stop], 4),
                )
                for ordinal, start, stop in gap.chunks
            ]
            filled += self.keeper.fill(space, gap.ns_id, chunks=chunks)
        return filled

    def changed(self) -> int:
        """Change to the new space; its number."""
        known = self.keeper.begin(NEW, embedder="new")
        self.fill(known.number, self.missing(known.number))
        self.keeper.build(known.number)
        self.keeper.switch(known.number)
        return known.number

    def add_in_new(self, text: str) -> MemoryId:
        """Commit a memory with a vector of the new space; its id."""
        commit = commit_of([put(text, chunk_of(text, dimension=4))])
        (result,) = self.truth.store.commit(replace(commit, space=NEW.name))
        return str(result.id)

    def stored(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Vector]:
        """The vectors that a search reads of these memories."""
        with self.truth.seen() as snapshot:
            found = present(snapshot.vectors(self.truth.keys(*ids), 100))
        return {
            one.memory_id: vector
            for one, vector in zip(found.references, found.vectors, strict=True)
        }


class SpaceKeeperContract:
    """Subclass it for an adapter and override ``kept``."""

    @pytest.fixture
    def kept(self) -> Kept:
        """An empty truth whose active space is the old one."""
        raise NotImplementedError

    # ── Which spaces there are ──

    def test_a_change_that_was_begun_is_gone_on_with(self, kept: Kept) -> None:
        """Whoever comes back finds what was left; two changes at a time would mix."""
        first = kept.keeper.begin(NEW, embedder="the new one")
        assert (first.state, first.embedder) == ("filling", "the new one")
        assert kept.keeper.begin(NEW, embedder="the new one") == first
        kept.keeper.build(first.number)
        assert kept.keeper.begin(NEW, embedder="the new one").state == "building"
        with pytest.raises(InputError, match="new/4 is not finished"):
            kept.keeper.begin(EmbeddingSpace(model="third", dimension=4), embedder="")
        assert kept.keeper.begin(OLD, embedder="").state == "active"

    def test_only_what_is_built_becomes_active(self, kept: Kept) -> None:
        """One space is active at any moment, and every reader is told which."""
        kept.truth.add("tea")
        number = kept.keeper.begin(NEW, embedder="").number
        with pytest.raises(InputError, match="not built"):
            kept.keeper.switch(number)
        kept.keeper.build(number)
        kept.keeper.switch(number)
        kept.keeper.switch(number)
        assert [(one.number, one.state) for one in kept.keeper.spaces()] == [
            (1, "kept"),
            (number, "active"),
        ]
        assert kept.truth.spaces.active_space() == NEW
        with kept.truth.seen() as snapshot:
            assert snapshot.space == number
        seen: list[int | None] = []

        def plan(existing: Existing) -> WritePlan:
            seen.append(existing.space)
            return WritePlan(changes=(), results=())

        kept.truth.store.commit(replace(commit_of([]), plan=plan))
        assert seen == [number]

    def test_a_write_beside_a_switch_is_waited_for(self, kept: Kept) -> None:
        """It began before, may end after, and has a vector of the space before."""
        kept.truth.add("tea")
        number = kept.keeper.begin(NEW, embedder="").number
        kept.keeper.build(number)
        begun, end = Event(), Event()
        commit = commit_of([put("coffee")])

        def slow(existing: Existing) -> WritePlan:
            begun.set()
            assert end.wait(20)
            return commit.plan(existing)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(kept.truth.store.commit, replace(commit, plan=slow))
            assert begun.wait(20)
            kept.keeper.switch(number)
            assert not kept.keeper.outlasted()
            end.set()
            writing.result()
        # Writes of other databases of the server are waited for as well.
        patience = time.monotonic() + 20
        while not kept.keeper.outlasted():
            assert time.monotonic() < patience

    # ── Vectors that are missing ──

    def test_what_is_filled_is_missing_no_more(self, kept: Kept) -> None:
        """Chunk by chunk, over namespaces, however many; only of what is live."""
        ids = kept.truth.add(*(f"note {n}" for n in range(40)))
        kept.truth.add("other", namespace=BEN)
        kept.truth.quarantine(ids[0])
        kept.truth.write(Remove(memory_id=ids[1]))
        number = kept.keeper.begin(NEW, embedder="").number
        gaps = kept.missing(number, ANNA, BEN)
        assert {gap.content for gap in gaps} == {f"note {n}" for n in range(2, 40)} | {"other"}
        assert kept.keeper.count_missing(number) == (39, 39)
        assert kept.fill(number, gaps[:35]) == 35
        assert kept.missing(number, ANNA, BEN) == gaps[35:]
        assert kept.keeper.count_missing(number) == (4, 39)

    def test_filling_takes_numbers_once_indexes_follow(self, kept: Kept) -> None:
        """Before, nothing has to hear of it; then an index has passed the rows already."""
        kept.truth.add("tea", "coffee")
        number = kept.keeper.begin(NEW, embedder="").number
        first, second = kept.missing(number)
        kept.fill(number, [first])
        assert kept.truth.clock() == 2
        kept.keeper.build(number)
        kept.fill(number, [second])
        assert kept.truth.clock() == 3
        base = replace(NO_BASE, clocks={kept.truth.number(): 2})
        target = target_in_space("x", number)
        with kept.truth.log.changes(target, "vector", base=base, limit=10) as batch:
            (row,) = batch.rows
            assert batch.space == NEW
        assert row.memory_id == second.memory_id
        assert present(row.chunks[0].embedding).size == 4

    def test_a_vector_of_a_text_that_changed_is_not_kept(self, kept: Kept) -> None:
        """It was made from what the memory said before."""
        (memory_id,) = kept.truth.add("tea")
        number = kept.keeper.begin(NEW, embedder="").number
        before = kept.missing(number)
        kept.truth.write(reworded(memory_id, "coffee"))
        assert kept.fill(number, before) == 0
        kept.fill(number, kept.missing(number))
        kept.truth.write(reworded(memory_id, "milk"))
        assert [gap.content for gap in kept.missing(number)] == ["milk"]

    def test_the_active_space_is_what_everybody_reads(self, kept: Kept) -> None:
        """A search and an overlay, wherever a row keeps its vectors; each target its own space."""
        old, gone = kept.truth.add("tea", "gone")
        number = kept.changed()
        new = kept.add_in_new("coffee")
        kept.truth.write(Remove(memory_id=gone))
        stored = kept.stored([old, new, gone])
        assert set(stored) == {old, new}
        assert np.array_equal(stored[old], in_new("tea"))
        assert np.array_equal(stored[new], in_new("coffee"))
        ns_id = kept.truth.number()
        with kept.truth.seen(
            opening=Opening(namespaces={}, since={ns_id: 0}, overlay_limit=9)
        ) as s:
            rows = {row.memory_id: row for row in present(s.overlay)}
        assert np.array_equal(present(rows[old].chunks[0].embedding), in_new("tea"))
        with kept.truth.log.changes(
            target_in_space("x", 1), "vector", base=NO_BASE, limit=9
        ) as batch:
            before = {row.memory_id: row for row in batch.rows}
        assert present(before[old].chunks[0].embedding).size == 8
        assert before[new].chunks[0].embedding is None
        assert [gap.memory_id for gap in kept.missing(1)] == [new]
        assert kept.missing(number) == []

    def test_what_is_forgotten_leaves_nothing(self, kept: Kept) -> None:
        """Vectors of the active space move into their rows, the others go."""
        old, bare = kept.truth.add("tea", "bare")
        number = kept.changed()
        new = kept.add_in_new("coffee")
        kept.keeper.close_others()
        kept.keeper.settle(kept.truth.number())
        assert kept.keeper.forget_others() == 1
        assert [one.number for one in kept.keeper.spaces()] == [number]
        stored = kept.stored([old, bare, new])
        assert {key: vector.size for key, vector in stored.items()} == {old: 4, bare: 4, new: 4}
        assert np.array_equal(stored[old], in_new("tea"))
        # A number is never used again: files are named by it.
        assert kept.keeper.begin(OLD, embedder="").number > number

    # ── Samples, and what is made of them ──

    def test_samples_are_of_their_space(self, kept: Kept) -> None:
        """A measure of one space must not see a vector of another."""
        kept.truth.add(*(f"note {n}" for n in range(20)))
        assert kept.keeper.sample(2, 50).references == ()
        number = kept.changed()
        assert kept.keeper.sample(number, 50).vectors.shape == (20, 4)
        assert kept.keeper.sample(1, 5).vectors.shape == (5, 8)
        texts = kept.keeper.texts(number, 50)
        assert {one.text for one in texts} == {f"note {n}" for n in range(20)}
        assert all(np.array_equal(one.vector, in_new(one.text)) for one in texts)
        ns_id = kept.truth.number()
        assert present(kept.keeper.namespace(number, ns_id, limit=20)).vectors.shape == (20, 4)
        assert kept.keeper.namespace(number, ns_id, limit=19) is None

    def test_a_side_structure_is_kept_for_its_space(self, kept: Kept) -> None:
        """The latest content counts, and goes with its space."""
        assert kept.keeper.kept("calibration", 1) is None
        for content in ({"relevant": 0.5}, {"relevant": 0.75}):
            kept.keeper.keep("calibration", 1, content=content)
        assert kept.keeper.kept("calibration", 1) == {"relevant": 0.75}
        assert kept.keeper.kept("calibration", 2) is None
        kept.truth.add("tea")
        kept.changed()
        kept.keeper.forget_others()
        assert kept.keeper.kept("calibration", 1) is None


def reworded(memory_id: MemoryId, text: str) -> Revise:
    """A new text for a memory."""
    return Revise(
        memory_id=memory_id,
        patch=Patch(content=text),
        content_hash=content_hash(text),
        chunks=(chunk_of(text),),
    )
