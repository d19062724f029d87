"""The table of embedding models."""

import pytest

from memory_tool.embedding_models import KNOWN_MODELS, ModelCard, model_card

CHINESE = "为这个句子生成表示以用于检索相关文章："
ENGLISH = "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize(
    ("name", "dimension", "query_prefix", "passage_prefix"),
    [
        ("intfloat/multilingual-e5-small", 384, "query: ", "passage: "),
        ("intfloat/multilingual-e5-base", 768, "query: ", "passage: "),
        ("intfloat/multilingual-e5-large", 1024, "query: ", "passage: "),
        ("BAAI/bge-small-zh-v1.5", 512, CHINESE, ""),
        ("BAAI/bge-large-zh-v1.5", 1024, CHINESE, ""),
        ("BAAI/bge-small-en-v1.5", 384, ENGLISH, ""),
        ("BAAI/bge-large-en-v1.5", 1024, ENGLISH, ""),
        ("text-embedding-ada-002", 1536, "", ""),
        ("text-embedding-3-small", 1536, "", ""),
    ],
)
def test_cards_say_what_the_makers_say(
    name: str, dimension: int, query_prefix: str, passage_prefix: str
) -> None:
    """A prefix that is off by one character costs recall without any error."""
    card = model_card(name)
    assert card.name == name
    assert (card.dimension, card.query_prefix, card.passage_prefix) == (
        dimension,
        query_prefix,
        passage_prefix,
    )


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("bge-small-zh", "BAAI/bge-small-zh-v1.5"),
        ("bge-small-zh-v1.5", "BAAI/bge-small-zh-v1.5"),
        ("baai/BGE-small-zh-v1.5", "BAAI/bge-small-zh-v1.5"),
        ("models/bge-large-en-v1.5/", "BAAI/bge-large-en-v1.5"),
        ("models\\multilingual-e5-base", "intfloat/multilingual-e5-base"),
        ("e5-large", "intfloat/multilingual-e5-large"),
        ("ada-002", "text-embedding-ada-002"),
    ],
)
def test_a_model_is_known_by_many_names(name: str, known: str) -> None:
    """People type short names and folders; the space must be the same for all of them."""
    assert model_card(name).name == known


@pytest.mark.parametrize("name", ["my-bge-small-zh", "bge-small-zh-v1.5-tuned", "bge-m3", ""])
def test_an_unknown_model_has_no_prefixes(name: str) -> None:
    """A prefix that the model wasn't trained with is noise in every text."""
    assert model_card(name) == ModelCard(name=name)


def test_no_two_models_share_a_name() -> None:
    """The first of two would hide the second."""
    names = [name for card in KNOWN_MODELS for name in (card.name, *card.aliases)]
    assert len({model_card(name).name for name in names}) == len(KNOWN_MODELS)
    assert all(card.purpose and card.languages for card in KNOWN_MODELS)
