"""API keys: what a file may say, whom it lets in, and how far a scope reaches."""

from pathlib import Path
from typing import Any, Final

import pytest

from memory_manage.interfaces.http_keys import EVERYBODY, Key, new_key, parse_keys, read_keys
from memory_manage.interfaces.http_scope import check_named, for_reading, for_writing
from memory_tool.errors import Forbidden, InvalidScope, ScopeRequired, SettingsError
from memory_tool.scope_words import ScopeWords

HASH: Final = "a" * 64


def entry(*lines: str, name: str = "agent", digest: str = HASH) -> str:
    """A key of a file, with these lines after its name and hash."""
    return "\n".join(["[[keys]]", f'name = "{name}"', f'sha256 = "{digest}"', *lines, ""])


READS: Final = ('verbs = ["read"]', 'user_id = "u1"')


def bound(**words: Any) -> Key:  # noqa: ANN401 - scope words
    """A key that is bound to these words."""
    return Key(name="k", sha256=HASH, verbs=frozenset({"read"}), words=ScopeWords(**words))


@pytest.mark.parametrize(
    "scope",
    [
        {"user_id": "张先生"},
        {"user_id": 'a"b\\c\n\x7f', "project_id": "😀"},
        {"namespace": ("team", "notes")},
        {"namespace": "user:u1/project:p2"},
        {"anywhere": True},
    ],
)
def test_a_new_key_is_let_in_by_its_own_lines(scope: dict[str, Any]) -> None:
    """What --new-key prints goes into the file as it is, whatever characters ids are made of."""
    key, lines = new_key("agent-七", verbs=["read", "write"], scope=scope)
    other, _ = new_key("agent-七", verbs=["read", "write"], scope=scope)
    ring = parse_keys(lines)

    found = ring.find(key)
    assert found is not None
    assert found.name == "agent-七"
    assert found.verbs == {"read", "write"}
    assert found.words == (None if "anywhere" in scope else ScopeWords(**scope))
    assert ring.find(other) is None
    assert key not in lines


@pytest.mark.parametrize("presented", ["", "tf_", HASH, "\ud83d", "é"])
def test_what_is_no_key_finds_none(presented: str) -> None:
    """Also the hash itself: whoever reads the file must not get in with it."""
    assert parse_keys(entry(*READS)).find(presented) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keys = 3", "[[keys]]"),
        ("", "[[keys]]"),
        ("keys = [", "no TOML"),
        ('other = 1\n[[keys]]\nname = "a"', "nothing else"),
        ('[[keys]]\nname = ""', "key 1 needs a name"),
        (entry(*READS, digest="A" * 64), "64 hexadecimal"),
        (entry(*READS, digest="a" * 63), "64 hexadecimal"),
        (entry('verbs = ["reed"]', 'user_id = "u"'), "verbs"),
        (entry("verbs = []", 'user_id = "u"'), "verbs"),
        (entry('verbs = "read"', 'user_id = "u"'), "verbs"),
        (entry("verbs = [[]]", 'user_id = "u"'), "verbs"),
        (entry('verbs = ["read"]'), "anywhere = true"),
        (entry('verbs = ["read"]', "anywhere = false"), "anywhere = true"),
        (entry(*READS, "anywhere = true"), "anywhere = true"),
        (entry(*READS, "anywhere = 1"), "anywhere = true"),
        (entry(*READS, 'userid = "u2"'), "did you mean user_id?"),
        (entry('verbs = ["read"]', "user_id = 5"), "must be a text"),
        (entry('verbs = ["read"]', 'user_id = ""'), "is empty"),
        (entry('verbs = ["read"]', "namespace = []"), "names a scope"),
        (entry(*READS, 'namespace = "user:u1"'), "not both"),
        (entry(*READS) + entry(*READS, name="other"), "same sha256"),
        (entry(*READS) + entry(*READS, digest="b" * 64), "same name"),
    ],
)
def test_a_wrong_file_is_refused(text: str, said: str) -> None:
    """A typo in the file that guards the door must not open it, nor leave somebody guessing."""
    with pytest.raises(SettingsError) as caught:
        parse_keys(text)
    assert said in str(caught.value)


def test_others_may_read_the_file_but_not_write_it(tmp_path: Path) -> None:
    """Mounted secrets are readable by all, and a hash gives nothing away; a new line gives all."""
    path = tmp_path / "keys.toml"
    path.write_text(entry(*READS), encoding="utf-8")
    path.chmod(0o644)
    assert len(read_keys(path).keys) == 1
    for mode in (0o664, 0o646):
        path.chmod(mode)
        with pytest.raises(SettingsError, match="chmod go-w"):
            read_keys(path)


def test_a_missing_file_is_an_error_of_settings(tmp_path: Path) -> None:
    """A server that was told of keys and can't read them must not run without."""
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        read_keys(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("key", "given", "made"),
    [
        (bound(user_id="u1"), {}, {"user_id": "u1"}),
        (bound(user_id="u1"), {"user_id": "u1"}, {"user_id": "u1"}),
        (bound(user_id="u1"), {"agent_id": "a"}, {"user_id": "u1", "agent_id": "a"}),
        (bound(user_id="u1"), {"namespace": "user:u1/agent:a"}, {"namespace": "user:u1/agent:a"}),
        (bound(user_id="u1", agent_id="a"), {"user_id": "u1"}, {"user_id": "u1", "agent_id": "a"}),
        (bound(namespace=("t",)), {}, {"namespace": ("t",)}),
        (bound(namespace=("t",)), {"namespace": ["t", "n"]}, {"namespace": ["t", "n"]}),
        (bound(user_id="u1"), {"run_id": "r"}, {"run_id": "r", "user_id": "u1"}),
        (EVERYBODY, {"user_id": "anybody"}, {"user_id": "anybody"}),
        (EVERYBODY, {}, {}),
    ],
)
def test_a_request_narrows_the_scope_of_its_key(
    key: Key, given: dict[str, Any], made: dict[str, Any]
) -> None:
    """What it leaves out the key says, for reading and for writing alike."""
    assert for_reading(key, given) == made
    assert for_writing(key, given) == made


@pytest.mark.parametrize(
    ("key", "given"),
    [
        (bound(user_id="u1"), {"user_id": "u2"}),
        (bound(user_id="u1"), {"user_id": "u11"}),
        (bound(user_id="u1"), {"namespace": "user:u2"}),
        (bound(user_id="u1"), {"namespace": "agent:a"}),
        (bound(user_id="u1"), {"namespace": ["u1"]}),
        (bound(user_id="u1", agent_id="a"), {"namespace": "user:u1"}),
        (bound(namespace=("t",)), {"user_id": "u1"}),
        (bound(namespace=("t",)), {"namespace": ["team"]}),
        (bound(namespace=("t", "n")), {"namespace": ["t"]}),
    ],
)
def test_a_request_outside_of_its_key_is_forbidden(key: Key, given: dict[str, Any]) -> None:
    """Every way of naming a scope leads past the same check."""
    with pytest.raises(Forbidden):
        for_reading(key, given)
    with pytest.raises(Forbidden):
        for_writing(key, given)


@pytest.mark.parametrize(
    "given",
    [
        {"namespaces": ["user:u1", "user:u2"]},
        {"filters": {"user_id": "u2"}},
        {"filters": {"user_id": {"in": ["u1", "u2"]}}},
        {"filters": "user_id = 'u2' AND type = 'event'"},
        {"filters": {"namespace": "user:u2"}},
        {"agent_id": "a", "filters": {"user_id": "u2"}},
    ],
)
def test_a_read_has_no_back_door(given: dict[str, Any]) -> None:
    """Lists and filters name scopes too, and one foreign id among own ones is one too many."""
    with pytest.raises(Forbidden):
        for_reading(bound(user_id="u1"), given)


def test_a_filter_may_name_the_own_scope() -> None:
    """It is no crime to say again what the key says."""
    key = bound(user_id="u1")
    for filters in ({"user_id": "u1"}, {"agent_id": {"in": ["a", "b"]}}):
        assert for_reading(key, {"filters": filters})["filters"] == filters


def test_two_ids_for_one_word_stay_an_error() -> None:
    """A key changes nothing of what a contradiction is."""
    with pytest.raises(InvalidScope):
        for_reading(bound(user_id="u1"), {"user_id": "u1", "filters": {"user_id": "u2"}})


def test_deleting_all_names_its_scope() -> None:
    """An empty body sent by mistake must not delete everything that a key reaches."""
    for nothing in ({}, {"run_id": "r"}, {"exact": True}, {"filters": {"type": "event"}}):
        with pytest.raises(ScopeRequired):
            check_named(nothing)
    check_named({"user_id": "u1"})
    check_named({"filters": {"user_id": "u1"}})
