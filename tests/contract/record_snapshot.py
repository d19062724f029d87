"""What every snapshot of a record store has to show, and what it must not."""

from dataclasses import replace
from datetime import UTC, timedelta

import numpy as np
import pytest

from memory_tool.errors import ScopeRequired
from memory_tool.filters import parse_filter
from memory_tool.model import Chunk, Json, MemoryType, NewMemory, Patch, Tier
from memory_tool.port_values import DeadLetter, Opening
from memory_tool.query import EVERYTHING, Filter
from memory_tool.scope import Scope
from memory_tool.write_changes import Move, Remove, Revise
from tests.contract.truth import Truth, present
from tests.factories import ANNA, BEN, NOON, chunk_of, new_id, put, unit_vector

HALF_PRECISION = 1e-3


def where(**conditions: object) -> Filter:
    """A filter as callers write it."""
    return parse_filter(conditions, tz=UTC)


class SnapshotContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    # ── Tiers ──

    def test_words_of_lower_tiers_are_found_apart(self, truth: Truth) -> None:
        """Those of hot memories an index has; a store without lower ones is told by a number."""
        hot, warm, other = truth.add(
            "green tea", "black tea", NewMemory(content="x", tags=("tea",))
        )
        with truth.seen() as snapshot:
            assert snapshot.lowered == 0
            assert snapshot.lower_chunks_with(["tea"], 10, within=None) == ()
        truth.write(
            *(Move(memory_id=one, tier=Tier.WARM, nseq=n) for one, n in ((warm, 2), (other, 3)))
        )
        (foreign,) = truth.add("white tea", namespace=BEN)
        truth.write(Move(memory_id=foreign, tier=Tier.WARM, nseq=1), namespace=BEN)
        with truth.seen() as snapshot:
            assert snapshot.lowered == 2
            found = snapshot.lower_chunks_with(["tea", "green"], 10, within=None)
            assert {(one.memory_id, one.keyword_nseq) for one in found} == {(warm, 4), (other, 5)}
            (only,) = snapshot.lower_chunks_with(["tea"], 10, within=frozenset({hot, warm}))
            assert (only.memory_id, only.words) == (warm, "black tea")
            assert len(snapshot.lower_chunks_with(["tea"], 1, within=None)) == 1
            assert len(snapshot.chunks_with(["tea"], 10)) == 3

    def test_lower_memories_that_may_not_be_seen_are_not_found(self, truth: Truth) -> None:
        """Expired, deleted and hidden ones, by their words as little as otherwise."""
        expired, deleted, hidden = truth.add(
            NewMemory(content="old tea", expires_at=NOON), "gone tea", "bad tea"
        )
        truth.write(
            *(
                Move(memory_id=one, tier=Tier.WARM, nseq=number)
                for number, one in enumerate((expired, deleted, hidden), start=1)
            )
        )
        truth.write(Remove(memory_id=deleted))
        truth.quarantine(hidden)
        with truth.seen() as snapshot:
            assert snapshot.lower_chunks_with(["tea"], 10, within=None) == ()

    def test_a_moved_row_is_in_the_overlay_with_its_old_vector(self, truth: Truth) -> None:
        """The vector side is left alone: its number, and what an index holds, stay."""
        (memory_id,) = truth.add("green tea")
        truth.write(Move(memory_id=memory_id, tier=Tier.WARM, nseq=1))
        opening = Opening(namespaces={}, since={truth.number(): 1}, overlay_limit=10)
        with truth.seen(opening=opening) as snapshot:
            (row,) = present(snapshot.overlay)
            assert (row.nseq, row.vector_nseq, row.keyword_nseq, row.live) == (2, 1, 2, True)

    # ── One moment ──

    def test_a_snapshot_does_not_see_what_came_after_it(self, truth: Truth) -> None:
        """A search that mixed two moments could rank one row by another's version."""
        (first,) = truth.add("tea")
        with truth.seen() as snapshot:
            (second,) = truth.add("coffee")
            truth.write(Remove(memory_id=first))
            keys = truth.keys(first, second)
            assert set(snapshot.outlines(keys, EVERYTHING)) == {first}
            assert set(snapshot.rows(keys)) == {first}
            assert snapshot.matching_keys(EVERYTHING, 10) == frozenset(keys[:1])
            assert len(snapshot.chunks_with(["tea", "coffe"], 10)) == 1
            assert snapshot.clocks == {truth.number(): 1}
        with truth.seen() as snapshot:
            assert set(snapshot.outlines(keys, EVERYTHING)) == {second}

    def test_a_snapshot_of_nothing_is_refused(self, truth: Truth) -> None:
        """A forgotten scope must not read like an empty store."""
        with pytest.raises(ScopeRequired), truth.store.snapshot(Opening(namespaces={})):
            pass

    def test_rows_that_may_not_be_seen_are_dropped_everywhere(self, truth: Truth) -> None:
        """Even if both indexes propose them."""
        (seen,) = truth.add("green tea")
        expired, deleted, hidden = truth.add(
            NewMemory(content="old tea", expires_at=NOON), "gone tea", "bad tea"
        )
        truth.write(Remove(memory_id=deleted))
        truth.quarantine(hidden)
        (foreign,) = truth.add("green tea", namespace=BEN)
        keys = truth.keys(seen, expired, deleted, hidden, foreign, new_id())
        keys += truth.keys(foreign, namespace=BEN)
        with truth.seen() as snapshot:
            assert set(snapshot.outlines(keys, EVERYTHING)) == {seen}
            assert set(snapshot.rows(keys)) == {seen}
            assert snapshot.matching_keys(EVERYTHING, 10) == frozenset(keys[:1])
            assert {found.memory_id for found in snapshot.chunks_with(["tea"], 10)} == {seen}
            for wanted in (None, keys):
                stored = present(snapshot.vectors(wanted, 10))
                assert [found.memory_id for found in stored.references] == [seen]

    def test_a_row_lives_until_it_expires(self, truth: Truth) -> None:
        """Expiry is a moment, not a flag."""
        now = truth.store.view(Scope.of(ANNA), ()).now
        (memory_id,) = truth.add(NewMemory(content="tea", expires_at=now + timedelta(hours=1)))
        with truth.seen() as snapshot:
            assert set(snapshot.rows(truth.keys(memory_id))) == {memory_id}

    def test_a_row_is_found_in_its_own_namespace_only(self, truth: Truth) -> None:
        """A store may keep namespaces apart, and need not look for a row in the wrong place."""
        (memory_id,) = truth.add("tea")
        truth.add("coffee", namespace=BEN)
        right, wrong = truth.keys(memory_id), truth.keys(memory_id, namespace=BEN)
        with truth.seen(ANNA, BEN) as snapshot:
            for keys, found in ((right, {memory_id}), (wrong, set()), (wrong + right, {memory_id})):
                assert set(snapshot.outlines(keys, EVERYTHING)) == found
                assert set(snapshot.rows(keys)) == found
                assert len(present(snapshot.vectors(keys, 9)).references) == len(found)

    def test_several_namespaces_are_seen_together(self, truth: Truth) -> None:
        """A search of a user covers all of the user's projects."""
        (one,), (two,) = truth.add("tea"), truth.add("tea", namespace=BEN)
        with truth.seen(ANNA, BEN) as snapshot:
            rows = snapshot.rows(truth.keys(one) + truth.keys(two, namespace=BEN))
        assert (rows[one].memory.namespace, rows[two].memory.namespace) == (ANNA, BEN)
        assert (rows[one].ns_id, rows[two].ns_id) == (truth.number(ANNA), truth.number(BEN))

    # ── Light columns, filters ──

    def test_an_outline_tells_what_ranking_needs(self, truth: Truth) -> None:
        """Ranking never fetches content."""
        new = NewMemory(
            content="tea",
            type=MemoryType.EVENT,
            importance=4,
            pinned=True,
            confidence=0.25,
            occurred_at=NOON + timedelta(microseconds=250_000),
        )
        (memory_id,) = truth.add(new)
        truth.write(Revise(memory_id=memory_id, patch=Patch(metadata={"a": "b"})))
        with truth.seen() as snapshot:
            outline = snapshot.outlines(truth.keys(memory_id), EVERYTHING)[memory_id]
            row = snapshot.rows(truth.keys(memory_id))[memory_id]
        assert (outline.id, outline.ns_id) == (memory_id, truth.number())
        assert (outline.vector_nseq, outline.keyword_nseq) == (1, 2)
        assert outline.content_hash == row.content_hash
        assert (outline.type, outline.importance, outline.pinned) == (MemoryType.EVENT, 4, True)
        assert (outline.confidence, outline.event_time) == (0.25, NOON.timestamp() + 0.25)

    def test_outlines_meet_the_condition(self, truth: Truth) -> None:
        """What an arm could not push down is checked here."""
        red, blue = truth.add(
            NewMemory(content="a", metadata={"colour": "red", "size": 3}),
            NewMemory(content="b", metadata={"colour": "blue"}, tags=("x",)),
        )
        keys = truth.keys(red, blue, new_id())
        with truth.seen() as snapshot:
            assert set(snapshot.outlines(keys, where(colour="red"))) == {red}
            assert set(snapshot.outlines(keys, where(size={"gte": 3}))) == {red}
            assert set(snapshot.outlines(keys, where(tags={"contains": "x"}))) == {blue}
            assert set(snapshot.outlines(keys, where(colour={"icontains": "E"}))) == {red, blue}
            assert snapshot.outlines([], EVERYTHING) == {}

    def test_matching_keys_are_all_or_none(self, truth: Truth) -> None:
        """A part of the matches, handed to an arm as the whole, would hide the rest."""
        red = truth.add(*(NewMemory(content=f"{n}", metadata={"c": "red"}) for n in range(3)))
        truth.add(NewMemory(content="blue", metadata={"c": "blue"}))
        truth.add(NewMemory(content="red", metadata={"c": "red"}), namespace=BEN)
        with truth.seen() as snapshot:
            assert snapshot.matching_keys(where(c="red"), 3) == frozenset(truth.keys(*red))
            assert snapshot.matching_keys(where(c="red"), 2) is None
            assert snapshot.matching_keys(where(c="red", content_type="x"), 2) == frozenset()
            assert len(present(snapshot.matching_keys(where(NOT={"c": "red"}), 3))) == 1
            assert len(present(snapshot.matching_keys(EVERYTHING, 4))) == 4
            assert snapshot.matching_keys(EVERYTHING, 3) is None

    def test_metadata_of_every_kind_is_matched_by_value(self, truth: Truth) -> None:
        """Whichever way the store looks a value up, it finds the same rows."""
        values: tuple[Json, ...] = ("1", 1, True, None, 1.5, "ä%_'\\", "", [1, "1"], {"k": 1})
        ids = truth.add(
            *(NewMemory(content=f"{n}", metadata={"v": v}) for n, v in enumerate(values))
        )
        with truth.seen() as snapshot:
            for key, value in list(zip(truth.keys(*ids), values, strict=True))[:7]:
                assert snapshot.matching_keys(where(v=value), 9) == frozenset({key})

    # ── Vectors and tokens ──

    def test_vectors_come_back_with_their_places(self, truth: Truth) -> None:
        """Searching without an index is exact."""
        texts = ("tea", "green tea", "black tea")
        chunks = [chunk_of(text, ordinal=at) for at, text in enumerate(texts)]
        bare = replace(chunk_of("none", ordinal=3), embedding=None)
        (memory_id,) = truth.write(put("tea", *chunks, bare))
        truth.add("other")
        with truth.seen() as snapshot:
            stored = present(snapshot.vectors(truth.keys(str(memory_id.id)), 3))
            assert snapshot.vectors(truth.keys(str(memory_id.id)), 2) is None
            assert snapshot.vectors(None, 3) is None
            assert len(present(snapshot.vectors(None, 4)).references) == 4
            none = present(snapshot.vectors(truth.keys(new_id()), 3))
        assert (none.references, none.vectors.shape[0]) == ((), 0)
        assert stored.vectors.dtype == np.float32
        for reference, vector in zip(stored.references, stored.vectors, strict=True):
            expected = unit_vector(texts[reference.ordinal])
            assert np.abs(vector - expected).max() < HALF_PRECISION
            assert (reference.memory_id, reference.version) == (memory_id.id, 1)

    def test_chunks_are_found_by_words_bigrams_and_extra_words(self, truth: Truth) -> None:
        """The fallback of the keyword arm reaches what the arm reaches."""
        parts = (
            Chunk(ordinal=0, start=0, stop=3, language="en", words="green tea", bigrams=""),
            Chunk(ordinal=1, start=3, stop=5, language="zh", words="", bigrams="绿茶 茶叶"),
        )
        (both,) = truth.write(put(NewMemory(content="x", tags=("drinks",)), *parts))
        truth.add("coffee")

        def found(*terms: str) -> set[tuple[str, int]]:
            with truth.seen() as snapshot:
                return {(c.memory_id, c.ordinal) for c in snapshot.chunks_with(terms, 10)}

        memory_id = str(both.id)
        assert found("tea", "unheard") == {(memory_id, 0)}
        assert found("绿茶") == {(memory_id, 1)}
        assert found("drink") == found("drink", "tea") == {(memory_id, 0), (memory_id, 1)}
        assert found("te") == found("drinks") == found("") == found() == set()
        with truth.seen() as snapshot:
            (one,) = snapshot.chunks_with(["茶叶"], 10)
            assert len(snapshot.chunks_with(["drink"], 1)) == 1
        assert (one.words, one.bigrams, one.extra) == ("", "绿茶 茶叶", "drink")
        assert (one.ns_id, one.keyword_nseq) == (truth.number(), 1)

    def test_terms_are_counted_as_a_rebuild_left_them(self, truth: Truth) -> None:
        """Counts may be old; what was never counted is missing."""
        truth.add("tea")
        with truth.seen() as snapshot:
            assert snapshot.term_documents(["tea"]) == {}
        truth.count_terms({"": 9, "tea": 4, "other": 2})
        with truth.seen() as snapshot:
            assert snapshot.term_documents(["tea", "unheard"]) == {"": 9, "tea": 4}

    # ── Overlay and marks ──

    def test_the_overlay_holds_every_row_above_a_number(self, truth: Truth) -> None:
        """What the indexes don't have yet is searched all the same; deletions too."""
        truth.add("first")
        new = NewMemory(content="second", tags=("red",))
        second, third = truth.add(new, "third")
        expired, hidden = truth.add(NewMemory(content="old", expires_at=NOON), "bad")
        truth.write(Remove(memory_id=third))
        truth.quarantine(hidden)
        truth.add("foreign", namespace=BEN)
        opening = Opening(namespaces={}, since={truth.number(): 1}, overlay_limit=100)
        with truth.seen(opening=opening) as snapshot:
            rows = present(snapshot.overlay)
        assert [(row.memory_id, row.nseq, row.live) for row in rows] == [
            *((second, 2, True), (expired, 4, False)),
            *((third, 6, False), (hidden, 7, False)),
        ]
        assert all(row.vector_nseq == row.keyword_nseq == row.nseq for row in rows)
        assert rows[0].extra == "red"
        (chunk,) = rows[0].chunks
        assert (chunk.words, chunk.language, chunk.start, chunk.stop) == ("second", "en", 0, 6)
        assert np.abs(present(chunk.embedding) - unit_vector("second")).max() < HALF_PRECISION
        assert all(row.chunks == () for row in rows[1:])

    def test_the_overlay_is_in_the_order_of_numbers(self, truth: Truth) -> None:
        """A memo that is extended relies on it, within each namespace."""
        for number in range(30):
            ids = truth.add(f"a {number}", f"b {number}")
            chunks = (chunk_of("x", ordinal=1), chunk_of("y"))
            truth.write(put(f"c {number}", *chunks), put(f"d {number}", *chunks))
            truth.write(Revise(memory_id=ids[number % 2], patch=Patch(importance=number % 5 + 1)))
        opening = Opening(namespaces={}, since={truth.number(): 0}, overlay_limit=1000)
        with truth.seen(opening=opening) as snapshot:
            rows = present(snapshot.overlay)
        assert len(rows) == 120
        assert [row.nseq for row in rows] == sorted({row.nseq for row in rows})
        assert all(
            [chunk.ordinal for chunk in row.chunks] == list(range(len(row.chunks))) for row in rows
        )

    def test_an_overlay_of_too_many_rows_is_none(self, truth: Truth) -> None:
        """Then the caller goes another way, and must not think that nothing changed."""
        truth.add(*(f"note {number}" for number in range(5)))
        ns_id = truth.number()
        for since, limit, expected in ((0, 5, 5), (0, 4, None), (3, 2, 2), (5, 0, 0), (9, 0, 0)):
            opening = Opening(namespaces={}, since={ns_id: since}, overlay_limit=limit)
            with truth.seen(opening=opening) as snapshot:
                overlay = snapshot.overlay
            assert (None if overlay is None else len(overlay)) == expected

    def test_no_overlay_is_read_that_nobody_asked_for(self, truth: Truth) -> None:
        """Most reads need none."""
        truth.add("tea")
        with truth.seen() as snapshot:
            assert snapshot.overlay == ()

    def test_marks_of_another_history_are_missing(self, truth: Truth) -> None:
        """An index whose mark is unknown describes another store, whatever its clocks say."""
        truth.add("tea")
        known = truth.marked("x")
        marks = (("x", known), ("y", known), ("z", "never"))
        with truth.seen(opening=Opening(namespaces={}, marks=marks)) as snapshot:
            assert snapshot.missing_marks == {"y", "z"}
        with truth.seen() as snapshot:
            assert snapshot.missing_marks == frozenset()

    def test_a_row_that_a_target_refused_is_still_there(self, truth: Truth) -> None:
        """No search may lose a memory because an index can't take it."""
        (refused, other) = truth.add("green tea", "black tea")
        (foreign,) = truth.add("red tea", namespace=BEN)
        letters = [
            DeadLetter(ns_id=truth.number(), memory_id=refused, version=1, reason="400"),
            DeadLetter(ns_id=truth.number(BEN), memory_id=foreign, version=1, reason="400"),
        ]
        truth.log.bury("server", "keyword", letters=letters, delivered={})
        asking = Opening(namespaces={}, letters_of=("server", "folder"))
        with truth.seen(opening=asking) as snapshot:
            found = {target: rows for target, rows in (snapshot.undelivered or {}).items() if rows}
            ((name, (row,)),) = found.items()
        assert (name, row.memory_id, row.live) == ("server", refused, True)
        assert row.chunks[0].words == "green tea"
        with truth.seen() as snapshot:
            assert not snapshot.undelivered, "nobody asked for them"
        assert other != refused

    def test_a_refused_row_that_changed_is_delivered_anew(self, truth: Truth) -> None:
        """What was refused was another version; a deleted one needs no delivery."""
        (changed, deleted) = truth.add("green tea", "black tea")
        letters = [
            DeadLetter(ns_id=truth.number(), memory_id=memory_id, version=number, reason="400")
            for number, memory_id in enumerate((changed, deleted), start=1)
        ]
        truth.log.bury("server", "keyword", letters=letters, delivered={})
        truth.write(Revise(memory_id=changed, patch=Patch(tags=("drinks",))))
        truth.write(Remove(memory_id=deleted))
        truth.log.bury("server", "keyword", letters=(), delivered={})
        asking = Opening(namespaces={}, letters_of=("server",))
        with truth.seen(opening=asking) as snapshot:
            assert not any(present(snapshot.undelivered).values())

    def test_a_row_that_was_delivered_after_all_is_refused_no_more(self, truth: Truth) -> None:
        """A rebuilt index may take what another could not."""
        (taken, refused) = truth.add("green tea", "black tea")
        ns_id = truth.number()
        letters = [
            DeadLetter(ns_id=ns_id, memory_id=memory_id, version=number, reason="400")
            for number, memory_id in enumerate((taken, refused), start=1)
        ]
        truth.log.bury("server", "keyword", letters=letters, delivered={})
        truth.log.bury("server", "keyword", letters=(), delivered={ns_id: (0, 1)})
        asking = Opening(namespaces={}, letters_of=("server",))
        with truth.seen(opening=asking) as snapshot:
            (row,) = present(snapshot.undelivered)["server"]
        assert row.memory_id == refused
