"""Backup and restore: the store as it was at one moment, whatever was written since."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from memory_manage.erasing import erase
from memory_manage.manager import MemoryManage
from memory_tool.adapters import postgres_migrations, postgres_restore
from memory_tool.adapters.backup_folder import FolderBackup
from memory_tool.adapters.erase_ledger_file import EraseLedgerFile
from memory_tool.adapters.postgres_backup import NOT_SAVED
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_erase import PostgresErase
from memory_tool.adapters.postgres_migrations import Migration, shipped_migrations
from memory_tool.adapters.postgres_restore import PostgresRestoreTarget
from memory_tool.adapters.postgres_server import Role
from memory_tool.backup_ports import RestoreWish
from memory_tool.bootstrap_backup import make_backup
from memory_tool.errors import Corrupt, InputError, Unavailable, WouldLose
from memory_tool.scope_words import ScopeWords
from tests.acceptance.asking import MODES, found, texts
from tests.acceptance.backups import (
    all_tables,
    content,
    fill_empty_tables,
    manifest_in,
    order_to_erase,
    restored,
    saved,
    settings_of,
)
from tests.acceptance.opening import OwnStore
from tests.services.postgres import Database, Server

FACTS: Final = tuple(f"fact {number} about subject {number % 3}" for number in range(12))


@pytest.fixture
def memory(own_store: OwnStore) -> Iterator[MemoryManage]:
    """A memory of one user with a dozen facts, open all the time, its indexes up to date."""
    with own_store.open() as memory:
        memory.add_many(FACTS, user_id="u")
        assert memory.apply_now()
        yield memory


def degraded(memory: MemoryManage) -> set[str]:
    """The parts that a search says are missing."""
    return {note.part for note in memory.search("fact", user_id="u").degraded}


def test_a_store_goes_back_to_the_moment_of_its_backup(
    own_store: OwnStore, memory: MemoryManage
) -> None:
    """A process that was open all the time answers from it, at once and after healing."""
    first, second = memory.get_all(user_id="u").results[:2]
    memory.update(first.id, content="fact that was changed before", user_id="u")
    before = set(texts(memory.get_all(user_id="u")))
    folder = saved(own_store)
    memory.update(first.id, content="fact that was changed again", user_id="u")
    memory.delete(second.id, user_id="u")
    memory.add("a fact of later", user_id="u")
    memory.apply_now()
    assert found(memory, "fact", user_id="u") != before
    told = restored(own_store, folder, replace=True)
    assert (told.memories, told.lost) == (12, 2)
    for _ in range(2):
        assert set(texts(memory.get_all(user_id="u"))) == before
        for mode in MODES:
            assert found(memory, "fact", user_id="u", mode=mode) == before
        assert len(memory.history(first.id, user_id="u")) == 2
        memory.apply_now()
    assert degraded(memory) == set()
    assert memory.health().lag["vector index"]["rows"] == 0
    memory.add("a fact after the restore", user_id="u")
    assert found(memory, "fact", user_id="u") == {*before, "a fact after the restore"}


def test_what_is_newer_is_not_lost_without_a_word(
    own_store: OwnStore, memory: MemoryManage
) -> None:
    """Somebody who takes the wrong folder must not find out afterwards."""
    folder = saved(own_store)
    assert restored(own_store, folder).lost == 0
    memory.add("a fact of later", user_id="u")
    with pytest.raises(WouldLose, match="1 memories that are newer"):
        restored(own_store, folder)
    assert "a fact of later" in texts(memory.get_all(user_id="u"))
    gone = memory.get_all(user_id="u").results[-1].id
    memory.delete(gone, user_id="u")
    with pytest.raises(WouldLose, match="1 deletions undone"):
        restored(own_store, folder)
    newest = saved(own_store, "newest")
    assert restored(own_store, folder, replace=True).lost == 1
    assert restored(own_store, newest).lost == 0, "an older state has nothing that is lost"


def test_every_table_is_saved_or_named_as_left_out(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """A table that a later version adds must not be forgotten; rows come back as they were."""
    memory.delete(memory.get_all(user_id="u").results[0].id, user_id="u")
    fill_empty_tables(database)
    folder = saved(own_store)
    saved_tables = {table.name for table in manifest_in(folder).tables}
    assert saved_tables | set(NOT_SAVED) == all_tables(database)
    before = content(database)
    assert [name for name, rows in before.items() if not rows] == []
    memory.close()
    with database.admin() as connection:
        connection.execute("UPDATE threefold.memory SET pinned = true")
    restored(own_store, folder, replace=True)
    after = content(database)
    # Who follows an index has to say so again.
    assert {name for name in before if after[name] != before[name]} == {"index_target"}


def test_numbers_go_on_where_the_backup_stood(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """A new namespace must not get the number of a restored one, nor of one that was lost."""
    folder = saved(own_store)
    memory.add("of somebody else", user_id="later")
    restored(own_store, folder, replace=True)
    memory.add("of a third one", user_id="third")
    with database.admin() as connection:
        rows = connection.execute("SELECT ns_id FROM threefold.namespace ORDER BY 1").fetchall()
    first, third = (ns_id for (ns_id,) in rows)
    assert third == first + 2


def test_a_log_that_looked_before_looks_anew(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """Appliers remember clocks; those of lost namespaces would be pending for ever."""
    folder = saved(own_store)
    memory.add("of somebody else", user_id="later")
    with database.pool(Role.WORKER) as pool:
        log = PostgresChangeLog(pool)
        assert log.pending({}) == len(FACTS) + 1
        restored(own_store, folder, replace=True)
        assert log.pending({}) == len(FACTS)


def test_a_backup_restores_into_another_store(
    own_store: OwnStore, memory: MemoryManage, embedded_postgres: Server
) -> None:
    """A new machine: the store is the same one there, and its indexes are built by themselves."""
    memory.add("客户张先生偏好蓝色系产品", user_id="u")
    folder = saved(own_store)
    with embedded_postgres.blank_database() as blank:
        there = OwnStore(folder=own_store.folder / "there", database_url=blank.conninfo(Role.APP))
        there.folder.mkdir(mode=0o711)
        assert restored(there, folder).memories == 13
        with there.open() as other:
            assert texts(other.search("张先生偏好什么颜色", user_id="u"))[0].startswith("客户")
            other.apply_now()
            assert degraded(other) == set()
            assert found(other, "fact", user_id="u") >= set(FACTS)
            other.add("a fact from there", user_id="u")
        with pytest.raises(WouldLose):
            restored(there, folder)


def test_a_backup_is_one_moment(own_store: OwnStore, memory: MemoryManage) -> None:
    """Pairs that were written together are saved together, though writing goes on."""
    stopped = threading.Event()

    def write() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            memory.add_many([f"left {number}", f"right {number}"], user_id="pairs")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        folders = [saved(own_store, f"backup {number}") for number in range(3)]
    finally:
        stopped.set()
        writer.join()
    for folder in folders:
        restored(own_store, folder, replace=True)
        pairs = texts(memory.get_all(user_id="pairs", limit=10_000))
        lefts = {text.replace("left", "right") for text in pairs if text.startswith("left")}
        assert lefts == {text for text in pairs if text.startswith("right")}


def test_a_folder_that_is_there_is_never_touched(own_store: OwnStore, memory: MemoryManage) -> None:
    """Not even an empty one: it may be somebody's mount point."""
    place = own_store.folder / "backup"
    place.mkdir()
    with pytest.raises(InputError, match="is there already"):
        saved(own_store)
    assert list(place.iterdir()) == []
    assert [path.name for path in own_store.folder.iterdir() if "unfinished" in path.name] == []
    with pytest.raises(InputError, match="no folder"):
        make_backup(settings_of(own_store), own_store.folder / "no" / "where")


# ── Erasures ──


def test_what_was_erased_stays_erased(own_store: OwnStore, memory: MemoryManage) -> None:
    """The ledger lies outside the database, so that a restore can't bring anything back."""
    folder = saved(own_store)
    kept, erased = memory.get_all(user_id="u").results[:2]
    line = order_to_erase(own_store, ns_id=number_of(memory, "u"), memory_id=erased.id)
    assert restored(own_store, folder).erased == 1
    for _ in range(2):
        left = set(FACTS) - {erased.memory}
        assert set(texts(memory.get_all(user_id="u"))) == left
        assert found(memory, "fact", user_id="u") == left
        memory.apply_now()
    assert memory.delete(erased.id, user_id="u").status == "already_deleted"
    assert memory.get(kept.id, user_id="u").memory == kept.memory
    restored(own_store, saved(own_store, "after"), replace=True)
    assert EraseLedgerFile(settings_of(own_store).erase_ledger).lines() == (line,)


def test_a_whole_namespace_stays_erased_on_a_new_machine(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """The ledger comes along in the backup; lines of another store mean other namespaces."""
    memory.add("somebody else's fact", user_id="other")
    ledger = settings_of(own_store).erase_ledger
    line = order_to_erase(own_store, ns_id=number_of(memory, "u"), memory_id=None)
    other = number_of(memory, "other")
    strange = replace(line, name=uuid.uuid4().hex, store="0" * 32, ns_id=other)
    EraseLedgerFile(ledger).append([strange])
    folder = saved(own_store)
    ledger.unlink()
    assert restored(own_store, folder).erased == len(FACTS)
    assert texts(memory.get_all(user_id="u")) == []
    assert texts(memory.get_all(user_id="other")) == ["somebody else's fact"]
    assert EraseLedgerFile(ledger).lines() == (line, strange)
    with database.admin() as connection:
        kept = connection.execute(
            "SELECT count(*) FROM threefold.chunk WHERE ns_id = %s", [line.ns_id]
        ).fetchone()
    assert kept == (0,)


def test_a_backup_from_before_an_erasure_brings_nothing_back(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """The restore itself carries the orders out, so that the next opening finds none to do."""
    memory.add("somebody else's fact", user_id="other")
    folder = saved(own_store)
    with own_store.parts().tool as tool:
        scope, _ = tool.scope_and_filter(ScopeWords(user_id="u"), None)
        assert erase(tool, scope).rows["memories"] == len(FACTS)
    assert restored(own_store, folder).erased == len(FACTS)
    ledger = EraseLedgerFile(settings_of(own_store).erase_ledger)
    with database.pool(Role.WORKER) as pool:
        assert PostgresErase(pool).carried_out() == {line.name for line in ledger.lines()}
    for _ in range(2):
        assert texts(memory.get_all(user_id="u")) == []
        assert found(memory, "fact", user_id="u") == set()
        assert found(memory, "fact", user_id="other") == {"somebody else's fact"}
        memory.apply_now()


def number_of(memory: MemoryManage, user: str) -> int:
    """The number of a user's namespace."""
    scope, _ = memory._tool.scope_and_filter(memory.scoped(user_id=user)._bound, None)  # noqa: SLF001
    return memory._tool.stores.records.view(scope, ()).namespaces[0].ns_id  # noqa: SLF001


# ── Schemas ──


def test_an_older_backup_is_brought_up_to_date(
    own_store: OwnStore, memory: MemoryManage, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Migrations run over the restored rows, as they would have over the old store."""
    folder = saved(own_store)
    later = Migration(
        number=9999,
        name="9999_later",
        sql="ALTER TABLE threefold.review ADD COLUMN later text NOT NULL DEFAULT 'made'",
    )
    newest = (*shipped_migrations(), later)
    monkeypatch.setattr(postgres_migrations, "shipped_migrations", lambda: newest)
    monkeypatch.setattr(postgres_restore, "shipped_migrations", lambda: newest)
    memory.close()
    try:
        assert restored(own_store, folder).memories == len(FACTS)
        with database.admin() as connection:
            connection.execute("SELECT later FROM threefold.review")
        with own_store.open() as again:
            assert found(again, "fact", user_id="u") == set(FACTS)
        newer = saved(own_store, "newer")
    finally:
        monkeypatch.undo()
        with database.admin() as connection:
            connection.execute("ALTER TABLE threefold.review DROP COLUMN later")
            connection.execute("DELETE FROM public.threefold_migration WHERE number = 9999")
    with pytest.raises(Corrupt, match="the backup knows migration 9999_later"):
        restored(own_store, newer)


# ── Others, and interruptions ──


def test_who_is_in_the_way_is_named(
    own_store: OwnStore, memory: MemoryManage, database: Database
) -> None:
    """An operator can end a session only by its number."""
    folder = FolderBackup.opened(saved(own_store))
    target = PostgresRestoreTarget(database.conninfo(Role.OWNER), lock_seconds=0.3)
    wish = RestoreWish(
        replace=True, erased=(), before_commit=lambda: None, written=lambda _done: None
    )
    with database.connection(Role.WORKER) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM threefold.chunk")
        said = f"threefold_worker in PostgreSQL process {other.info.backend_pid}"
        with pytest.raises(Unavailable, match=said):
            target.restore(folder, wish)
        other.execute("COMMIT")
    assert target.restore(folder, wish).memories == len(FACTS)
    assert found(memory, "fact", user_id="u") == set(FACTS)
