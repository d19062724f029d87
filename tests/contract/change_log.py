"""What every change log has to hand to appliers."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np
import pytest

from memory_tool.model import Chunk, EmbeddingSpace, NewMemory, Patch, Tier
from memory_tool.port_values import ChangeRow, ForeignHistory, Opening, Pointer, TargetBase
from memory_tool.scope import Namespace, Scope
from memory_tool.write_changes import Move, Remove, Revise
from tests.contract.truth import NO_BASE, Truth
from tests.factories import ANNA, BEN, NOON, chunk_of, put, unit_vector

TARGET: Final = "folder"
Kind: TypeAlias = Literal["vector", "keyword"]
KINDS: Final[tuple[Kind, ...]] = ("vector", "keyword")


def read(
    truth: Truth, kind: Kind, *, base: TargetBase = NO_BASE, limit: int = 1000
) -> tuple[list[ChangeRow], TargetBase]:
    """All rows above a base, and where a target stands that applied them."""
    with truth.log.changes(TARGET, kind, base=base, limit=limit) as batch:
        rows = list(batch.rows)
        assert batch.base_mark == base.mark
        return rows, TargetBase(mark=batch.mark, clocks={**base.clocks, **batch.clocks})


class ChangeLogContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    def test_pending_counts_the_numbers_above(self, truth: Truth) -> None:
        """It decides when a batch is due."""
        assert truth.log.pending({}) == 0
        truth.add("a", "b")
        truth.add("c", namespace=BEN)
        anna, ben = truth.number(ANNA), truth.number(BEN)
        assert truth.log.pending({}) == 3
        assert truth.log.pending({anna: 1, ben: 1}) == 1
        assert truth.log.pending({anna: 9, ben: 0}) == 1
        truth.add("d")
        assert truth.log.pending({anna: 2, ben: 1}) == 1

    def test_a_lower_memory_leaves_the_keyword_index_and_no_other(self, truth: Truth) -> None:
        """For vectors nothing has changed; back in the hot tier its words are there again."""
        (memory_id,) = truth.add("green tea")
        _, words = read(truth, "keyword")
        _, vectors = read(truth, "vector")
        truth.write(Move(memory_id=memory_id, tier=Tier.WARM, nseq=1))
        (row,), words = read(truth, "keyword", base=words)
        assert (row.live, row.version, row.chunks) == (False, 2, ())
        rows, vectors = read(truth, "vector", base=vectors)
        assert rows == []
        assert vectors.clocks == {truth.number(): 2}
        (whole,), _ = read(truth, "vector")
        assert (whole.live, whole.version, len(whole.chunks)) == (True, 1, 1)
        truth.write(Move(memory_id=memory_id, tier=Tier.HOT, nseq=2))
        (row,), _ = read(truth, "keyword", base=words)
        assert (row.live, row.version, row.chunks[0].words) == (True, 3, "green tea")

    def test_rows_come_in_the_order_of_their_numbers(self, truth: Truth) -> None:
        """A batch that is cut must have passed everything below the cut."""
        ids = truth.add(*(f"note {number}" for number in range(40)))
        truth.add(*(f"note {number}" for number in range(10)), namespace=BEN)
        for memory_id in ids[5:30:5]:
            truth.write(Revise(memory_id=memory_id, patch=Patch(tags=("t",))))
        rows, base = read(truth, "keyword")
        places = [(row.ns_id, row.nseq) for row in rows]
        assert places == sorted(places)
        assert len({row.memory_id for row in rows}) == len(rows) == 50
        assert base.clocks == {truth.number(ANNA): 45, truth.number(BEN): 10}

    def test_a_row_says_what_a_target_has_to_hold(self, truth: Truth) -> None:
        """Tokens for one kind, vectors for the other, dead rows without either."""
        chunks = (chunk_of("green tea"), chunk_of("black tea", ordinal=1))
        (added,) = truth.write(put(NewMemory(content="tea", tags=("drinks",)), *chunks))
        deleted, hidden = truth.add("gone", "bad")
        (expired,) = truth.add(NewMemory(content="old", expires_at=NOON))
        truth.write(Remove(memory_id=deleted))
        truth.quarantine(hidden)
        for kind in KINDS:
            rows, _ = read(truth, kind)
            assert [(row.memory_id, row.nseq, row.version, row.live) for row in rows] == [
                *((added.id, 1, 1, True), (expired, 4, 4, True)),
                *((deleted, 5, 5, False), (hidden, 6, 6, False)),
            ]
            assert [row.chunks for row in rows[2:]] == [(), ()]
            assert [chunk.ordinal for chunk in rows[0].chunks] == [0, 1]
        rows, _ = read(truth, "vector")
        for chunk, text in zip(rows[0].chunks, ("green tea", "black tea"), strict=True):
            assert chunk.embedding is not None
            assert np.abs(chunk.embedding - unit_vector(text)).max() < 1e-3
        rows, _ = read(truth, "keyword")
        assert [chunk.words for chunk in rows[0].chunks] == ["green tea", "black tea"]
        assert (rows[0].extra, rows[2].extra, rows[3].chunks) == ("drink", "", ())

    def test_a_change_is_told_to_those_who_hold_what_changed(self, truth: Truth) -> None:
        """A pin moves the clock and rewrites nothing; a tag is in both indexes."""
        one, two, three = truth.add("a", "b", "c")
        _, vectors = read(truth, "vector")
        truth.write(Revise(memory_id=one, patch=Patch(pinned=True)))
        truth.write(Revise(memory_id=two, patch=Patch(metadata={"a": "b"})))
        truth.write(Revise(memory_id=three, patch=Patch(tags=("t",))))
        changed, base = read(truth, "vector", base=vectors)
        assert [(row.memory_id, row.version) for row in changed] == [(three, 6)]
        assert base.clocks == {truth.number(): 6}
        changed, _ = read(truth, "keyword", base=replace(vectors, mark=base.mark))
        assert [(row.memory_id, row.version) for row in changed] == [(two, 5), (three, 6)]

    def test_batches_that_are_cut_miss_nothing(self, truth: Truth) -> None:
        """However rows change between two batches, a follower ends up with the truth."""
        held: dict[str, int] = {}
        ids = truth.add(*(f"note {number}" for number in range(12)))
        truth.add(*(f"note {number}" for number in range(7)), namespace=BEN)
        base = NO_BASE
        for turn in range(40):
            rows, base = read(truth, "keyword", base=base, limit=4)
            assert len(rows) <= 4
            for row in rows:
                held[row.memory_id] = row.version if row.live else -1
            if turn < 10:
                truth.write(Revise(memory_id=ids[turn], patch=Patch(tags=(f"t{turn}",))))
                truth.write(Remove(memory_id=ids[-1 - turn % 3]))
        rows, final = read(truth, "keyword")
        assert truth.log.pending(base.clocks) == 0
        assert held == {row.memory_id: row.version if row.live else -1 for row in rows}
        assert final.clocks == base.clocks

    def test_a_batch_is_of_one_moment(self, truth: Truth) -> None:
        """Its clocks would otherwise promise rows that it does not hold."""
        ids = truth.add("a", "b")
        with truth.log.changes(TARGET, "keyword", base=NO_BASE, limit=1000) as batch:
            truth.add("c")
            truth.write(Remove(memory_id=ids[0]))
            rows = list(batch.rows)
        assert [(row.memory_id, row.live) for row in rows] == [(ids[0], True), (ids[1], True)]
        assert batch.clocks == {truth.number(): 2}

    def test_a_batch_names_store_and_space(self, truth: Truth) -> None:
        """A target of another store, or of another model, is refused by them."""
        truth.add("a")
        with truth.log.changes(TARGET, "vector", base=NO_BASE, limit=10) as first:
            assert first.space is None
        space = truth.spaces.record_space(EmbeddingSpace(model="m", dimension=8))
        with truth.log.changes("another", "keyword", base=NO_BASE, limit=10) as second:
            assert (second.space, second.store) == (space, first.store)
        assert len(first.store) == 32

    # ── Marks ──

    def test_a_mark_is_known_before_any_row_is_read(self, truth: Truth) -> None:
        """A target on a server carries it while it takes rows, and when it breaks off meanwhile.

        Were it not known, searches of that time would take the index for one of another history.
        """
        truth.add("a", "b")

        def missing(mark: str) -> frozenset[str]:
            opening = Opening(namespaces={}, marks=((TARGET, mark),))
            with truth.seen(opening=opening) as snapshot:
                return snapshot.missing_marks

        with (
            suppress(ZeroDivisionError),
            truth.log.changes(TARGET, "vector", base=NO_BASE, limit=10) as broken,
        ):
            assert missing(broken.mark) == frozenset()
            next(broken.rows)
            raise ZeroDivisionError
        assert missing(broken.mark) == frozenset()

    def test_rows_are_those_from_before_the_mark(self, truth: Truth) -> None:
        """A history that knows the mark has every row that the mark vouches for."""
        truth.add("a")
        with truth.log.changes(TARGET, "vector", base=NO_BASE, limit=10) as batch:
            truth.add("b")
            assert len(list(batch.rows)) == 1
            assert batch.clocks == {truth.number(): 1}

    def test_every_batch_has_a_mark_of_its_own(self, truth: Truth) -> None:
        """Two histories that read the same rows must not share one."""
        truth.add("a")
        marks = {truth.marked(TARGET) for _ in range(5)}
        assert len(marks) == 5

    def test_a_base_of_another_history_is_foreign(self, truth: Truth) -> None:
        """Its clocks may look right and mean other rows."""
        truth.add("a")
        mark = truth.marked("another")
        for unknown in ("never", mark):
            base = TargetBase(mark=unknown, clocks={truth.number(): 1})
            with (
                pytest.raises(ForeignHistory),
                truth.log.changes(TARGET, "vector", base=base, limit=10),
            ):
                pass

    def test_a_base_that_missed_a_purge_is_foreign(self, truth: Truth) -> None:
        """It would never hear of the deletion, and keep the row for ever."""
        one, _ = truth.add("a", "b")
        _, before = read(truth, "vector")
        truth.write(Remove(memory_id=one))
        _, after = read(truth, "vector", base=before)
        truth.add("c", namespace=BEN)
        truth.purge(truth.number(), 3)
        with (
            pytest.raises(ForeignHistory),
            truth.log.changes(TARGET, "vector", base=before, limit=10),
        ):
            pass
        rows, _ = read(truth, "vector", base=after)
        assert [row.ns_id for row in rows] == [truth.number(BEN)]
        unaware = TargetBase(mark=after.mark, clocks={truth.number(BEN): 1})
        rows, _ = read(truth, "vector", base=unaware)
        assert len(rows) == 1

    def test_threads_may_read_at_once(self, truth: Truth) -> None:
        """An applier and a look at its lag run side by side."""
        truth.add(*(f"note {number}" for number in range(20)))
        with ThreadPoolExecutor(4) as pool:
            sizes = list(pool.map(lambda _: len(read(truth, "vector")[0]), range(8)))
            pending = set(pool.map(lambda _: truth.log.pending({}), range(8)))
        assert (set(sizes), pending) == ({20}, {20})

    # ── Pointer and progress ──

    def pointer(self, mark: str, generation: int = 1) -> Pointer:
        """A pointer to a generation."""
        return Pointer(target=TARGET, generation=generation, locator="ab" * 32, mark=mark)

    def test_a_pointer_is_switched_only_from_where_it_stood(self, truth: Truth) -> None:
        """Of two who built upon the same generation, one wins and the other notices."""
        assert truth.log.pointer(TARGET) is None
        first, second, third = (self.pointer(truth.marked(TARGET), n) for n in (1, 2, 3))
        assert not truth.log.publish(second, base_mark=first.mark)
        assert truth.log.pointer(TARGET) is None
        assert truth.log.publish(first, base_mark=None)
        assert truth.log.pointer(TARGET) == first
        assert not truth.log.publish(third, base_mark=second.mark)
        assert truth.log.publish(second, base_mark=first.mark)
        assert not truth.log.publish(third, base_mark=first.mark)
        assert truth.log.pointer(TARGET) == second
        view = truth.store.view(Scope.of(Namespace(user="nobody")), (TARGET, "other"))
        assert view.pointers == {TARGET: second}

    def test_a_rebuild_takes_the_pointer_wherever_it_stood(self, truth: Truth) -> None:
        """It started from nothing because what the pointer names is worth nothing."""
        first, second = (self.pointer(truth.marked(TARGET), n) for n in (1, 2))
        assert truth.log.publish(first, base_mark=None)
        assert truth.log.publish(second, base_mark=None)
        assert truth.log.pointer(TARGET) == second

    def test_a_generation_of_another_history_is_never_published(self, truth: Truth) -> None:
        """The truth may have been restored between the reading and the switch."""
        assert not truth.log.publish(self.pointer("never"), base_mark=None)
        assert not truth.log.publish(self.pointer(truth.marked("another")), base_mark=None)
        assert truth.log.pointer(TARGET) is None

    def test_one_of_many_switches_wins(self, truth: Truth) -> None:
        """However close they come."""
        first = self.pointer(truth.marked(TARGET))
        truth.log.publish(first, base_mark=None)
        rivals = [self.pointer(truth.marked(TARGET), number) for number in range(2, 10)]
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(lambda p: truth.log.publish(p, base_mark=first.mark), rivals))
        assert won.count(True) == 1
        assert truth.log.pointer(TARGET) == rivals[won.index(True)]

    def test_progress_moves_no_pointer(self, truth: Truth) -> None:
        """It is noted for purging and health, also by targets without generations."""
        truth.add("a")
        truth.log.note_progress(TARGET, {truth.number(): 1})
        truth.log.note_progress(TARGET, {})
        assert truth.log.pointer(TARGET) is None
        mark = truth.marked(TARGET)
        assert truth.log.publish(self.pointer(mark), base_mark=None)
        truth.log.note_progress(TARGET, {truth.number(): 1})
        assert truth.log.pointer(TARGET) == self.pointer(mark)
        assert truth.marked(TARGET, TargetBase(mark=mark, clocks={}))

    def test_a_chunk_without_tokens_or_vector_is_told(self, truth: Truth) -> None:
        """The embedder may be down; the target decides what it can't hold."""
        bare = Chunk(ordinal=0, start=0, stop=1, language="en", words="", bigrams="")
        truth.write(put("x", bare))
        for kind in KINDS:
            (row,), _ = read(truth, kind)
            assert [(c.ordinal, c.words, c.embedding) for c in row.chunks] == [(0, "", None)]
