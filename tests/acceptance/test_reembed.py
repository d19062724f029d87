"""``threefold reembed``: another model for every vector, while others search and write."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from memory_manage.bootstrap import open_parts
from memory_manage.manager import MemoryManage
from memory_tool.assembly import ChangeOfModel
from memory_tool.errors import InputError
from memory_tool.tool import MemoryTool
from tests.acceptance.opening import OwnStore
from tests.acceptance.other_process import OtherProcess

FIRST: Final = "hashing"
SAME_SIZE: Final = "hashing@other"
"""Vectors as long as the first model's, at random to them: of a mixture every cosine would tell."""
LARGER: Final = "hashing:128"

FACTS: Final = tuple(f"the {colour} kite number {n}" for colour in ("red", "blue") for n in range(30))


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A store of some facts, whose later openers take whatever model is recorded."""
    with own_store.open(embedder=FIRST) as memory:
        memory.add_many(list(FACTS), user_id="u")
        memory.add_many(["a kite of the neighbour"], user_id="v")
        assert memory.apply_now()
    return replace(own_store, settings={**own_store.settings, "embedder": ""})


@contextmanager
def changing(store: OwnStore) -> Iterator[tuple[MemoryTool, ChangeOfModel]]:
    """What the command opens: a tool without threads that apply, and the change itself."""
    settings = {"data_dir": str(store.data_dir()), "database_url": store.database_url}
    given = {**settings, **store.settings, "applying": False}
    with open_parts(given, on_progress=lambda _line: None).tool as tool:
        assert tool.stores.change_of_model is not None
        yield tool, tool.stores.change_of_model


def reembed(store: OwnStore, model: str | None) -> None:
    """Change to a model, or back for ``None``."""
    with changing(store) as (tool, change):
        coming = change.back() if model is None else change.begin(model)
        assert change.run(lambda: True, lambda _done, _every: None)
        assert tool.stores.active() == coming.number


def cosines(memory: MemoryManage, texts: Sequence[str], *, user: str = "u") -> dict[str, float]:
    """The cosine of each text to itself as a question, by the vectors alone."""
    found: dict[str, float] = {}
    for text in texts:
        answer = memory.search(text, user_id=user, mode="vector", threshold=0.0, explain=True)
        assert not answer.degraded
        for item in answer.results:
            if item.memory == text and item.explanation is not None:
                found[text] = item.explanation.cosine or 0.0
    return found


def assert_whole(memory: MemoryManage, texts: Sequence[str] = FACTS) -> None:
    """Each text has a vector of the model that questions are embedded by."""
    found = cosines(memory, texts)
    assert set(found) == set(texts)
    assert min(found.values()) > 0.99


@pytest.mark.parametrize("model", [SAME_SIZE, LARGER])
def test_a_store_gets_another_model_and_gets_its_old_one_back(filled: OwnStore, model: str) -> None:
    """Of another size or, more dangerous, of the same; rows written since come back too."""
    reembed(filled, model)
    with filled.open() as memory:
        assert memory.health().where["embedder"] == _space(model)
        assert_whole(memory)
        memory.add("written in the new space", user_id="u")
        assert_whole(memory, [*FACTS, "written in the new space"])
    reembed(filled, None)
    with filled.open() as memory:
        assert memory.health().where["embedder"] == "hashing/64"
        assert_whole(memory, [*FACTS, "written in the new space"])
    with changing(filled) as (_, change):
        assert change.forget(lambda: True) == 1
        with pytest.raises(InputError, match="no embedding space is kept"):
            change.back()
    with filled.open() as memory:
        assert_whole(memory, [*FACTS, "written in the new space"])


def _space(model: str) -> str:
    return {SAME_SIZE: "hashing@other/64", LARGER: "hashing/128"}[model]


def test_searches_and_writes_go_on_and_never_mix(filled: OwnStore) -> None:
    """Two processes, there and back: every write is seen, every cosine is of one model."""
    with (
        filled.open() as here,
        filled.other_process() as there,
        ThreadPoolExecutor(1) as pool,
    ):
        texts: list[str] = []
        for model in (SAME_SIZE, None, LARGER):
            change = pool.submit(reembed, filled, model)
            while not change.done():
                texts.append(f"note {len(texts)} of there")
                assert there.call("add", texts[-1], user_id="u")["results"][0]["status"] == "added"
                texts.append(f"note {len(texts)} of here")
                here.add(texts[-1], user_id="u")
                for text in (texts[0], *texts[-2:], FACTS[0]):
                    assert_seen(here, text)
                    assert_seen(there, text)
            change.result()
        assert_whole(here, [*FACTS, *texts])


def assert_seen(memory: MemoryManage | OtherProcess, text: str) -> None:
    """A search finds the text; whatever its vector is compared with is of the same model."""
    options = {"user_id": "u", "threshold": 0.0, "explain": True, "limit": 20}
    if isinstance(memory, OtherProcess):
        answer = memory.call("search", text, **options)
    else:
        answer = memory.search(text, **options).to_dict()
    assert answer["degraded"] == []
    (itself,) = [item for item in answer["results"] if item["memory"] == text]
    cosine = itself["explanation"]["cosine"]
    # One that was written beside the switch has no vector for a moment.
    assert cosine is None or cosine > 0.99
