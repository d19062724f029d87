"""Tokens of what stands beside the text of a memory: tags, source and metadata strings."""

from collections.abc import Iterator, Mapping, Sequence

from memory_tool.model import Json
from memory_tool.text.tokenise import tokenise


def extra_tokens(
    tags: Sequence[str], source: Mapping[str, Json], *, metadata: Mapping[str, Json]
) -> str:
    """Words and bigrams of every string in them, joined by blanks; empty when there is none."""
    texts = [*tags, *_strings(source), *_strings(metadata)]
    if not texts:
        return ""
    tokens = tokenise("\n".join(texts))
    return " ".join((*tokens.words, *tokens.bigrams))


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _strings(item)
