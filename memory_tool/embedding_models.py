"""What is known of embedding models: a table, without any model.

Prefixes are part of a model as its makers trained it: the right ones cost nothing, wrong ones cost
recall. Dimensions, limits and prefixes are those of the model cards.
"""

from dataclasses import dataclass
from typing import Final

_CHINESE_INSTRUCTION: Final = "为这个句子生成表示以用于检索相关文章："
_ENGLISH_INSTRUCTION: Final = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One embedding model.

    Attributes:
        name: The one name under which its vectors are recorded.
        aliases: Other names that people use for it.
        dimension: Length of its vectors; ``None`` when it has to be asked.
        languages: ISO 639-1 codes, or ``multilingual``; empty when unknown.
        max_tokens: Most tokens of one input, with special tokens and prefix.
        query_prefix: What goes before a question.
        passage_prefix: What goes before a text to be found.
        purpose: What it is good for, in a few words.
    """

    name: str
    aliases: tuple[str, ...] = ()
    dimension: int | None = None
    languages: tuple[str, ...] = ()
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    purpose: str = ""


def _e5(size: str, dimension: int, *, purpose: str) -> ModelCard:
    return ModelCard(
        name=f"intfloat/multilingual-e5-{size}",
        aliases=(f"e5-{size}",),
        dimension=dimension,
        languages=("multilingual",),
        query_prefix="query: ",
        passage_prefix="passage: ",
        purpose=purpose,
    )


def _bge(size: str, language: str, *, dimension: int, purpose: str) -> ModelCard:
    return ModelCard(
        name=f"BAAI/bge-{size}-{language}-v1.5",
        aliases=(f"bge-{size}-{language}",),
        dimension=dimension,
        languages=(language,),
        query_prefix=_CHINESE_INSTRUCTION if language == "zh" else _ENGLISH_INSTRUCTION,
        purpose=purpose,
    )


KNOWN_MODELS: Final = (
    _e5("small", 384, purpose="a hundred languages, also across them, on a laptop"),
    _e5("base", 768, purpose="a hundred languages, twice the size"),
    _e5("large", 1024, purpose="a hundred languages, best of its family, for a GPU"),
    _bge("small", "zh", dimension=512, purpose="Chinese on a laptop"),
    _bge("large", "zh", dimension=1024, purpose="Chinese at its best, for a GPU"),
    _bge("small", "en", dimension=384, purpose="English on a laptop"),
    _bge("large", "en", dimension=1024, purpose="English at its best, for a GPU"),
    ModelCard(
        name="text-embedding-ada-002",
        aliases=("ada-002",),
        dimension=1536,
        languages=("multilingual",),
        max_tokens=8191,
        purpose="over HTTP, for stores that already have its vectors",
    ),
    ModelCard(
        name="text-embedding-3-small",
        dimension=1536,
        languages=("multilingual",),
        max_tokens=8191,
        purpose="over HTTP, the successor of ada-002",
    ),
)
"""The models with a name of their own. Any other model works too, without prefixes."""


def model_card(name: str) -> ModelCard:
    """What is known of the model ``name``.

    A known model is recognised by its name, by an alias, and by the last part of a path, so that
    a downloaded folder counts as the model that it is named after; capitals don't matter.

    Returns:
        The card of a known model; else a card with this name, no prefixes and no dimension.
    """
    wanted = _last_part(name)
    for card in KNOWN_MODELS:
        if wanted in {_last_part(known) for known in (card.name, *card.aliases)}:
            return card
    return ModelCard(name=name)


def _last_part(name: str) -> str:
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()
