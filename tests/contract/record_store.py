"""What every record store has to do when it is written to, and which namespaces a scope names."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_tool.errors import IdempotencyConflict, TooManyNamespaces
from memory_tool.model import EmbeddingSpace, NewMemory, OnDuplicate, Patch, State, Status
from memory_tool.port_values import Commit, Existing, Lookup, Opening, WritePlan
from memory_tool.query import EVERYTHING
from memory_tool.scope import Namespace, Scope
from memory_tool.text.normalise import content_hash
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import Truth, present
from tests.factories import ANNA, BEN, NOON, chunk_of, commit_of, new_id, put

THREADS = 8

ODD_IDS = ("_", "%", "*", "/", "-", ".", "a_b", "a%", "李雷", "🦊", "a/b", "'; --", '"', "\\", " x")


class RecordStoreContract:
    """Subclass it for an adapter and override ``truth``."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty truth."""
        raise NotImplementedError

    # ── Vectors of one space ──

    def test_vectors_of_another_space_are_not_stored(self, truth: Truth) -> None:
        """A writer that has not heard of a change of model must not mix two of them."""
        space = truth.spaces.record_space(EmbeddingSpace(model="m", dimension=8))
        for name, text in ((space.name, "right"), ("other/8", "late"), (None, "unnamed")):
            truth.store.commit(replace(commit_of([put(text)]), space=name))
        with truth.seen() as snapshot:
            stored = {one.memory_id for one in present(snapshot.vectors(None, 10)).references}
            rows = snapshot.rows(truth.keys(*stored)).values()
            assert snapshot.space == 1
        assert {row.memory.content for row in rows} == {"right", "unnamed"}
        assert truth.store.view(Scope.of(ANNA), ()).space == 1

    # ── Numbers, locks and idempotency ──

    def test_numbers_are_dense_and_in_the_order_of_commits(self, truth: Truth) -> None:
        """An applier that read up to a number must never meet a smaller one afterwards."""
        seen: list[tuple[int, int]] = []

        def write(number: int) -> None:
            commit = commit_of([put(f"note {number}"), put(f"more {number}")])

            def plan(existing: Existing) -> WritePlan:
                planned = commit.plan(existing)
                # Still under the lock: nobody else can append in between.
                seen.append((existing.nseq, len(planned.changes)))
                return planned

            truth.store.commit(replace(commit, plan=plan))

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(write, range(40)))
        assert seen == [(number, 2) for number in range(0, 80, 2)]
        with truth.seen() as snapshot:
            keys = snapshot.matching_keys(EVERYTHING, 1000) or frozenset()
            rows = snapshot.rows(list(keys)).values()
        assert sorted(row.nseq for row in rows) == list(range(1, 81))
        assert truth.clock() == 80

    def test_a_plan_sees_what_the_plan_before_it_wrote(self, truth: Truth) -> None:
        """Two writers of the same text that both saw nothing would store it twice."""
        started = threading.Barrier(THREADS)

        def write(_: int) -> Status:
            started.wait()
            return truth.write(put("tea is green"))[0].status

        with ThreadPoolExecutor(THREADS) as pool:
            statuses = list(pool.map(write, range(THREADS)))
        assert sorted(statuses) == [Status.ADDED] + [Status.DUPLICATE] * (THREADS - 1)

    def test_namespaces_do_not_wait_for_each_other(self, truth: Truth) -> None:
        """A slow plan of one user must not stop all the others."""

        def plan(_: Existing) -> WritePlan:
            truth.add("tea", namespace=BEN)
            return WritePlan(changes=(), results=())

        truth.plan(plan, namespace=ANNA)
        assert (truth.clock(ANNA), truth.clock(BEN)) == (0, 1)

    def test_a_repetition_returns_the_first_answer(self, truth: Truth) -> None:
        """A client that lost the answer asks again, and must not store twice."""
        commit = commit_of([put("tea")], key="once")
        first = truth.store.commit(commit)

        def never(existing: Existing) -> WritePlan:
            raise AssertionError(existing)

        assert truth.store.commit(replace(commit, plan=never)) == first
        assert truth.clock() == 1

    def test_a_key_is_of_one_request(self, truth: Truth) -> None:
        """Returning the answer of another request would be a lie."""
        truth.store.commit(commit_of([put("tea")], key="once"))
        with pytest.raises(IdempotencyConflict, match="'once'"):
            truth.store.commit(commit_of([put("coffee")], key="once", request=b"another"))
        assert truth.clock() == 1

    def test_a_key_is_of_one_namespace(self, truth: Truth) -> None:
        """Two users may choose the same key."""
        for namespace in (ANNA, BEN):
            truth.store.commit(commit_of([put("tea")], namespace, key="once"))
        assert (truth.clock(ANNA), truth.clock(BEN)) == (1, 1)

    def test_concurrent_twins_have_one_effect(self, truth: Truth) -> None:
        """A client may give up and repeat while its first call is still running."""
        commit = commit_of([put("tea"), put("coffee")], key="k" * 4000)
        started = threading.Barrier(THREADS)

        def write(_: int) -> tuple[str | None, ...]:
            started.wait()
            return tuple(result.id for result in truth.store.commit(commit))

        with ThreadPoolExecutor(THREADS) as pool:
            answers = set(pool.map(write, range(THREADS)))
        assert len(answers) == 1
        assert truth.clock() == 2

    def test_an_answer_without_changes_is_remembered_too(self, truth: Truth) -> None:
        """Otherwise its repetition could do something else."""
        commit = commit_of([Remove(memory_id=new_id())], key="once")
        first = truth.store.commit(commit)
        assert first[0].status is Status.FAILED
        assert truth.store.commit(commit) == first
        assert truth.clock() == 0

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_plan_that_fails_leaves_nothing(
        self, truth: Truth, error: type[BaseException]
    ) -> None:
        """All or nothing; and the lock is free again."""

        def plan(_: Existing) -> WritePlan:
            raise error

        commit = commit_of([put("tea")], key="once")
        with pytest.raises(error):
            truth.store.commit(replace(commit, plan=plan))
        assert truth.store.view(Scope.of(ANNA), ()).namespaces == ()
        truth.store.commit(commit)
        assert truth.clock() == 1

    def test_the_stamp_is_new_with_each_number(self, truth: Truth) -> None:
        """After a restore clocks repeat; a cache keyed by stamps must not hit."""

        def stamp() -> int:
            return truth.store.view(Scope.of(ANNA), ()).namespaces[0].stamp

        stamps = [truth.add(f"note {number}") and stamp() for number in range(5)]
        assert len(set(stamps)) == 5
        truth.write(Remove(memory_id=new_id()))
        assert stamp() == stamps[-1]

    # ── Duplicates and keys ──

    def test_a_text_is_unique_among_live_rows(self, truth: Truth) -> None:
        """A conversation repeats itself; memory should not."""
        (first,) = truth.write(put("tea"))
        (second,) = truth.write(put("tea"))
        assert (second.status, second.id) == (Status.DUPLICATE, first.id)
        assert truth.write(put("tea"), namespace=BEN)[0].status is Status.ADDED

    def test_free_rows_may_repeat_a_text(self, truth: Truth) -> None:
        """Rows with a key and kept ones are told apart by something else."""
        kept = NewMemory(content="tea", on_duplicate=OnDuplicate.KEEP)
        news = [kept, kept, NewMemory(content="tea", key="a"), NewMemory(content="tea", key="b")]
        assert {result.status for result in truth.write(*map(put, news))} == {Status.ADDED}

    @pytest.mark.parametrize("key", ["city", "k" * 5000, "键" * 2000])
    def test_a_key_is_an_upsert(self, truth: Truth, key: str) -> None:
        """One key, one memory; keys may be longer than an index entry."""
        (first,) = truth.write(put(NewMemory(content="lives in Oslo", key=key)))
        (second,) = truth.write(put(NewMemory(content="lives in Rome", key=key)))
        assert (second.status, second.id, second.version) == (Status.UPDATED, first.id, 2)
        truth.write(Remove(memory_id=str(first.id)))
        (third,) = truth.write(put(NewMemory(content="lives in Bonn", key=key)))
        assert third.status is Status.ADDED

    def test_an_expired_twin_is_retired_in_the_same_commit(self, truth: Truth) -> None:
        """Its hash or key would stand in the way of a text that nobody can see any more."""
        old = NewMemory(content="tea", expires_at=NOON)
        keyed = NewMemory(content="coffee", key="drink", expires_at=NOON)
        expired = truth.add(old, keyed)
        added = truth.write(put("tea"), put(NewMemory(content="cocoa", key="drink")))
        assert {result.status for result in added} == {Status.ADDED}
        assert truth.reader.deleted(Scope.of(ANNA), expired) == frozenset(expired)
        assert truth.clock() == 6

    def test_a_deleted_text_may_come_back(self, truth: Truth) -> None:
        """A tombstone has no text, so it is nobody's twin."""
        (old,) = truth.add("tea")
        truth.write(Remove(memory_id=old))
        (new,) = truth.add("tea")
        assert new != old

    def test_a_lookup_sees_expired_and_quarantined_rows(self, truth: Truth) -> None:
        """They are not returned by reads, but a write may not pass them by."""
        expired, hidden = truth.add(NewMemory(content="a", expires_at=NOON), "b")
        truth.quarantine(hidden)
        (gone,) = truth.add("c")
        truth.write(Remove(memory_id=gone))
        found: list[tuple[str, State]] = []

        def plan(existing: Existing) -> WritePlan:
            assert len(existing.rows) == len({row.memory.id for row in existing.rows})
            found.extend((row.memory.id, row.state) for row in existing.rows)
            return WritePlan(changes=(), results=())

        lookup = Lookup(
            dedup_hashes=(content_hash("a"), content_hash("b"), content_hash("never")),
            keys=("none",),
            ids=(expired, gone, new_id()),
        )
        commit = Commit(
            namespace=ANNA, lookup=lookup, plan=plan, idempotency_key=new_id(), request_hash=b"-"
        )
        truth.store.commit(commit)
        expected = [(expired, State.LIVE), (hidden, State.QUARANTINED), (gone, State.DELETED)]
        assert sorted(found) == sorted(expected)

    # ── Updates and deletions ──

    def test_an_update_keeps_what_it_does_not_change(self, truth: Truth) -> None:
        """And the arms' numbers move only when their index holds what changed."""
        new = NewMemory(content="tea", metadata={"a": 1, "b": [1, {"c": "茶"}]}, tags=("x", "y"))
        (memory_id,) = truth.add(new)
        truth.write(Revise(memory_id=memory_id, patch=Patch(importance=5, metadata={"a": 2})))
        truth.write(Revise(memory_id=memory_id, patch=Patch(pinned=True)))
        with truth.seen() as snapshot:
            row = snapshot.rows(truth.keys(memory_id))[memory_id]
            (vector,) = present(snapshot.vectors(truth.keys(memory_id), 10)).references
        assert (row.nseq, row.vector_nseq, row.keyword_nseq) == (3, 1, 2)
        assert (vector.version, row.memory.version) == (1, 3)
        memory = row.memory
        assert memory.metadata == {"a": 2, "b": [1, {"c": "茶"}]}
        assert (memory.content, memory.tags, memory.importance, memory.pinned) == (
            *("tea", ("x", "y"), 5),
            True,
        )

    def test_a_new_text_replaces_the_chunks(self, truth: Truth) -> None:
        """An old chunk would be found and belong to nothing."""
        text = "green tea"
        (memory_id,) = truth.write(put("old", chunk_of("old"), chunk_of("older", ordinal=1)))
        change = Revise(
            memory_id=str(memory_id.id),
            patch=Patch(content=text),
            content_hash=content_hash(text),
            chunks=(chunk_of(text),),
        )
        truth.write(change)
        with truth.seen() as snapshot:
            assert snapshot.chunks_with(["old", "older"], 10) == ()
            (found,) = snapshot.chunks_with(["green"], 10)
            row = snapshot.rows(truth.keys(found.memory_id))[found.memory_id]
        assert (found.ordinal, found.keyword_nseq, row.chunk_high) == (0, 2, 2)

    def test_times_come_back_to_the_microsecond_in_utc(self, truth: Truth) -> None:
        """The server's zone is of no interest to anybody."""
        moment = NOON + timedelta(microseconds=123_457)
        (memory_id,) = truth.add(NewMemory(content="tea", occurred_at=moment))
        memory = truth.fetched(memory_id)
        assert memory.occurred_at == memory.event_time == moment
        assert {time.utcoffset() for time in (memory.created_at, memory.event_time)} == {
            timedelta(0)
        }

    def test_a_deletion_leaves_nothing_that_was_said(self, truth: Truth) -> None:
        """What stays are numbers, so that indexes hear of it."""
        new = NewMemory(content="my secret", tags=("t",), metadata={"m": "v"}, key="k")
        (memory_id,) = truth.add(new)
        truth.write(Revise(memory_id=memory_id, patch=Patch(importance=1)))
        truth.write(Remove(memory_id=memory_id))
        opening = Opening(namespaces={}, since={truth.number(): 0}, overlay_limit=10)
        with truth.seen(opening=opening) as snapshot:
            (row,) = snapshot.overlay or ()
            assert (row.live, row.extra, row.chunks) == (False, "", ())
            assert (row.nseq, row.vector_nseq, row.keyword_nseq) == (3, 3, 3)
            assert snapshot.chunks_with(["secret", "t", "v"], 10) == ()
            assert present(snapshot.vectors(truth.keys(memory_id), 10)).references == ()
        assert truth.reader.history(Scope.of(ANNA), memory_id) == ()
        kept: list[str] = []

        def plan(existing: Existing) -> WritePlan:
            kept.extend(f"{row}" for row in existing.rows)
            return WritePlan(changes=(), results=())

        truth.plan(plan, memory_id)
        assert len(kept) == 1
        assert not any(word in kept[0] for word in ("secret", "'t'", "'m'", "key='k'"))

    # ── Scopes ──

    def covered(self, truth: Truth, scope: Scope) -> set[Namespace]:
        """The namespaces that the store finds."""
        return {clock.namespace for clock in truth.store.view(scope, ()).namespaces}

    def test_a_scope_covers_namespaces_that_carry_all_its_ids(self, truth: Truth) -> None:
        """A user's search reaches all of the user's projects and nobody else's."""
        ids = (None, "a", "b")
        every = [
            Namespace(project=project, user=user, agent=agent)
            for project in ids
            for user in ids
            for agent in ids
            if project or user or agent
        ]
        every.append(Namespace(path=("a",)))
        for namespace in every:
            truth.add("tea", namespace=namespace)
        for wanted in every:
            scope = Scope.of(wanted)
            assert self.covered(truth, scope) == {one for one in every if scope.covers(one)}
            assert self.covered(truth, Scope.of(wanted, exact=True)) == {wanted}

    @pytest.mark.parametrize("kind", ["project", "user", "agent"])
    def test_ids_are_compared_whole_and_literally(self, truth: Truth, kind: str) -> None:
        """``acme`` must not reach ``acme-corp``, and no character is a wildcard."""
        names = ("acme", "acme-corp", "acme.corp", "acme/corp", "ACME", "ac", *ODD_IDS)
        every = [Namespace.from_address(json.dumps({kind: name})) for name in names]
        for namespace in every:
            truth.add("tea", namespace=namespace)
        for namespace in every:
            assert self.covered(truth, Scope.of(namespace)) == {namespace}

    def test_paths_are_covered_by_whole_segments(self, truth: Truth) -> None:
        """A prefix of a path is one of segments, not of characters."""
        paths = [
            *[("acme",), ("acme-corp",), ("acme", "eu"), ("acme", "eu", "x"), ("acme", "e")],
            *[(odd,) for odd in ODD_IDS],
            *[(odd, "acme") for odd in ODD_IDS],
        ]
        every = [Namespace(path=path) for path in paths]
        for namespace in every:
            truth.add("tea", namespace=namespace)
        for wanted in every:
            scope = Scope.of(wanted)
            assert self.covered(truth, scope) == {one for one in every if scope.covers(one)}
        assert self.covered(truth, Scope.of(Namespace(path=("acm",)))) == set()

    def test_a_scope_of_several_names_covers_each_once(self, truth: Truth) -> None:
        """Names may overlap, and some may not exist."""
        both, user, other = Namespace(user="a", project="p"), Namespace(user="a"), BEN
        for namespace in (both, user, other):
            truth.add("tea", namespace=namespace)
        wanted = (Namespace(user="a"), Namespace(project="p"), Namespace(user="nobody"))
        found = truth.store.view(Scope.of(*wanted), ()).namespaces
        assert sorted(clock.namespace.address for clock in found) == sorted(
            [both.address, user.address]
        )
        exact = Scope.of(user, other, Namespace(user="nobody"), exact=True)
        assert self.covered(truth, exact) == {user, other}

    def test_a_read_covers_at_most_1000_namespaces(self, truth: Truth) -> None:
        """More would make one search as slow as a thousand."""
        with ThreadPoolExecutor(THREADS) as pool:
            names = [Namespace(project="p", user=f"u{number}") for number in range(1001)]
            list(pool.map(lambda name: truth.plan(nothing, namespace=name), names))
        assert len(self.covered(truth, Scope.of(Namespace(user="u7")))) == 1
        with pytest.raises(TooManyNamespaces):
            truth.store.view(Scope.of(Namespace(project="p")), ())

    def test_the_incarnation_stays_equal(self, truth: Truth) -> None:
        """When it changes, everything that was remembered is thrown away."""
        truth.add("tea")
        views = [truth.store.view(Scope.of(ANNA), ("x",)) for _ in range(2)]
        assert views[0].incarnation == views[1].incarnation != ""
        assert views[0].now <= views[1].now
        assert (views[0].pointers, views[0].namespaces) == ({}, views[1].namespaces)


def nothing(_: Existing) -> WritePlan:
    """A plan that changes nothing."""
    return WritePlan(changes=(), results=())
