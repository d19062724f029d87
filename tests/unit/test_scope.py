"""Namespaces and scopes: whole segments, no empty scope."""

import pytest

from memory_tool.errors import InvalidScope, ScopeRequired, TooManyNamespaces
from memory_tool.scope import Namespace, Scope
from memory_tool.scope_words import ScopeWords, read_scope, write_namespace

USER = Namespace(user="u1")


def test_a_namespace_can_not_be_empty() -> None:
    """Isolation by type: what has no namespace can't be stored or read."""
    with pytest.raises(ScopeRequired):
        Namespace()


@pytest.mark.parametrize(
    "value", ["a/b", "50%", "x_y", "*", "-", ".", " padded ", "张三", "😀", "../../etc", "a:b"]
)
def test_every_character_is_an_ordinary_one(value: str) -> None:
    """No wildcard, no separator, no path: the address brings back exactly this id."""
    namespace = Namespace(user=value)

    assert Namespace.from_address(namespace.address) == namespace


@pytest.mark.parametrize("value", ["", "  ", "a\0b", "\ud800", "x" * 513])
def test_ids_that_can_not_be_stored_are_refused(value: str) -> None:
    """Before any I/O."""
    with pytest.raises(InvalidScope):
        Namespace(user=value)


def test_a_text_names_a_namespace_in_any_order() -> None:
    """The order of the words doesn't matter, their kinds do."""
    assert Namespace.parse("user:u1/project:p2") == Namespace(project="p2", user="u1")
    assert Namespace.parse("user:a%2Fb") == Namespace(user="a/b")


@pytest.mark.parametrize("text", ["u1", "user:a/user:b", "team:x", "user:"])
def test_other_texts_are_refused(text: str) -> None:
    """A free namespace is a tuple, so that a misspelt kind is no new namespace."""
    with pytest.raises(InvalidScope):
        Namespace.parse(text)


def test_a_read_covers_every_namespace_with_the_ids_named() -> None:
    """What was added with more ids is found with fewer; what has another id is not."""
    scope = Scope.of(USER)

    assert scope.covers(USER)
    assert scope.covers(Namespace(user="u1", agent="a3", project="p"))
    assert not scope.covers(Namespace(user="u10"))
    assert not scope.covers(Namespace(agent="u1"))
    assert not scope.covers(Namespace(path=("u1",)))


def test_exact_reads_only_the_namespace_named() -> None:
    """For people whose boundary is user and project."""
    scope = Scope.of(USER, exact=True)

    assert scope.covers(USER)
    assert not scope.covers(Namespace(user="u1", project="p"))


def test_segments_of_a_path_are_compared_whole() -> None:
    """Whoever may read acme may not read acme-corp."""
    scope = Scope.of(Namespace(path=("acme",)))

    assert scope.covers(Namespace(path=("acme", "notes")))
    assert not scope.covers(Namespace(path=("acme-corp",)))


def test_two_ids_for_one_word_are_an_error() -> None:
    """Silently preferring one would read somebody else's memories."""
    with pytest.raises(InvalidScope, match="u1"):
        read_scope(ScopeWords(user_id="u1"), {"user_id": ("u2",)})


def test_ids_in_a_filter_join_those_of_the_call() -> None:
    """``in`` with several ids reads several covers."""
    scope = read_scope(ScopeWords(project_id="p"), {"user_id": ("a", "b")})

    assert scope.covers(Namespace(project="p", user="b"))
    assert not scope.covers(Namespace(project="q", user="b"))


def test_a_store_can_require_ids() -> None:
    """A forgotten project must not widen a read to all projects."""
    with pytest.raises(ScopeRequired, match="project_id"):
        read_scope(ScopeWords(user_id="u1"), {}, requires=("user", "project"))


def test_a_write_goes_to_one_namespace() -> None:
    """There is no writing to several."""
    with pytest.raises(InvalidScope):
        write_namespace(ScopeWords(namespaces=["user:a", "user:b"]))


def test_more_than_a_thousand_names_are_too_many() -> None:
    """Bounded work for one call."""
    names = [f"user:u{number}" for number in range(1001)]
    with pytest.raises(TooManyNamespaces):
        read_scope(ScopeWords(namespaces=names), {})
