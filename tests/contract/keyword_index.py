"""What every keyword index and the target that feeds it have to do."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from memory_tool.log_ports import IndexTarget
from memory_tool.port_values import ChangeRow, Patience, TargetBase
from memory_tool.ports import KeywordIndex
from memory_tool.query import Candidate
from memory_tool.text.tokenise import tokenise
from tests.contract.keyword_rows import (
    NotedProgress,
    apply,
    ask,
    batch,
    chunk,
    find,
    gone,
    memory_id,
    numbers,
    row,
)

TOKENS = (
    *("财务:42", "(营收", '"quoted', "+must", "-not", "any*", "x~2", "x^3", "[a", "AND", "\\"),
    *("/re/", "spring.datasource.hikari.maximum-pool-size", "😀", "num:1000000"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordPair:
    """An index and the target that feeds it."""

    index: KeywordIndex
    target: IndexTarget


class KeywordIndexContract:
    """Subclass it for an adapter and override ``pair``.

    An index on a server may show more than its clocks say, and parts of a batch: what is newer than
    a clock is read from the truth anyway. Such an adapter overrides the tests that say otherwise.
    """

    patience = Patience(rows=50, seconds=0.2)

    def agrees(self, found: list[int], clock: int) -> bool:
        """Whether a search found the memories that are numbered up to its clock."""
        return found == list(range(1, clock + 1))

    @pytest.fixture
    def pair(self) -> KeywordPair:
        """An empty index and its target."""
        raise NotImplementedError

    def test_an_empty_index_holds_nothing(self, pair: KeywordPair) -> None:
        """A fresh installation searches before the applier ran."""
        view = pair.index.view()
        assert view.mark is None
        assert view.clock(1) == 0
        assert find(view, "tea") == []
        assert pair.target.base() == TargetBase(mark=None, clocks={})

    def test_index_and_target_say_who_they_are(self, pair: KeywordPair) -> None:
        """The store keeps marks and progress under one name for both."""
        assert pair.index.target == pair.target.name
        assert pair.target.kind == "keyword"
        assert pair.target.patience == self.patience

    def test_a_candidate_names_its_chunk_exactly(self, pair: KeywordPair) -> None:
        """Hydration compares the version and trusts the rest, to the last bit."""
        version = 2**53 + 1
        chunks = (chunk("green tea"), chunk("black coffee", ordinal=1))
        apply(pair.target, row(0xFFFFFFFF, *chunks, ns_id=7, version=version))
        (found,) = pair.index.view().search(ask("coffee"), (7,), depth=10)
        assert found == Candidate(7, memory_id(0xFFFFFFFF), 1, version, found.score)
        assert found.score > 0

    def test_terms_are_or_ed_and_more_of_them_rank_higher(self, pair: KeywordPair) -> None:
        """A question never holds only words of its answer."""
        apply(
            pair.target,
            row(1, chunk("green apple pie")),
            row(2, chunk("green tea pot")),
            row(3, chunk("black coffee cup")),
        )
        assert find(pair.index.view(), "green tea unheard") == [2, 1]

    def test_chinese_is_found_by_words_and_by_bigrams(self, pair: KeywordPair) -> None:
        """Segmentation depends on context: bigrams find what words miss."""
        apply(
            pair.target,
            row(1, chunk("第三 季度 营收 增长", "第三 三季 季度 度营 营收 收增 增长")),
            row(2, chunk("张 先生 喜欢 绿茶", "张先 先生 生喜 喜欢 欢绿 绿茶")),
        )
        view = pair.index.view()
        assert find(view, "营收") == [1]
        assert find(view, "张先生", bigrams="张先 先生") == [2]
        assert find(view, "营") == []

    @pytest.mark.parametrize("question", ["what is it", "这是什么"])
    def test_a_question_wholly_of_stop_words_still_finds(
        self, pair: KeywordPair, question: str
    ) -> None:
        """Its words are in no index, the pairs of them are: what holds those comes first."""
        texts = ("He asked what is it and left", "他问这是什么", "green tea", "绿茶很好")
        asked = tokenise(question)
        assert asked.words == ()
        for number, text in enumerate(texts):
            tokens = tokenise(text)
            part = chunk(" ".join(tokens.words), " ".join(tokens.bigrams))
            apply(pair.target, row(number, part), clock=number + 1)
        found = find(pair.index.view(), bigrams=" ".join(asked.bigrams))
        assert found == [0 if question.isascii() else 1]

    @pytest.mark.parametrize("token", TOKENS)
    def test_characters_of_query_languages_are_ordinary(
        self, pair: KeywordPair, token: str
    ) -> None:
        """What users type must never be parsed: it would fail, or reach other fields."""
        apply(pair.target, row(1, chunk(f"before {token} after")), row(2, chunk("not any must x")))
        assert find(pair.index.view(), token) == [1]

    def test_a_token_is_compared_whole(self, pair: KeywordPair) -> None:
        """The tokeniser decided already what matches: no folding, stemming or splitting here."""
        apply(pair.target, row(1, chunk("Tea tea-pot")))
        assert find(pair.index.view(), "tea") == []
        assert find(pair.index.view(), "tea-pot") == [1]

    def test_extra_words_are_found_but_count_less(self, pair: KeywordPair) -> None:
        """A tag helps, the text decides."""
        apply(
            pair.target,
            row(1, chunk("one two"), extra="tea shop"),
            row(2, chunk("tea shop"), extra="one two"),
            row(3, chunk("six ten"), extra="red box"),
        )
        assert find(pair.index.view(), "tea") == [2, 1]

    def test_extra_words_belong_to_every_chunk(self, pair: KeywordPair) -> None:
        """A tag is on the memory, whichever of its chunks answers."""
        chunks = (chunk("one"), chunk("two", ordinal=1))
        apply(pair.target, row(1, *chunks, extra="tea"))
        found = pair.index.view().search(ask("tea"), (1,), depth=10)
        assert [candidate.ordinal for candidate in found] == [0, 1]

    def test_a_row_without_tokens_moves_the_clock_only(self, pair: KeywordPair) -> None:
        """Nothing could find it, and counted as a document it would make every word rarer."""
        apply(pair.target, *(row(n, chunk("tea")) for n in range(100)))
        (before, *_) = pair.index.view().search(ask("tea"), (1,), depth=1)
        apply(pair.target, *(row(n, chunk("")) for n in range(100, 200)), clock=5)
        view = pair.index.view()
        (after,) = view.search(ask("tea"), (1,), depth=1)
        assert after.score == pytest.approx(before.score, abs=0.05)
        assert view.clock(1) == 5

    def test_a_replaced_row_leaves_nothing_behind(self, pair: KeywordPair) -> None:
        """An old chunk would be a candidate of a version that is no more."""
        old = (chunk("green tea"), chunk("tea again", ordinal=1), chunk("more tea", ordinal=2))
        apply(pair.target, row(1, *old))
        apply(pair.target, row(1, chunk("black coffee"), version=2), clock=2)
        assert find(pair.index.view(), "tea") == []
        (found,) = pair.index.view().search(ask("coffee"), (1,), depth=10)
        assert found.version == 2

    def test_a_deleted_row_is_gone_and_may_come_back(self, pair: KeywordPair) -> None:
        """A deletion that does not reach an index is a leak; quarantine ends again."""
        apply(pair.target, row(1, chunk("tea")), row(2, chunk("tea")))
        apply(pair.target, gone(1, version=2), clock=2)
        assert find(pair.index.view(), "tea") == [2]
        apply(pair.target, row(1, chunk("tea"), version=3), clock=3)
        assert find(pair.index.view(), "tea") == [1, 2]

    def test_a_dead_row_that_was_never_there_is_no_error(self, pair: KeywordPair) -> None:
        """A row may come and go between two batches."""
        apply(pair.target, gone(1), clock=9)
        assert pair.target.base().clocks == {1: 9}

    def test_a_search_stays_in_its_namespaces(self, pair: KeywordPair) -> None:
        """The index is one, its tenants are many."""
        apply(pair.target, *(row(n, chunk("tea"), ns_id=n) for n in (1, 2, 3, 11)))
        view = pair.index.view()
        assert find(view, "tea", ns_ids=(1,)) == [1]
        assert find(view, "tea", ns_ids=(3, 2)) == [2, 3]
        assert find(view, "tea", ns_ids=(1, 2, 3, 11)) == [1, 2, 3, 11]
        assert find(view, "tea", ns_ids=(4,)) == []
        assert find(view, "tea", ns_ids=(1, 1, 1, 1)) == [1]

    def test_a_namespace_that_came_without_a_clock_stays_apart(self, pair: KeywordPair) -> None:
        """A faulty batch may confuse clocks, never tenants."""
        rows = (row(1, chunk("tea"), ns_id=1), row(2, chunk("tea"), ns_id=2))
        pair.target.apply(batch(rows, {1: 1}, mark="a", base_mark=None), NotedProgress())
        assert find(pair.index.view(), "tea", ns_ids=(1,)) == [1]
        pair.target.apply(batch((), {2: 5}, mark="b", base_mark="a"), NotedProgress())
        other = row(3, chunk("tea"), ns_id=2)
        pair.target.apply(batch((other,), {1: 2}, mark="c", base_mark="b"), NotedProgress())
        assert pair.target.base().clocks == {1: 2, 2: 5}

    def test_the_same_id_in_two_namespaces_is_two_memories(self, pair: KeywordPair) -> None:
        """A deletion in one namespace must not reach into another."""
        apply(pair.target, row(1, chunk("tea"), ns_id=1), row(1, chunk("tea"), ns_id=2))
        apply(pair.target, gone(1, ns_id=1, version=2), clock=2)
        assert find(pair.index.view(), "tea", ns_ids=(1,)) == []
        assert find(pair.index.view(), "tea", ns_ids=(2,)) == [1]

    def test_a_scope_of_1001_namespaces_is_searched(self, pair: KeywordPair) -> None:
        """The store's limit is 1,000; an index must not have a lower one of its own."""
        apply(pair.target, *(row(n, chunk("tea"), ns_id=n) for n in range(1, 1103)))
        view = pair.index.view()
        found = view.search(ask("tea"), range(1, 1002), depth=2_000)
        assert numbers(found) == list(range(1, 1002))
        assert all(view.clock(n) == 1 for n in range(1, 1103))
        assert view.clock(1103) == 0

    def test_within_keeps_to_its_ids_however_bad_they_are(self, pair: KeywordPair) -> None:
        """A filter that was evaluated already must not lose what ranks low without it."""
        rows = [row(n, chunk("tea")) for n in range(1, 500)]
        worse = [row(n, chunk(f"tea {'filler ' * 60}".strip())) for n in range(500, 1_000)]
        apply(pair.target, *rows, *worse)
        view = pair.index.view()
        for members in ([700, 900], range(600, 1_000)):
            within = frozenset(map(memory_id, members))
            found = view.search(ask("tea"), (1,), depth=2, within=within)
            assert numbers(found) == list(members)[:2]

    def test_within_takes_20000_ids(self, pair: KeywordPair) -> None:
        """So many matching ids the read path hands to an arm."""
        apply(pair.target, *(row(n, chunk(f"tea number{n}")) for n in range(30)))
        within = frozenset(map(memory_id, range(10, 20_010)))
        view = pair.index.view()
        found = view.search(ask("tea"), (1,), depth=100, within=within)
        assert numbers(found) == list(range(10, 30))
        assert view.search(ask("tea"), (2,), depth=100, within=within) == ()

    def test_within_nothing_finds_nothing(self, pair: KeywordPair) -> None:
        """No id matches the filter: that is not "no filter"."""
        apply(pair.target, row(1, chunk("tea")))
        view = pair.index.view()
        assert view.search(ask("tea"), (1,), depth=10, within=frozenset()) == ()

    def test_asking_for_nothing_finds_nothing(self, pair: KeywordPair) -> None:
        """A question of stop words has no tokens left, and a scope may have no namespaces yet."""
        apply(pair.target, row(1, chunk("tea")))
        view = pair.index.view()
        assert find(view) == []
        assert find(view, "tea", ns_ids=()) == []
        assert view.search(ask("tea"), (1,), depth=0) == ()

    def test_depth_bounds_the_answer_to_the_best(self, pair: KeywordPair) -> None:
        """The best first, and no more than asked for."""
        apply(pair.target, *(row(n, chunk("tea " * n + "x " * (9 - n))) for n in range(1, 9)))
        found = pair.index.view().search(ask("tea"), (1,), depth=3)
        assert numbers(found) == [8, 7, 6]
        assert found[0].score > found[1].score > found[2].score

    def test_equal_scores_are_ordered_by_id_and_ordinal(self, pair: KeywordPair) -> None:
        """The same question twice gets the same page, also after a rebuild."""
        chunks = (chunk("tea"), chunk("tea", ordinal=1))
        for number in (5, 3, 9, 1):
            apply(pair.target, row(number, *reversed(chunks)))
        found = pair.index.view().search(ask("tea"), (1,), depth=10)
        assert numbers(found) == [1, 1, 3, 3, 5, 5, 9, 9]
        assert [candidate.ordinal for candidate in found] == [0, 1] * 4

    def test_terms_are_counted_over_all_namespaces(self, pair: KeywordPair) -> None:
        """Rows newer than the index are scored by its counts, to be ranked among its hits."""
        assert pair.index.view().term_documents(("tea",)).get("", 0) == 0
        apply(
            pair.target,
            row(1, chunk("tea tea"), chunk("green", ordinal=1)),
            row(2, chunk("tea", "绿茶"), ns_id=300),
            row(3, chunk("coffee"), ns_id=2, extra="tea"),
        )
        counts = pair.index.view().term_documents(("tea", "绿茶", "unheard"))
        assert counts[""] == 4
        assert (counts["tea"], counts["绿茶"], counts.get("unheard", 0)) == (2, 1, 0)

    def test_a_view_keeps_seeing_what_it_says_it_sees(self, pair: KeywordPair) -> None:
        """Overlays are read above a view's clock: a hit beyond it would be counted twice."""
        apply(pair.target, row(1, chunk("tea")), mark="first", clock=4)
        before = pair.index.view()
        apply(pair.target, row(2, chunk("tea")), mark="second", clock=6)
        assert (before.mark, before.clock(1), find(before, "tea")) == ("first", 4, [1])
        after = pair.index.view()
        assert (after.mark, after.clock(1), find(after, "tea")) == ("second", 6, [1, 2])

    def test_clock_mark_and_hits_agree_while_others_write(self, pair: KeywordPair) -> None:
        """Searches run in many threads beside the applier."""
        apply(pair.target, row(1, chunk("tea")), clock=1)
        finished = threading.Event()
        wrong: list[str] = []

        def search() -> None:
            while not finished.is_set():
                view = pair.index.view()
                found, clock = find(view, "tea"), view.clock(1)
                if not self.agrees(found, clock):
                    wrong.append(f"{found} at {clock}")

        threads = [threading.Thread(target=search) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for number in range(2, 20):
                apply(pair.target, row(number, chunk("tea"), version=number), clock=number)
        finally:
            finished.set()
            for thread in threads:
                thread.join()
        assert wrong == []

    def test_a_batch_moves_only_its_own_clocks(self, pair: KeywordPair) -> None:
        """Most namespaces rest while a few change."""
        first = batch([], {1: 3, 2: 4, 600: 5}, mark="a", base_mark=None)
        pair.target.apply(first, NotedProgress())
        pair.target.apply(batch([], {2: 6}, mark="b", base_mark="a"), NotedProgress())
        assert pair.target.base() == TargetBase(mark="b", clocks={1: 3, 2: 6, 600: 5})
        view = pair.index.view()
        assert [view.clock(n) for n in (1, 2, 3, 600)] == [3, 6, 0, 5]

    def test_progress_is_noted(self, pair: KeywordPair) -> None:
        """Deleted rows are purged only when every target has passed them."""
        log = apply(pair.target, row(1, chunk("tea")), clock=7)
        assert log.noted == [(pair.target.name, {1: 7})]

    def test_applying_a_batch_twice_changes_nothing(self, pair: KeywordPair) -> None:
        """A process may die between the commit and the note of it."""
        for _ in range(2):
            rows = (row(1, chunk("tea"), chunk("more tea", ordinal=1)),)
            pair.target.apply(batch(rows, {1: 1}, mark="a", base_mark=None), NotedProgress())
        assert find(pair.index.view(), "tea") == [1, 1]
        assert pair.target.base() == TargetBase(mark="a", clocks={1: 1})

    def test_a_batch_that_breaks_off_leaves_no_trace(self, pair: KeywordPair) -> None:
        """The truth may go away while its rows are read; the next batch comes without them."""
        apply(pair.target, row(1, chunk("tea")), mark="a")
        log = NotedProgress()

        def broken() -> Iterator[ChangeRow]:
            yield gone(1, version=2)
            yield row(2, chunk("tea"))
            raise ConnectionError

        with pytest.raises(ConnectionError):
            pair.target.apply(batch(broken(), {1: 2}, mark="b", base_mark="a"), log)
        assert log.noted == []
        assert pair.target.base() == TargetBase(mark="a", clocks={1: 1})
        apply(pair.target, row(3, chunk("tea")), clock=3)
        assert find(pair.index.view(), "tea") == [1, 3]

    def test_a_reset_forgets_everything(self, pair: KeywordPair) -> None:
        """A rebuild starts from nothing, under searches that go on."""
        apply(pair.target, row(1, chunk("tea")), mark="a")
        before = pair.index.view()
        pair.target.reset()
        assert pair.target.base() == TargetBase(mark=None, clocks={})
        assert pair.index.view().mark is None
        assert find(pair.index.view(), "tea") == []
        assert (before.mark, find(before, "tea")) == ("a", [1])
        apply(pair.target, row(2, chunk("tea")), mark="b")
        assert find(pair.index.view(), "tea") == [2]

    def test_closing_twice_is_harmless(self, pair: KeywordPair) -> None:
        """An error path may close what the normal path closed."""
        apply(pair.target, row(1, chunk("tea")))
        view = pair.index.view()
        pair.index.close()
        pair.index.close()
        assert find(view, "tea") == [1]
