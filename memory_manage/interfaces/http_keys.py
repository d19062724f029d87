"""API keys: a file of their hashes, with what each may do and where.

[[keys]]
name = "agent-7"
sha256 = "…"                  # of the key, which is nowhere kept
verbs = ["read", "write"]     # and "delete", "admin"
user_id = "u1"                # and project_id, agent_id; or namespace; or anywhere = true
"""

import difflib
import hashlib
import hmac
import json
import re
import secrets
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memory_tool.errors import SettingsError, ThreefoldError
from memory_tool.scope import Scope
from memory_tool.scope_words import ScopeWords, write_namespace

VERBS: Final = ("read", "write", "delete", "admin")
"""``admin`` is about the store as a whole: its figures and its health, never content."""

_WORDS: Final = ("user_id", "project_id", "agent_id", "namespace")
_FIELDS: Final = ("name", "sha256", "verbs", *_WORDS, "anywhere")
_SHA256: Final = re.compile("[0-9a-f]{64}")
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a caller may do.

    Attributes:
        name: Who it is, for the log.
        sha256: Of the key, as 64 hexadecimal digits.
        verbs: Some of :data:`VERBS`.
        words: The scope that it is bound to; ``None`` means anywhere.
    """

    name: str
    sha256: str
    verbs: frozenset[str]
    words: ScopeWords | None

    @property
    def scope(self) -> Scope | None:
        """The namespaces that it may touch; ``None`` means all."""
        return None if self.words is None else Scope.of(write_namespace(self.words))


EVERYBODY: Final = Key(name="", sha256="", verbs=frozenset(VERBS), words=None)
"""Whoever calls a server without keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """The keys of a server."""

    keys: tuple[Key, ...]

    def find(self, presented: str) -> Key | None:
        """The key that was presented. Takes as long for a wrong one as for a right one."""
        digest = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found


def read_keys(path: Path) -> KeyRing:
    """The keys of a file.

    Others may read it, for a hash gives no key away and mounted secrets are readable; but whoever
    may write it could let himself in.

    Raises:
        SettingsError: It can't be read, others may write it, or it can't be understood.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"http_keys: can't read {path}: {error}"
        raise SettingsError(message) from error
    if mode & _OTHERS_MAY_WRITE:
        message = f"http_keys: others than its owner may write {path}: chmod go-w '{path}'"
        raise SettingsError(message)
    return parse_keys(text)


def parse_keys(text: str) -> KeyRing:
    """The keys of a TOML text.

    Raises:
        SettingsError: It can't be understood; says which key and what is wrong with it.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"http_keys: this is no TOML: {error}"
        raise SettingsError(message) from error
    entries = document.pop("keys", [])
    if document or not isinstance(entries, list) or not entries:
        message = "http_keys: the file holds tables named [[keys]], at least one, and nothing else"
        raise SettingsError(message)
    keys = tuple(_key(entry, number) for number, entry in enumerate(entries, start=1))
    for what in ("name", "sha256"):
        if len({getattr(key, what) for key in keys}) < len(keys):
            message = f"http_keys: two keys have the same {what}"
            raise SettingsError(message)
    return KeyRing(keys=keys)


def new_key(name: str, *, verbs: Sequence[str], scope: Mapping[str, Any]) -> tuple[str, str]:
    """A new key, and the lines of TOML that let it in.

    Args:
        name: Who will call with it.
        verbs: What it may do.
        scope: Where: some of ``user_id``, ``project_id``, ``agent_id`` and ``namespace``, or
            ``anywhere``.

    Raises:
        SettingsError: A verb is unknown or the scope can't be.
    """
    key = f"tf_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    given = {name: value for name, value in scope.items() if value not in (None, False)}
    fields = {"name": name, "sha256": digest, "verbs": list(verbs), **given}
    lines = ["[[keys]]", *(f"{field} = {_toml(value)}" for field, value in fields.items())]
    text = "\n".join(lines) + "\n"
    parse_keys(text)
    return key, text


def _toml(value: object) -> str:
    """A JSON value that is also TOML, which wants one more character escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(entry: object, number: int) -> Key:
    where = f"http_keys: key {number}"
    if not isinstance(entry, dict):
        message = f"{where} is no table"
        raise SettingsError(message)
    for field in entry:
        if field not in _FIELDS:
            nearest = difflib.get_close_matches(field, _FIELDS, n=1, cutoff=0.0)[0]
            message = f"{where} has an unknown field {field}; did you mean {nearest}?"
            raise SettingsError(message)
    name, sha256 = entry.get("name"), entry.get("sha256")
    if not isinstance(name, str) or not name.strip():
        message = f"{where} needs a name"
        raise SettingsError(message)
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        message = f"{where} ({name}): sha256 has 64 hexadecimal digits, small letters"
        raise SettingsError(message)
    where = f"{where} ({name})"
    return Key(name=name, sha256=sha256, verbs=_verbs(entry, where), words=_words(entry, where))


def _verbs(entry: Mapping[str, Any], where: str) -> frozenset[str]:
    verbs = entry.get("verbs")
    known = isinstance(verbs, list) and all(verb in VERBS for verb in verbs)
    if not verbs or not known:
        message = f"{where}: verbs is a list of some of {', '.join(VERBS)}"
        raise SettingsError(message)
    return frozenset(verbs)


def _words(entry: Mapping[str, Any], where: str) -> ScopeWords | None:
    """Where a key holds. That it holds everywhere has to be said, lest a typo opens the house."""
    given = {word: entry[word] for word in _WORDS if word in entry}
    anywhere = entry.get("anywhere", False)
    if not isinstance(anywhere, bool) or bool(given) == anywhere:
        message = f"{where} names its scope ({', '.join(_WORDS)}), or anywhere = true instead"
        raise SettingsError(message)
    if anywhere:
        return None
    if isinstance(given.get("namespace"), list):
        given["namespace"] = tuple(given["namespace"])
    words = ScopeWords(**given)
    try:
        write_namespace(words)
    except ThreefoldError as error:
        message = f"{where}: {error}"
        raise SettingsError(message) from error
    return words
