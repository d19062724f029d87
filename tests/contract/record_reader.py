"""What every record reader has to return, and what every space registry has to record."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory_tool.errors import TooManyNamespaces
from memory_tool.filters import parse_filter
from memory_tool.model import EmbeddingSpace, MemoryId, MemoryType, NewMemory, Patch, Turn
from memory_tool.port_values import PageRequest
from memory_tool.query import EVERYTHING
from memory_tool.scope import Namespace, Scope
from memory_tool.text.normalise import content_hash
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import Truth, contents
from tests.factories import ANNA, BEN, NOON, chunk_of, new_id

ALL_OF_ANNA = Scope.of(ANNA)


class RecordReaderContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    def test_a_memory_comes_back_as_it_was_given(self, truth: Truth) -> None:
        """Every field, in every script."""
        new = NewMemory(
            content="客户张先生偏好蓝色 🦊\n\ttea",
            type=MemoryType.PREFERENCE,
            importance=5,
            pinned=True,
            confidence=0.1,
            source={"kind": "邮件", "path": ["a", 1, None]},
            tags=("蓝色", "blue"),
            metadata={"a": {"b": [1, 2.5, True, None, "茶"]}, "": "empty name"},
            occurred_at=NOON,
            expires_at=datetime(9999, 1, 1, tzinfo=NOON.tzinfo),
            key="a key",
            run_id="run",
            turn=Turn(conversation_id="c", position=7, role="user", name="张"),
        )
        (memory_id,) = truth.add(new)
        memory = truth.fetched(memory_id)
        for name in (
            *("content", "type", "importance", "pinned", "confidence", "source", "tags"),
            *("metadata", "occurred_at", "expires_at", "key", "run_id", "turn"),
        ):
            assert getattr(memory, name) == getattr(new, name)
        assert (memory.version, memory.namespace) == (1, ANNA)
        assert memory.created_at == memory.updated_at

    def test_a_plain_memory_has_nothing_more(self, truth: Truth) -> None:
        """What was not given is missing, not zero."""
        (memory_id,) = truth.add("tea")
        memory = truth.fetched(memory_id)
        absent = {memory.importance, memory.occurred_at, memory.turn, memory.key, memory.run_id}
        assert absent == {None}
        assert (memory.tags, memory.source, memory.metadata) == ((), {}, {})
        assert memory.event_time == memory.created_at

    def test_fetching_leaves_out_what_may_not_be_seen(self, truth: Truth) -> None:
        """A miss and a secret look the same."""
        seen, expired, deleted, hidden = truth.add(
            "a", NewMemory(content="b", expires_at=NOON), "c", "d"
        )
        truth.write(Remove(memory_id=deleted))
        truth.quarantine(hidden)
        (foreign,) = truth.add("e", namespace=BEN)
        ids = [seen, expired, deleted, hidden, foreign, new_id()]
        assert set(truth.reader.fetch(ALL_OF_ANNA, ids)) == {seen}
        assert set(truth.reader.fetch(Scope.of(ANNA, BEN), ids)) == {seen, foreign}
        assert truth.reader.fetch(ALL_OF_ANNA, []) == {}
        assert truth.reader.fetch(ALL_OF_ANNA, ["", "no id", seen.upper(), "{},\"'", "\0"]) == {}
        assert truth.reader.fetch(Scope.of(Namespace(user="nobody")), ids) == {}

    # ── Pages ──

    def paged(self, truth: Truth, scope: Scope, *, size: int) -> list[MemoryId]:
        """The ids of all pages."""
        request = PageRequest(condition=EVERYTHING, limit=size)
        found: list[MemoryId] = []
        while page := truth.reader.page(scope, request):
            found += [row.memory.id for row in page]
            last = page[-1].memory
            request = replace(request, after=(last.event_time, last.id))
        return found

    def test_pages_are_newest_first_without_repeat_or_gap(self, truth: Truth) -> None:
        """Equal times are common in imports: the id decides."""
        times = {f"{number}": NOON + timedelta(days=number // 4) for number in range(20)}
        news = [NewMemory(content=text, occurred_at=time) for text, time in times.items()]
        ids = truth.add(*news[::2]) + truth.add(*news[1::2], namespace=BEN)
        rows = truth.reader.fetch(Scope.of(ANNA, BEN), ids)
        expected = sorted(ids, key=lambda one: (-rows[one].memory.event_time.timestamp(), one))
        for size in (1, 3, 20, 50):
            assert self.paged(truth, Scope.of(ANNA, BEN), size=size) == expected
        own = [one for one in expected if rows[one].memory.namespace == ANNA]
        assert self.paged(truth, ALL_OF_ANNA, size=3) == own

    def test_rows_added_meanwhile_disturb_no_page(self, truth: Truth) -> None:
        """A listing that counts rows would repeat one for each row added before it."""
        times = [NOON + timedelta(days=number) for number in range(6)]
        ids = truth.add(*(NewMemory(content=f"{t}", occurred_at=t) for t in times))
        request = PageRequest(condition=EVERYTHING, limit=3)
        first = truth.reader.page(ALL_OF_ANNA, request)
        truth.add(NewMemory(content="newest", occurred_at=NOON + timedelta(days=99)))
        late = truth.add(NewMemory(content="late", occurred_at=NOON + timedelta(hours=30)))
        truth.write(Remove(memory_id=first[-1].memory.id))
        after = (first[-1].memory.event_time, first[-1].memory.id)
        second = truth.reader.page(ALL_OF_ANNA, replace(request, limit=9, after=after))
        assert [row.memory.id for row in second] == [ids[2], *late, ids[1], ids[0]]

    def test_pages_hold_what_meets_the_condition(self, truth: Truth) -> None:
        """And nothing that may not be seen."""
        truth.add("plain", NewMemory(content="expired", tags=("x",), expires_at=NOON))
        wanted = truth.add(*(NewMemory(content=f"{n}", tags=("x",)) for n in range(3)))
        truth.add(NewMemory(content="foreign", tags=("x",)), namespace=BEN)
        condition = parse_filter({"tags": "x"}, tz=UTC)
        page = truth.reader.page(ALL_OF_ANNA, PageRequest(condition=condition, limit=10))
        assert {row.memory.id for row in page} == set(wanted)
        nobody = Scope.of(Namespace(user="nobody"))
        assert truth.reader.page(nobody, PageRequest(condition=EVERYTHING, limit=1)) == ()

    # ── History and deletions ──

    def test_history_goes_from_the_oldest_kept_version_to_the_current(self, truth: Truth) -> None:
        """Ten old versions stay beside the current one."""
        (memory_id,) = truth.add(NewMemory(content="v1", tags=("茶",), occurred_at=NOON))
        for number in range(2, 15):
            text = f"v{number}"
            change = Revise(
                memory_id=memory_id,
                patch=Patch(content=text, metadata={"n": number}),
                content_hash=content_hash(text),
                chunks=(chunk_of(text),),
            )
            truth.write(change)
        history = truth.reader.history(ALL_OF_ANNA, memory_id)
        assert contents(history) == [f"v{number}" for number in range(4, 15)]
        assert [memory.version for memory in history] == list(range(4, 15))
        assert history[0].metadata == {"n": 4}
        assert history[-1] == truth.fetched(memory_id)
        then = history[0].updated_at
        metadata = {"n": 4}
        assert history[0] == replace(
            history[-1], content="v4", version=4, metadata=metadata, updated_at=then
        )

    def test_history_of_what_may_not_be_seen_is_empty(self, truth: Truth) -> None:
        """Old versions are no way round a deletion, an expiry or a scope."""
        ids = truth.add("a", "b", "c", "d")
        for memory_id in ids:
            truth.write(Revise(memory_id=memory_id, patch=Patch(importance=2)))
        truth.write(Remove(memory_id=ids[0]))
        truth.write(Revise(memory_id=ids[1], patch=Patch(expires_at=NOON)))
        truth.quarantine(ids[2])
        for memory_id in (*ids[:3], new_id()):
            assert truth.reader.history(ALL_OF_ANNA, memory_id) == ()
        assert len(truth.reader.history(ALL_OF_ANNA, ids[3])) == 2
        truth.add("x", namespace=BEN)
        assert truth.reader.history(Scope.of(BEN), ids[3]) == ()

    def test_a_deletion_is_remembered_in_its_scope(self, truth: Truth) -> None:
        """A deletion and a miss are told apart, but only by those who may know."""
        deleted, kept = truth.add("a", "b")
        truth.write(Remove(memory_id=deleted))
        truth.add("c", namespace=BEN)
        ids = [deleted, kept, new_id()]
        assert truth.reader.deleted(ALL_OF_ANNA, ids) == {deleted}
        assert truth.reader.deleted(Scope.of(BEN), ids) == frozenset()
        truth.purge(truth.number(), truth.clock())
        assert truth.reader.deleted(ALL_OF_ANNA, ids) == frozenset()

    def test_counts_are_of_what_may_be_seen(self, truth: Truth) -> None:
        """Figures for health, without content."""
        assert truth.reader.counts() == {"namespaces": 0, "memories": 0}
        ids = truth.add("a", "b", NewMemory(content="c", expires_at=NOON))
        truth.add("a", namespace=BEN)
        truth.write(Remove(memory_id=ids[0]))
        assert truth.reader.counts() == {"namespaces": 2, "memories": 2}

    def test_a_read_covers_at_most_1000_namespaces(self, truth: Truth) -> None:
        """As a search does."""
        with ThreadPoolExecutor(8) as pool:
            names = [Namespace(project="p", user=f"u{number}") for number in range(1001)]
            list(pool.map(lambda name: truth.write(namespace=name), names))
        scope = Scope.of(Namespace(project="p"))
        with pytest.raises(TooManyNamespaces):
            truth.reader.fetch(scope, [new_id()])
        with pytest.raises(TooManyNamespaces):
            truth.reader.page(scope, PageRequest(condition=EVERYTHING, limit=1))


class SpaceRegistryContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    def test_a_new_store_has_no_space(self, truth: Truth) -> None:
        """Whoever opens it first decides."""
        assert truth.spaces.active_space() is None

    def test_the_first_space_wins(self, truth: Truth) -> None:
        """Vectors of two models can't be compared, so a store has one."""
        spaces = [
            EmbeddingSpace(model=f"m{n}", dimension=8, revision="r", query_prefix="q: ")
            for n in range(8)
        ]
        with ThreadPoolExecutor(8) as pool:
            recorded = set(pool.map(truth.spaces.record_space, spaces))
        assert len(recorded) == 1
        assert truth.spaces.active_space() in spaces
        assert recorded == {truth.spaces.active_space()}

    def test_recording_again_changes_nothing(self, truth: Truth) -> None:
        """Each process records its space when it opens."""
        space = EmbeddingSpace(model="m", dimension=8, passage_prefix="passage: ", normalised=False)
        for _ in range(2):
            assert truth.spaces.record_space(space) == truth.spaces.active_space() == space
