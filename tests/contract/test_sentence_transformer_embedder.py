"""The embedder over sentence-transformers keeps the contract and fetches nothing unasked."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memory_tool.adapters.sentence_transformer_embedder import SentenceTransformerEmbedder
from memory_tool.errors import InputError, Unavailable
from memory_tool.model import EmbeddingSpace
from memory_tool.ports import Embedder
from tests.contract.embedder import LONG_TEXT, EmbedderContract
from tests.contract.model_hub import ModelHub
from tests.contract.tiny_models import (
    DIMENSION,
    claim_to_see_pictures,
    save_tiny_bert,
    save_tiny_static,
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model named like one of the e5 family, and one of no known name."""
    folder = tmp_path_factory.mktemp("models")
    save_tiny_bert(folder / "multilingual-e5-small")
    save_tiny_bert(folder / "of my own")
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Cuts the way to any other machine; the list tells who was asked for."""
    asked: list[object] = []

    def refuse(host: object, *_: object, **__: object) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_FAIL, "no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


@pytest.fixture(scope="module")
def known(models: Path) -> SentenceTransformerEmbedder:
    """One for all rules: loading is the slow part."""
    return SentenceTransformerEmbedder(model=str(models / "multilingual-e5-small"))


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformerEmbedder:
    """A model without a limit, whose tokenizer doesn't tell where tokens lie."""
    folder = save_tiny_static(tmp_path_factory.mktemp("models") / "static")
    return SentenceTransformerEmbedder(model=str(folder))


class TestSentenceTransformerEmbedder(EmbedderContract):
    """A BERT named like one of the e5 family, so with its prefixes."""

    @pytest.fixture
    def embedder(self, known: SentenceTransformerEmbedder) -> Embedder:
        """The shared one."""
        return known


class TestStaticEmbedder(EmbedderContract):
    """Averaged word vectors."""

    @pytest.fixture
    def embedder(self, static: SentenceTransformerEmbedder) -> Embedder:
        """The shared one."""
        return static


def test_a_folder_counts_as_the_known_model_it_is_named_after(
    known: SentenceTransformerEmbedder,
) -> None:
    """A store made with a model from the hub stays usable with a copy on an offline machine."""
    assert known.space == EmbeddingSpace(
        model="intfloat/multilingual-e5-small",
        dimension=DIMENSION,
        query_prefix="query: ",
        passage_prefix="passage: ",
    )


def test_a_folder_of_no_known_name_has_no_prefixes(models: Path) -> None:
    """Its space names the folder, not the path: models get moved."""
    embedder = SentenceTransformerEmbedder(model=str(models / "of my own"), revision="2")
    assert embedder.space == EmbeddingSpace(model="of my own", dimension=DIMENSION, revision="2")


def test_prefixes_go_before_the_text(models: Path, known: SentenceTransformerEmbedder) -> None:
    """Pins what a prefix does; that the vectors differ would also be true of a wrong prefix."""
    plain = SentenceTransformerEmbedder(model=str(models / "of my own"))
    expected = plain.embed_passages(["query: tea", "passage: tea"])
    made = np.concatenate([known.embed_queries(["tea"]), known.embed_passages(["tea"])])
    assert made == pytest.approx(expected, abs=1e-6)


def test_the_models_own_default_prompt_stays_out(tmp_path: Path) -> None:
    """A prompt that the space doesn't name would make equal spaces incomparable."""
    plain = SentenceTransformerEmbedder(model=str(save_tiny_bert(tmp_path / "plain")))
    expected = plain.embed_passages(["tea"])
    path = tmp_path / "plain" / "config_sentence_transformers.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"prompts": {"mine": "summarise: "}, "default_prompt_name": "mine"}
    path.write_text(json.dumps(config), encoding="utf-8")
    prompted = SentenceTransformerEmbedder(model=str(tmp_path / "plain"))
    assert np.array_equal(prompted.embed_passages(["tea"]), expected)


def test_a_window_of_tokens_fits_with_prefix_and_special_tokens(
    known: SentenceTransformerEmbedder,
) -> None:
    """The model cuts what is longer, and the end of a chunk would not be searchable."""
    # 128 positions, less two special tokens and the eight of "passage:".
    assert known.max_tokens == 118
    stop = known.token_spans(LONG_TEXT)[known.max_tokens - 1][1]
    fits, longer = LONG_TEXT[:stop], LONG_TEXT[: stop + 1]
    assert longer[-1].strip()
    rows = known.embed_passages([fits[:-1], fits, longer])
    assert not np.allclose(rows[0], rows[1], atol=1e-4)
    assert np.allclose(rows[1], rows[2], atol=1e-4)


def test_cutting_and_embedding_at_once_dont_disturb_each_other(
    known: SentenceTransformerEmbedder,
) -> None:
    """They share a tokenizer that one wants to cut at the model's limit, the other never."""
    spans, row = known.token_spans(LONG_TEXT), known.embed_passages([LONG_TEXT])

    def cut() -> bool:
        return known.token_spans(LONG_TEXT) == spans

    def embed() -> bool:
        return np.allclose(known.embed_passages([LONG_TEXT]), row, atol=1e-4)

    with ThreadPoolExecutor(4) as pool:
        right = [pool.submit((cut, embed)[number % 2]) for number in range(200)]
        assert all(each.result() for each in right)


@pytest.mark.parametrize("name", ["nobody/knows-this", "bge-small-zh"])
def test_nothing_is_fetched_unasked(
    no_network: list[object], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On an offline or closed machine a wrong name must not turn into a connection."""
    # What the hub's library would fetch for its statistics, once in a process.
    monkeypatch.setattr("huggingface_hub.utils._detect_agent._registry", None)
    with pytest.raises(InputError, match="not on this machine: allow its download"):
        _ = SentenceTransformerEmbedder(model=name).space
    assert no_network == []


DOWNLOADS = """
from memory_tool.adapters.sentence_transformer_embedder import SentenceTransformerEmbedder
for name, allowed in (
    ("nobody/missing", True),
    ("nobody/closed", True),
    ("nobody/tiny", False),
    ("nobody/tiny", True),
    ("nobody/tiny", True),
    ("nobody/tiny", False),
):
    try:
        embedder = SentenceTransformerEmbedder(model=name, allow_download=allowed)
        print(embedder.space.name)
    except Exception as error:
        print(type(error).__name__)
"""


def test_a_model_is_fetched_once_where_that_is_allowed(models: Path, tmp_path: Path) -> None:
    """After the first time it works offline, and no newer revision slips in."""
    with ModelHub(models / "of my own") as hub:
        # The libraries read where their hub is when they are imported.
        run = subprocess.run(
            [sys.executable, "-c", DOWNLOADS],
            env=os.environ
            | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    space = f"nobody/tiny/{DIMENSION}"
    expected = ["InputError", "Unavailable", "InputError", space, space, space]
    assert run.stdout.split() == expected
    weights = [path for path in hub.requests if path.endswith("model.safetensors")]
    assert len(weights) == 2, "one HEAD, one GET"
    assert sum(path == "/api/models/nobody/tiny" for path in hub.requests) == 1


def test_a_folder_without_a_model_is_an_input_error(tmp_path: Path) -> None:
    """The likeliest mistake with folders: one level too high."""
    with pytest.raises(InputError, match="holds no model"):
        _ = SentenceTransformerEmbedder(model=str(tmp_path)).space


def test_a_model_that_fails_is_unavailable(tmp_path: Path) -> None:
    """The memory is stored without a vector and embedded later; the text stays out of the error."""
    folder = save_tiny_bert(tmp_path / "damaged", known_pieces=70)
    embedder = SentenceTransformerEmbedder(model=str(folder))
    embedder.embed_passages(["!"])
    with pytest.raises(Unavailable, match="the model damaged failed") as caught:
        embedder.embed_passages(["zebra"])
    assert "zebra" not in str(caught.value)


def test_a_text_is_never_opened_as_a_picture(tmp_path: Path, no_network: list[object]) -> None:
    """A model for text and pictures would fetch the address that a memory consists of."""
    folder = save_tiny_bert(tmp_path / "text")
    plain = SentenceTransformerEmbedder(model=str(folder))
    expected = plain.embed_passages(["http://intranet.example/a.png"])
    seeing = SentenceTransformerEmbedder(model=str(claim_to_see_pictures(folder)))
    assert np.array_equal(seeing.embed_passages(["http://intranet.example/a.png"]), expected)
    assert no_network == []


def test_the_import_is_paid_by_the_first_text() -> None:
    """`threefold --help` and stores with another embedder must not load torch."""
    program = (
        "import sys; from memory_tool.adapters.sentence_transformer_embedder import "
        "SentenceTransformerEmbedder as E; E(model='bge-small-zh'); "
        "sys.exit('torch' in sys.modules or 'sentence_transformers' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_loading_prints_nothing(models: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Progress bars in the middle of a command's output, and in `--json`, break its readers."""
    _ = SentenceTransformerEmbedder(model=str(models / "of my own")).space
    assert capfd.readouterr() == ("", "")
