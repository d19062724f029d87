"""The truth in memory keeps the contracts."""

import pytest

from memory_tool.adapters.in_memory_generations import InMemoryGenerations
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.errors import Unavailable
from memory_tool.port_values import ForeignHistory, TargetBase
from memory_tool.scope import Scope
from tests.contract.adoption import AdoptionContract
from tests.contract.change_log import ChangeLogContract
from tests.contract.generation_catalogue import Catalogued, GenerationCatalogueContract
from tests.contract.record_reader import RecordReaderContract, SpaceRegistryContract
from tests.contract.record_snapshot import SnapshotContract
from tests.contract.record_store import RecordStoreContract
from tests.contract.truth import NO_BASE, Truth, in_memory_truth
from tests.factories import BEN


class InMemory:
    """Gives each test an empty truth in memory."""

    @pytest.fixture
    def truth(self) -> Truth:
        """An empty one."""
        return in_memory_truth(InMemoryStore())


class TestInMemoryRecordStore(InMemory, RecordStoreContract):
    """Commits and scopes."""


class TestInMemoryAdoption(InMemory, AdoptionContract):
    """Memories that were kept elsewhere."""


class TestInMemorySnapshot(InMemory, SnapshotContract):
    """One moment of it."""


class TestInMemoryRecordReader(InMemory, RecordReaderContract):
    """Reading without searching."""


class TestInMemorySpaceRegistry(InMemory, SpaceRegistryContract):
    """The embedding space."""


class TestInMemoryChangeLog(InMemory, ChangeLogContract):
    """What appliers read."""


class TestInMemoryGenerations(GenerationCatalogueContract):
    """Builds of indexes."""

    @pytest.fixture
    def catalogued(self) -> Catalogued:
        """Empty."""
        store = InMemoryStore()
        return Catalogued(
            truth=in_memory_truth(store),
            catalogue=InMemoryGenerations(store),
            letters=lambda target: len(store.state.letters.get(target, {})),
        )


def test_a_restored_store_is_another_history() -> None:
    """Clocks repeat after a restore; incarnation, stamps and marks must not."""
    store = InMemoryStore()
    truth = in_memory_truth(store)
    truth.add("tea")
    backup = store.dump()
    truth.add("green tea", namespace=BEN)
    mark = truth.marked("folder")
    before = truth.store.view(Scope.of(BEN), ())
    store.restore(backup)
    assert truth.store.view(Scope.of(BEN), ()).namespaces == ()
    truth.add("black tea", namespace=BEN)
    after = truth.store.view(Scope.of(BEN), ())
    (old,), (new,) = before.namespaces, after.namespaces
    assert (old.ns_id, old.nseq) == (new.ns_id, new.nseq)
    assert (before.incarnation, old.stamp) != (after.incarnation, new.stamp)
    base = TargetBase(mark=mark, clocks={old.ns_id: 1})
    with pytest.raises(ForeignHistory), truth.log.changes("folder", "vector", base=base, limit=10):
        pass


def test_rows_read_across_a_restore_vouch_for_nothing() -> None:
    """Their mark would be known to a history that never had them."""
    store = InMemoryStore()
    truth = in_memory_truth(store)
    backup = store.dump()
    truth.add("tea")
    with truth.log.changes("folder", "vector", base=NO_BASE, limit=10) as batch:
        assert next(batch.rows).live
        store.restore(backup)
        with pytest.raises(Unavailable):
            next(batch.rows)
