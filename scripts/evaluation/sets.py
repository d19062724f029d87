"""The evaluation sets: folders of memories and of questions with the memories that answer them."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredText:
    """A memory of a set; its key is the id that questions name.

    Attributes:
        conversation: The conversation it is a message of, if it is one.
        position: Its place in it.
        role: Who said it: ``user`` or ``assistant``.
        name: The speaker's name, where there is one.
    """

    key: str
    group: str
    text: str
    occurred_at: datetime | None = None
    conversation: str | None = None
    position: int = 0
    role: str = "user"
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a set.

    Attributes:
        kind: The set's own category.
        relevant: Keys of the memories that answer it; empty when nothing does.
        asked_at: When it is asked, where the set says so.
    """

    group: str
    text: str
    kind: str
    relevant: frozenset[str]
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSet:
    """Memories and questions; a question sees the memories of its own group only."""

    name: str
    memories: tuple[StoredText, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where a set lies in the folder, and how its texts and conversations are to be read."""

    folder: str
    memories: str = "memories.jsonl"
    questions: str = "queries.jsonl"
    text: Callable[[Row], str] = lambda row: str(row["text"])
    conversation: Callable[[Row], str | None] = lambda _row: None


def _turn(row: Row) -> str:
    caption = row.get("image_caption")
    image = f" [image: {caption}]" if caption else ""
    return f"{row['when']} {row['speaker']}: {row['text']}{image}"


def _round(row: Row) -> str:
    return f"{row['text']}\n{row['reply']}"


def _crossed(question: str, memory: str) -> _Form:
    return _Form(
        folder="xquad", memories=f"memories.{memory}.jsonl", questions=f"queries.{question}.jsonl"
    )


def _dialogue(folder: str) -> _Form:
    return _Form(
        folder=folder, text=_round, conversation=lambda row: f"{row['group']}/{row['time']}"
    )


FORMS: Final[Mapping[str, _Form]] = {
    "locomo": _Form(
        folder="locomo", text=_turn, conversation=lambda row: f"{row['group']}/{row['session']}"
    ),
    "memorybank-zh": _dialogue("memorybank-zh"),
    "memorybank-en": _dialogue("memorybank-en"),
    "madial-zh": _Form(folder="madial-zh"),
    "madial-en": _Form(folder="madial-en"),
    "beam-128k": _Form(folder="beam-128k", conversation=lambda row: str(row["group"])),
    "xquad-zh": _crossed("zh", "zh"),
    "xquad-en": _crossed("en", "en"),
    "xquad-zh-en": _crossed("zh", "en"),
    "xquad-en-zh": _crossed("en", "zh"),
    "cmrc2018": _Form(folder="cmrc2018"),
    "drcd": _Form(folder="drcd"),
}
"""Every set by name. The two names of a crossed one are the language of question and memories."""


def is_there(folder: Path, name: str) -> bool:
    """Whether the set of that name is in the folder of sets."""
    form = FORMS[name]
    return all((folder / form.folder / part).is_file() for part in (form.memories, form.questions))


def read_set(folder: Path, name: str) -> EvaluationSet:
    """A set of the folder of sets."""
    form = FORMS[name]
    memories = []
    positions: dict[str, int] = {}
    for row in _rows(folder / form.folder / form.memories):
        conversation = form.conversation(row)
        position = positions.get(conversation or "", 0)
        positions[conversation or ""] = position + 1
        memories.append(
            StoredText(
                key=str(row["id"]),
                group=str(row["group"]),
                text=form.text(row),
                occurred_at=utc_time(row.get("time")),
                conversation=conversation,
                position=position,
                role=str(row.get("role") or "user"),
                name=row.get("speaker"),
            )
        )
    return EvaluationSet(
        name=name,
        memories=tuple(memories),
        questions=tuple(map(_question, _rows(folder / form.folder / form.questions))),
    )


def _question(row: Row) -> Question:
    return Question(
        group=str(row["group"]),
        text=str(row["query"]),
        kind=str(row["category"]),
        relevant=frozenset(map(str, row["relevant"])),
        asked_at=utc_time(row.get("asked_at")),
    )


def utc_time(text: str | None) -> datetime | None:
    """A time of the sets, which have no zone: an ISO day or time, or ``March-15-2024``."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=UTC)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _rows(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
