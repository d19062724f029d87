"""Real sentence-transformers models of a few kilobytes, with random weights, made on the spot."""

import json
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Pooling,
    StaticEmbedding,
    Transformer,
)
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, BertTokenizer

DIMENSION = 32
_CHARACTERS = [chr(code) for code in range(0x21, 0x7F)] + list(
    "张先生喜欢蓝色系的产品每次会议之后好，。"
)
_VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_CHARACTERS] + [
    f"##{character}" for character in _CHARACTERS
]


def save_tiny_bert(folder: Path, *, known_pieces: int = len(_VOCABULARY)) -> Path:
    """A BERT of two layers with a word-piece vocabulary of single characters and mean pooling.

    With fewer ``known_pieces`` than the vocabulary has, later ones make the model fail.
    """
    torch.manual_seed(0)
    bert = folder.parent / f"{folder.name} without pooling"
    config = BertConfig(
        vocab_size=known_pieces,
        hidden_size=DIMENSION,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(bert)
    vocabulary = {piece: number for number, piece in enumerate(_VOCABULARY)}
    BertTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(bert)
    modules = [Transformer(str(bert)), Pooling(DIMENSION, "mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def save_tiny_static(folder: Path) -> Path:
    """Word vectors, averaged: a model without a limit and without a tokenizer of transformers."""
    torch.manual_seed(0)
    vocabulary = {piece: number for number, piece in enumerate(_VOCABULARY)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    words = StaticEmbedding(tokenizer, embedding_dim=DIMENSION)
    SentenceTransformer(modules=[words], device="cpu").save(str(folder))
    return folder


def claim_to_see_pictures(folder: Path) -> Path:
    """Make the BERT in ``folder`` one that takes pictures too, as CLIP does."""
    path = folder / "sentence_bert_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["modality_config"]["image"] = config["modality_config"]["text"]
    path.write_text(json.dumps(config), encoding="utf-8")
    return folder
