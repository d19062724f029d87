"""Messages of a dialogue, each made into a memory of its own. Pure."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memory_manage.intake import new_memory, time_of
from memory_tool.errors import InputError
from memory_tool.model import Json, MemoryType, NewMemory, Turn

TOOL_ROLES: Final = ("tool", "function")
_OUTCOME: Final = ("tool_call_id", "outcome", "is_error", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A message that is not stored, and why."""

    reason: str


def messages_to_memories(
    messages: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    first_position: int = 0,
) -> list[NewMemory | Skipped]:
    """One memory for each message, with its conversation, position, role, name and time.

    Tool messages become observations with their outcome in the metadata. The position counts every
    message, also skipped ones.

    Args:
        messages: ``{"role": …, "content": …, "timestamp": …, "name": …}``.
        options: Options of ``add`` that hold for all of them.
        first_position: The position of the first message.

    Raises:
        InputError: A message has no role, or a content that is neither text nor parts; or an option
            holds for one memory only.
    """
    for name in ("key", "embedding"):
        if options.get(name) is not None and len(messages) > 1:
            message = f"{name} belongs to one memory, but there are {len(messages)} messages"
            raise InputError(message)
    conversation = options.get("conversation_id") or options.get("run_id") or uuid.uuid4().hex
    return [
        _memory(message, options, conversation=conversation, position=first_position + number)
        for number, message in enumerate(messages)
    ]


def _memory(
    message: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    conversation: str,
    position: int,
) -> NewMemory | Skipped:
    role = message.get("role")
    if not isinstance(role, str) or not role:
        message_text = f"message {position} has no role"
        raise InputError(message_text)
    is_tool = role in TOOL_ROLES
    if is_tool and options.get("skip_tools"):
        return Skipped(reason="a tool message")
    text, left_out = _text(message.get("content"), position)
    if not text.strip():
        return Skipped(reason=f"no text{f' ({left_out})' if left_out else ''}")
    turn = Turn(
        conversation_id=conversation, position=position, role=role, name=message.get("name")
    )
    metadata: dict[str, Json] = {**_metadata(options)}
    if is_tool:
        metadata |= {name: message[name] for name in _OUTCOME if name in message}
        metadata |= {"tool": message["name"]} if message.get("name") else {}
    if left_out:
        metadata["left_out"] = left_out
    given = {
        **options,
        "metadata": metadata,
        "occurred_at": time_of(message.get("timestamp"), "timestamp") or options.get("occurred_at"),
    }
    if is_tool:
        given["type"] = MemoryType.OBSERVATION
    return new_memory(text, given, turn=turn)


def _metadata(options: Mapping[str, Any]) -> Mapping[str, Json]:
    given = options.get("metadata") or {}
    if not isinstance(given, Mapping):
        message = f"metadata must be a mapping, not {type(given).__name__}"
        raise InputError(message)
    return given


def _text(content: object, position: int) -> tuple[str, str]:
    """The text parts joined by line ends, and which kinds of parts were left out."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, Sequence):
        message = f"the content of message {position} is neither a text nor a list of parts"
        raise InputError(message)
    texts: list[str] = []
    others: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            others.append(str(kind))
    return "\n".join(texts), ", ".join(others)
