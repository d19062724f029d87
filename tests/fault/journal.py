"""What a client did and saw, and whether an answer agrees with it."""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What had been acknowledged when a question was asked."""

    stored: frozenset[str]
    deleted: frozenset[str]


@dataclass(slots=True)
class Journal:
    """Texts by what became of them. Thread safe.

    Attributes:
        notes: How often each part was said to be missing, and ``""`` for whole answers.
        refused: How often a call failed, by what it was and the type of the error.
        wrong: Answers that disagree with the acknowledged writes, in words; there should be none.
    """

    notes: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _begun: set[str] = field(default_factory=set)
    _stored: set[str] = field(default_factory=set)
    _leaving: set[str] = field(default_factory=set)
    _deleted: set[str] = field(default_factory=set)

    def begin(self, texts: Iterable[str]) -> None:
        """These are about to be written: from now on they may be found."""
        with self._lock:
            self._begun.update(texts)

    def acknowledge(self, texts: Iterable[str]) -> None:
        """These were said to be stored: from now on they have to be found."""
        with self._lock:
            self._stored.update(texts)

    def begin_deletion(self, text: str) -> None:
        """From now on it may be missing."""
        with self._lock:
            self._leaving.add(text)

    def acknowledge_deletion(self, text: str) -> None:
        """From now on it may not be found."""
        with self._lock:
            self._deleted.add(text)

    def forget(self, texts: Iterable[str]) -> None:
        """These never were, in the history that holds now: from now on they may not be found."""
        with self._lock:
            self._begun.difference_update(texts)

    def refuse(self, call: str, error: Exception) -> None:
        """A call failed with a typed error."""
        with self._lock:
            self.refused[f"{call}: {type(error).__name__}"] += 1

    @property
    def living(self) -> frozenset[str]:
        """What has to be there."""
        with self._lock:
            return frozenset(self._stored - self._leaving)

    def moment(self) -> Moment:
        """What holds now."""
        with self._lock:
            return Moment(stored=frozenset(self._stored), deleted=frozenset(self._deleted))

    def compare(self, found: Iterable[str], *, asked: Moment, how: str, notes: str) -> None:
        """Hold an answer against what had been acknowledged when it was asked for."""
        texts = list(found)
        with self._lock:
            self.notes[notes] += 1
            held = set(texts)
            missing = asked.stored - self._leaving - held
            revived = asked.deleted & held
            unknown = held - self._begun
        faults = {
            "misses": missing,
            "shows what was deleted": revived,
            "shows what nobody wrote": unknown,
            "shows twice": {text for text, times in Counter(texts).items() if times > 1},
        }
        self.wrong += [
            f"{how} ({notes or 'whole'}) {fault}: {len(which)}, such as {min(which)!r}"
            for fault, which in faults.items()
            if which
        ]
