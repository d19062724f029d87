"""Who sees what: a read covers the ids that it names, whole, and nothing else."""

import uuid

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.errors import InvalidScope, NotFound, ScopeRequired, TooManyNamespaces
from memory_tool.scope import Namespace
from tests.acceptance.asking import seen, texts
from tests.acceptance.opening import OwnStore, make_namespaces

ODD_IDS = (
    "550e8400-e29b-41d4-a716-446655440000",
    "a_b-c:d.e*f%g",
    "acme/corp",
    "用户 甲",
    "🦊🧡",
    "' OR 1=1 --",
    "../../etc",
)


def test_an_underscore_in_a_segment_is_no_wildcard(memory: MemoryManage, user: str) -> None:
    """Complaint 1, langchain-ai/langgraph issue 8300: ``john_doe`` reads ``john-doe``."""
    memory.add("the blue ledger of the other John", namespace=(user, "john-doe"))
    memory.add("the blue ledger of this John", namespace=(user, "john_doe"))
    only = {"the blue ledger of this John"}
    assert seen(memory, "blue ledger", namespace=(user, "john_doe")) == only


def test_a_scope_that_is_a_prefix_of_another_reads_only_its_own(
    memory: MemoryManage, user: str
) -> None:
    """Complaint 2, langgraph pull 8478, langgraphjs issue 2721: ``acme`` returns ``acme-corp``."""
    memory.add("the acme plan", namespace=(user, "acme"))
    memory.add("the acme plan, in depth", namespace=(user, "acme", "notes"))
    memory.add("the acme plan of another firm", namespace=(user, "acme-corp"))
    memory.add("the acme plan of a user", user_id=user)
    memory.add("the acme plan of a longer user", user_id=f"{user}-corp")
    within = {"the acme plan", "the acme plan, in depth"}
    assert seen(memory, "acme plan", namespace=(user, "acme")) == within
    assert seen(memory, "acme plan", user_id=user) == {"the acme plan of a user"}


def test_one_users_question_never_finds_anothers_memory(memory: MemoryManage, user: str) -> None:
    """Complaint 3, CaviraOSS/LongMemory issue 97: a query returns both users' memories."""
    other = f"{user}-b"
    memory.add("my locker code is 4711", user_id=user)
    memory.add("my locker code is 9999", user_id=other)
    memory.apply_now()
    assert seen(memory, "locker code", user_id=user) == {"my locker code is 4711"}
    by_filter = memory.search("locker code", filters={"user_id": other}, threshold=0.0)
    assert texts(by_filter) == ["my locker code is 9999"]


def test_a_session_is_no_wall_between_users(memory: MemoryManage, user: str) -> None:
    """Complaint 4, google/adk-python issue 1019: filtered by session only, users see each other."""
    memory.add("Anna asked for oat milk", user_id=user, run_id="monday")
    memory.add("Ben asked for oat milk", user_id=f"{user}-b", run_id="monday")
    memory.add("Anna asked for oat milk again", user_id=user, run_id="tuesday")
    assert seen(memory, "oat milk", user_id=user, run_id="monday") == {"Anna asked for oat milk"}


@pytest.mark.parametrize("odd", ODD_IDS)
def test_any_id_works_with_search_by_words(memory: MemoryManage, user: str, odd: str) -> None:
    """Complaint 6, getzep/graphiti issue 1269: UUIDs pass validation but break full-text search."""
    memory.add(f"the gate opens at nine for {odd}", project_id=user, user_id=odd)
    memory.add("the gate opens at ten for nobody", project_id=user, user_id=f"{odd}x")
    mine = {f"the gate opens at nine for {odd}"}
    assert seen(memory, "gate opens", project_id=user, user_id=odd) == mine
    by_id = memory.search(odd, project_id=user, user_id=odd, mode="keyword")
    assert set(texts(by_id)) <= mine


def test_an_id_of_another_scope_is_not_found(memory: MemoryManage, user: str) -> None:
    """Guessing an id must not open, change or delete what belongs to somebody else."""
    id_ = memory.add("the safe is behind the clock", user_id=user).id
    stranger = memory.scoped(user_id=f"{user}-b")
    for attempt in (stranger.get, stranger.history, stranger.delete):
        with pytest.raises(NotFound):
            attempt(id_)
    with pytest.raises(NotFound):
        stranger.update(id_, content="the safe is gone")
    assert memory.get(id_, user_id=user).memory == "the safe is behind the clock"


def test_a_read_covers_every_namespace_that_carries_the_ids(
    memory: MemoryManage, user: str
) -> None:
    """What an agent stored for a user is found without naming the agent, unless asked exactly."""
    memory.add("one plain pear", user_id=user)
    memory.add("two agent pears", user_id=user, agent_id="a3", run_id="s7")
    assert seen(memory, "pears", user_id=user) == {"one plain pear", "two agent pears"}
    assert seen(memory, "pears", user_id=user, exact=True) == {"one plain pear"}
    exactly = memory.scoped(user_id=user, agent_id="a3", exact=True)
    assert seen(exactly, "pears") == {"two agent pears"}


def test_several_namespaces_are_read_by_name(memory: MemoryManage, user: str) -> None:
    """``namespaces`` reads those named and nothing beneath them."""
    memory.add("a plum here", user_id=user)
    memory.add("a plum there", namespace=(user, "there"))
    memory.add("a plum beneath", namespace=(user, "there", "beneath"))
    named = [f"user:{user}", (user, "there")]
    assert seen(memory, "plum", namespaces=named) == {"a plum here", "a plum there"}


def test_a_bound_scope_cannot_be_left(memory: MemoryManage, user: str) -> None:
    """Whoever is handed a scoped memory can't reach beyond it, by whatever word."""
    other = f"{user}-b"
    memory.add("the other's kiwi", user_id=other)
    bound = memory.scoped(user_id=user)
    for leave in (
        lambda: bound.search("kiwi", user_id=other),
        lambda: bound.search("kiwi", namespace=f"user:{other}"),
        lambda: bound.search("kiwi", namespaces=[f"user:{other}"]),
        lambda: bound.search("kiwi", filters={"user_id": other}),
        lambda: bound.search("kiwi", filters=f"user_id = '{other}'"),
        lambda: bound.get_all(filters={"namespace": f"user:{other}"}),
        lambda: bound.scoped(user_id=other),
        lambda: bound.delete_all(user_id=other),
    ):
        with pytest.raises(InvalidScope):
            leave()


def test_a_scope_word_without_a_value_is_no_wider_scope(memory: MemoryManage, user: str) -> None:
    """An empty id, from a request that lacked it, must not read everybody of the project."""
    memory.add("a secret of the project", project_id=user, user_id="anna")
    for attempt in (
        lambda: memory.get_all(project_id=user, user_id=""),
        lambda: memory.search("secret", project_id=user, user_id=""),
        lambda: memory.delete_all(project_id=user, user_id=""),
        lambda: memory.scoped(project_id=user, user_id="").get_all(),
        lambda: memory.add("a secret", project_id=user, user_id=""),
    ):
        with pytest.raises(InvalidScope):
            attempt()
    with pytest.raises(ScopeRequired):
        memory.get_all(namespaces=[])


def test_scope_words_stand_in_filters_at_the_top_or_under_and(
    memory: MemoryManage, user: str
) -> None:
    """People who come from elsewhere name the user in the filter."""
    memory.add("a fig for Anna", user_id=user)
    memory.add("a fig for Ben", user_id=f"{user}-b")
    memory.add("a fig for Cleo", user_id=f"{user}-c")
    two = {"AND": [{"user_id": {"in": [user, f"{user}-b"]}}, {"type": {"exists": True}}]}
    assert set(texts(memory.get_all(filters=two))) == {"a fig for Anna", "a fig for Ben"}
    as_text = f"user_id = '{user}-c' AND type IN ('semantic')"
    assert texts(memory.get_all(filters=as_text)) == ["a fig for Cleo"]


def test_a_store_may_require_ids(own_store: OwnStore) -> None:
    """Where the boundary is user *and* project, a call that forgets one must fail."""
    with own_store.open(scope_requires=["user", "project"]) as strict:
        both = strict.scoped(user_id="anna", project_id="p")
        both.add("a date for both")
        assert texts(both.get_all()) == ["a date for both"]
        for forgetful in (
            lambda: strict.get_all(user_id="anna"),
            lambda: strict.get_all(namespaces=["user:anna"]),
            lambda: strict.add("a date", user_id="anna"),
            lambda: strict.delete_all(filters={"project_id": "p"}),
        ):
            with pytest.raises(ScopeRequired):
                forgetful()


def test_a_scope_of_a_thousand_and_one_namespaces_is_refused(memory: MemoryManage) -> None:
    """A read that would touch half the store says so instead of answering from a part of it."""
    with pytest.raises(TooManyNamespaces):
        memory.get_all(namespaces=[f"user:{number}" for number in range(1001)])
    assert texts(memory.get_all(namespaces=[f"user:{number}" for number in range(1000)])) == []


def test_a_scope_that_covers_a_thousand_and_one_namespaces_is_refused(
    memory: MemoryManage, shared_store: OwnStore
) -> None:
    """The same where nobody counted: a thousand users of one project are read, one more isn't."""
    project = uuid.uuid4().hex
    users = (Namespace(project=project, user=str(number)) for number in range(999))
    make_namespaces(shared_store.data_dir(), users)
    memory.add("the project's own quince", project_id=project)
    assert texts(memory.get_all(project_id=project)) == ["the project's own quince"]
    memory.add("one namespace more", project_id=project, user_id="the last")
    for attempt in (memory.get_all, memory.delete_all):
        with pytest.raises(TooManyNamespaces):
            attempt(project_id=project)
