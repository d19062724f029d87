"""The inventory of each index keeps the contract."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from memory_tool.adapters import elasticsearch_inventory, tantivy_inventory
from memory_tool.adapters.elasticsearch_connection import ElasticsearchConnection
from memory_tool.adapters.elasticsearch_generations import Copies, Generations
from memory_tool.adapters.elasticsearch_layout import KeywordLayout, Layout, VectorLayout
from memory_tool.adapters.elasticsearch_target import ElasticsearchTarget
from memory_tool.adapters.faiss_files import OpenedGeneration, open_generation
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_inventory import FaissInventory
from memory_tool.adapters.tantivy_folder import TantivyFolder
from memory_tool.adapters.tantivy_inventory import TantivyInventory
from memory_tool.adapters.tantivy_target import TantivyTarget
from memory_tool.inventory_ports import IndexInventory
from tests.contract.elasticsearch_pairs import PointerLog, access_of
from tests.contract.index_inventory import TARGET, IndexInventoryContract, Inspected
from tests.contract.truth import present
from tests.services.elasticsearch import ElasticsearchServer


class TestFaissInventory(IndexInventoryContract):
    """Generations, with a graph for each namespace: its dead rows stay in their places."""

    @pytest.fixture
    def inspected(self, tmp_path: Path) -> Inspected:
        """Over a folder that is not there yet."""
        log, root = PointerLog(), tmp_path / "vectors"
        policy = GraphPolicy(above=0, threads=1)
        target = FaissTarget(root, name=TARGET, pointer=lambda: log.pointer(TARGET), policy=policy)

        def look() -> AbstractContextManager[IndexInventory]:
            opened = open_generation(root, present(log.pointer(TARGET)))
            return nullcontext(FaissInventory(opened))

        return Inspected(target=target, look=look, log=log)

    def test_the_generation_before_the_first_is_empty(self, tmp_path: Path) -> None:
        """Nothing was folded yet."""
        inventory = FaissInventory(OpenedGeneration.empty(tmp_path))
        assert (inventory.mark, dict(inventory.clocks), [*inventory.entries()]) == (None, {}, [])


class TestTantivyInventory(IndexInventoryContract):
    """Commits."""

    @pytest.fixture
    def inspected(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inspected]:
        """Over an empty folder, read ten chunks at once."""
        monkeypatch.setattr(tantivy_inventory, "AT_ONCE", 10)
        folder = tmp_path / "keywords"
        target = TantivyTarget(folder, name=TARGET, tokeniser=1)

        def look() -> AbstractContextManager[IndexInventory]:
            opened = TantivyFolder(folder).follow(None)
            return nullcontext(TantivyInventory(opened.searcher if opened else None, tokeniser=1))

        yield Inspected(target=target, look=look)
        target.close()

    def test_a_folder_without_an_index_is_empty(self) -> None:
        """Nothing was applied yet."""
        inventory = TantivyInventory(None, tokeniser=1)
        assert (inventory.mark, dict(inventory.clocks), [*inventory.entries()]) == (None, {}, [])


class OnElasticsearch(IndexInventoryContract):
    """An index of one kind on a server, read ten chunks a page."""

    layout: Layout

    @pytest.fixture
    def inspected(
        self,
        elasticsearch: ElasticsearchServer,
        index_prefix: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> Iterator[Inspected]:
        """In a family of its own."""
        monkeypatch.setattr(elasticsearch_inventory, "PAGE", 10)
        connection = ElasticsearchConnection(access_of(elasticsearch))
        generations = Generations(connection, family=index_prefix, copies=Copies(replicas=0))
        log = PointerLog()
        target = ElasticsearchTarget(generations, name=TARGET, layout=self.layout, log=log)

        def look() -> AbstractContextManager[IndexInventory]:
            index = present(log.pointer(TARGET)).locator
            return elasticsearch_inventory.elasticsearch_inventory(connection, index)

        yield Inspected(target=target, look=look, log=log)
        connection.close()


class TestElasticsearchKeywordInventory(OnElasticsearch):
    """Tokens."""

    layout = KeywordLayout(tokeniser=1)


class TestElasticsearchVectorInventory(OnElasticsearch):
    """Vectors."""

    layout = VectorLayout()
