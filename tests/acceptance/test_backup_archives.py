"""Archived texts go along: into backups as files, into exports as texts, and come back whole."""

import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from memory_manage.exchange_export import export_memories
from memory_manage.exchange_files import Numbered
from memory_manage.exchange_import import ImportOptions, import_memories
from memory_manage.manager import MemoryManage
from memory_tool.bootstrap_backup import verify_backup
from memory_tool.errors import Corrupt
from memory_tool.model import Status
from memory_tool.scope import Namespace
from tests.acceptance.asking import found, texts
from tests.acceptance.backups import order_to_erase, restored, saved
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database

COLD: Final = tuple(f"The blue ledger of {year} lies in the harbour. " * 40 for year in (1, 2))


@pytest.fixture
def store(own_store: OwnStore) -> OwnStore:
    """A store with an archive."""
    return replace(own_store, settings={"archive_dir": str(own_store.folder / "archive")})


@pytest.fixture
def memory(store: OwnStore, database: Database) -> Iterator[MemoryManage]:
    """A memory of which two are cold, one of them in its second version."""
    with store.open() as memory:
        first = memory.add("An early text", user_id="u").id
        memory.update(first, content=COLD[0], user_id="u")
        memory.add(COLD[1], user_id="u")
        memory.add("A hot text", user_id="u")
        with database.admin() as connection:
            connection.execute(
                "UPDATE threefold.memory SET created_at = created_at - interval '90 days',"
                " updated_at = updated_at - interval '90 days' WHERE content LIKE 'The blue%'"
            )
        make_cold(memory)
        assert [item.tier for item in memory.get_all(user_id="u")] == ["hot", "cold", "cold"]
        yield memory


def make_cold(memory: MemoryManage) -> None:
    """Do what the nightly job does."""
    ageing = memory._tool.stores.ageing  # noqa: SLF001 - no method of the memory does it
    assert ageing is not None
    ageing.move(lambda: True)


def archive_of(store: OwnStore) -> Path:
    """The folder of the archive."""
    return store.folder / "archive"


def test_archives_are_part_of_a_backup(store: OwnStore, memory: MemoryManage) -> None:
    """A lost archive is there again, whole, also under a store that went on."""
    folder = saved(store)
    shutil.rmtree(archive_of(store))
    restored(store, folder)
    assert set(texts(memory.get_all(user_id="u"))) == {*COLD, "A hot text"}
    assert found(memory, "ledger harbour", user_id="u") >= set(COLD)
    (file, *_) = archive_of(store).iterdir()
    file.write_bytes(b"another")
    with pytest.raises(Corrupt, match="is not what the backup has"):
        restored(store, folder, replace=True)
    with pytest.raises(Corrupt, match="damaged"):
        saved(store, "second")
    saved_file = folder / "archives" / file.name
    saved_file.write_bytes(saved_file.read_bytes()[:-1])
    with pytest.raises(Corrupt, match=f"archives/{file.name} of the backup is damaged"):
        verify_backup(folder)


def test_what_was_erased_leaves_the_restored_archive(
    store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """Its line is there until the archive is written anew, which is due at once."""
    folder = saved(store)
    gone = next(item for item in memory.get_all(user_id="u") if item.memory == COLD[1])
    with database.admin() as connection:
        (ns_id,) = connection.execute("SELECT max(ns_id) FROM threefold.namespace").fetchone() or ()
    order_to_erase(store, ns_id=ns_id, memory_id=gone.id)
    assert restored(store, folder).erased == 1
    assert set(texts(memory.get_all(user_id="u"))) == {COLD[0], "A hot text"}
    with database.admin() as connection:
        stale = connection.execute(
            "SELECT count(*) FROM threefold.archive_file WHERE stale_since IS NOT NULL"
        ).fetchone()
    assert stale == (1,)


def test_cold_texts_are_exported_whole(memory: MemoryManage) -> None:
    """With their versions; where they are taken in they are hot, and stay so for a while."""
    out = io.BytesIO()
    assert export_memories(memory._tool, out) == 3  # noqa: SLF001 - as the command does
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    by_text = {line["content"]: line for line in lines[1:-1]}
    assert set(by_text) == {*COLD, "A hot text"}
    assert [one["content"] for one in by_text[COLD[0]]["versions"]] == ["An early text"]
    items = [Numbered(number, line) for number, line in enumerate(lines, start=1)]
    options = ImportOptions(namespace=Namespace(user="v"))
    report = import_memories(memory._tool, items, options=options)  # noqa: SLF001 - the same
    assert report.counts == {Status.ADDED: 3}
    make_cold(memory)
    taken = memory.get_all(user_id="v").results
    assert {(item.tier, item.memory) for item in taken} == {("hot", text) for text in by_text}
    old = next(item for item in taken if item.memory == COLD[0])
    assert texts(memory.history(old.id, user_id="v")) == ["An early text", COLD[0]]
