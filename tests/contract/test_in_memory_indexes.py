"""The indexes in memory keep the contracts, and can be lost and restored."""

import pytest

from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordFolder,
    InMemoryKeywordIndex,
    InMemoryKeywordTarget,
)
from memory_tool.adapters.in_memory_vector_index import (
    InMemoryVectorFolder,
    InMemoryVectorIndex,
    InMemoryVectorTarget,
)
from memory_tool.errors import Corrupt
from memory_tool.port_values import TargetBase
from tests.contract.keyword_index import KeywordIndexContract, KeywordPair
from tests.contract.keyword_rows import apply, chunk, find, row
from tests.contract.vector_history import TARGET, VectorHistory, VectorPair, axis
from tests.contract.vector_index import VectorIndexContract
from tests.contract.vector_target import VectorTargetContract


def vector_pair(folder: InMemoryVectorFolder, history: VectorHistory) -> VectorPair:
    """An index and its target over ``folder``."""
    index = InMemoryVectorIndex(
        folder, target=TARGET, store=history.store, space=lambda: history.space
    )
    target = InMemoryVectorTarget(folder, name=TARGET, pointer=lambda: history.pointer(TARGET))
    return VectorPair(index=index, target=target, history=history)


def keyword_pair(folder: InMemoryKeywordFolder) -> KeywordPair:
    """An index and its target over ``folder``."""
    return KeywordPair(
        index=InMemoryKeywordIndex(folder, target="folder-1"),
        target=InMemoryKeywordTarget(folder, name="folder-1"),
    )


class TestInMemoryVectorIndex(VectorIndexContract, VectorTargetContract):
    """Generations."""

    @pytest.fixture
    def pair(self, history: VectorHistory) -> VectorPair:
        """Over an empty folder."""
        return vector_pair(InMemoryVectorFolder(), history)


class TestInMemoryKeywordIndex(KeywordIndexContract):
    """Batches."""

    @pytest.fixture
    def pair(self) -> KeywordPair:
        """Over an empty folder."""
        return keyword_pair(InMemoryKeywordFolder())


def test_a_lost_vector_folder_is_corrupt_until_it_is_reset() -> None:
    """The pointer still names what is gone: that must not read like an empty index."""
    folder, history = InMemoryVectorFolder(), VectorHistory()
    pair = vector_pair(folder, history)
    history.put(1, 1, axis(0, 16))
    backup = folder.dump()
    pair.fold()
    folder.restore(backup)
    with pytest.raises(Corrupt):
        pair.index.view(history.published(TARGET))
    with pytest.raises(Corrupt):
        pair.target.base()
    pair.target.reset()
    assert len(pair.fold().search(axis(0, 16), [1], depth=9)) == 1


def test_a_generation_of_another_history_is_corrupt() -> None:
    """After a restore a number may name something else."""
    folder, history = InMemoryVectorFolder(), VectorHistory()
    pair = vector_pair(folder, history)
    history.put(1, 1, axis(0, 16))
    before = folder.dump()
    pair.fold()
    pointer = history.published(TARGET)
    folder.restore(before)
    other = vector_pair(folder, VectorHistory())
    other.history.put(1, 1, axis(0, 16))
    other.history.put(1, 2, axis(0, 16))
    other.fold()
    with pytest.raises(Corrupt):
        pair.index.view(pointer)


def test_a_restored_keyword_folder_is_at_its_older_mark() -> None:
    """So the truth can tell whether it knows that history."""
    folder = InMemoryKeywordFolder()
    pair = keyword_pair(folder)
    apply(pair.target, row(1, chunk("tea")), mark="a")
    backup = folder.dump()
    apply(pair.target, row(2, chunk("tea")), mark="b", clock=2)
    folder.restore(backup)
    assert pair.target.base() == TargetBase(mark="a", clocks={1: 1})
    assert find(pair.index.view(), "tea") == [1]
