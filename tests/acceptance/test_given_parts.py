"""Parts that the caller brings: a record store with all its ports, or with too few."""

from pathlib import Path

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.adapters.in_memory_truth import InMemoryTruth
from memory_tool.errors import SettingsError


def test_a_given_record_store_is_the_truth(tmp_path: Path) -> None:
    """The local indexes follow it, and a second opening finds what the first stored."""
    truth = InMemoryTruth()
    with MemoryManage.open(data_dir=tmp_path, embedder="hashing", record_store=truth) as memory:
        written = memory.add("客户张先生偏好蓝色系产品", user_id="u")
        assert memory.apply_now()
        assert [item.id for item in memory.search("蓝色", user_id="u")] == [written.id]
        assert memory.health().ok

    with MemoryManage.open(data_dir=tmp_path, embedder="hashing", record_store=truth) as memory:
        assert [item.id for item in memory.search("蓝色", user_id="u")] == [written.id]
        assert memory.get(written.id, user_id="u").memory == "客户张先生偏好蓝色系产品"


def test_a_record_store_with_too_few_ports_is_refused_by_name(tmp_path: Path) -> None:
    """At the start, not at the first listing."""
    store = InMemoryRecordStore(InMemoryStore())

    with pytest.raises(SettingsError, match="RecordReader"):
        MemoryManage.open(data_dir=tmp_path, embedder="hashing", record_store=store)
