"""A namespace written as one text, as commands, addresses and files have it."""

import json

from memory_tool.errors import InvalidScope


def namespace_of(text: str, *, what: str) -> str | tuple[str, ...]:
    """The namespace in the SDK's words: ``user:…/project:…`` as it is, a JSON list as segments.

    Args:
        text: The text.
        what: Where it stood, for the message.

    Raises:
        InvalidScope: It looks like JSON and isn't a list of texts.
    """
    if not text.startswith("["):
        return text
    try:
        segments = json.loads(text)
    except (ValueError, RecursionError):
        segments = None
    if not isinstance(segments, list) or not all(isinstance(part, str) for part in segments):
        message = f"{what} {text!r} is neither 'user:…/project:…' nor a JSON list of texts"
        raise InvalidScope(message)
    return tuple(segments)
