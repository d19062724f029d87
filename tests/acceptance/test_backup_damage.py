"""Damaged backups, killed restores and indexes of another history: nothing is taken on trust."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from memory_manage.manager import MemoryManage
from memory_tool.adapters.backup_folder import backup_draft
from memory_tool.adapters.postgres_server import Role
from memory_tool.bootstrap_backup import make_backup, verify_backup
from memory_tool.errors import Corrupt, NotFound, Unavailable
from tests.acceptance.asking import found, texts
from tests.acceptance.backups import content, manifest_in, restored, saved, settings_of
from tests.acceptance.opening import OwnStore
from tests.acceptance.other_process import CHECKOUT
from tests.services.postgres import Database
from tests.services.tmpfs import small_disk

FACTS: Final = tuple(f"fact {number}" for number in range(6))
MEMORY: Final = "tables/memory.tsv.zst"
CHUNK: Final = "tables/chunk.tsv.zst"


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A closed store of six facts with its indexes."""
    with own_store.open() as memory:
        memory.add_many(FACTS, user_id="u")
        memory.apply_now()
    return own_store


@pytest.fixture
def backup(filled: OwnStore) -> Path:
    """A backup of it."""
    return saved(filled)


def cut(backup: Path) -> str:
    """The end of a table is missing, as after a copy onto a full disk."""
    os.truncate(backup / MEMORY, (backup / MEMORY).stat().st_size - 9)
    return MEMORY


def flip(backup: Path) -> str:
    """One bit is another one."""
    raw = bytearray((backup / CHUNK).read_bytes())
    raw[len(raw) // 2] ^= 4
    (backup / CHUNK).write_bytes(raw)
    return CHUNK


def lengthen(backup: Path) -> str:
    """Something stands behind the end."""
    with (backup / MEMORY).open("ab") as file:
        file.write(b"more")
    return MEMORY


def swap(backup: Path) -> str:
    """Two files have each other's names."""
    memory, chunk = backup / MEMORY, backup / CHUNK
    aside = backup / "aside"
    memory.rename(aside)
    chunk.rename(memory)
    aside.rename(chunk)
    return "tables/(memory|chunk)"


def lose(backup: Path) -> str:
    """A file is gone."""
    (backup / MEMORY).unlink()
    return "memory.tsv.zst can't be read"


def smuggle(backup: Path) -> str:
    """A file lies in it that the manifest does not know."""
    (backup / "tables" / "extra.tsv.zst").write_bytes(b"")
    return "tables/extra.tsv.zst is no part"


def link_away(backup: Path) -> str:
    """A file leads out of the folder."""
    aside = backup.with_name("aside")
    (backup / MEMORY).rename(aside)
    (backup / MEMORY).symlink_to(aside)
    return "memory.tsv.zst can't be read"


def forget_end(backup: Path) -> str:
    """It never got its manifest, as a copy that broke off."""
    (backup / "manifest.json").unlink()
    return "manifest.json"


def edit(backup: Path) -> str:
    """Somebody changed a number in the manifest."""
    manifest = json.loads((backup / "manifest.json").read_text())
    manifest["sequences"] = {}
    (backup / "manifest.json").write_text(json.dumps(manifest))
    return "the manifest of the backup is damaged"


def spoil_note(backup: Path) -> str:
    """The erase ledger in it says something else."""
    (backup / "erase-ledger.jsonl").write_text("{}\n")
    return "erase-ledger.jsonl of the backup is damaged"


DAMAGES: Final = (cut, flip, lengthen, swap, lose, smuggle, link_away, forget_end, edit, spoil_note)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_named_and_changes_nothing(
    filled: OwnStore, backup: Path, database: Database, damage: Callable[[Path], str]
) -> None:
    """Whoever restores has lost something already; the rest must not go the same way."""
    named = damage(backup)
    before = content(database)
    with pytest.raises(Corrupt, match=named):
        verify_backup(backup)
    with pytest.raises(Corrupt, match=named):
        restored(filled, backup, replace=True)
    assert content(database) == before


def test_files_of_another_backup_are_foreign(filled: OwnStore, backup: Path) -> None:
    """Two whole backups mixed are none."""
    with filled.open() as memory:
        memory.add("a fact of later", user_id="u")
    newer = saved(filled, "newer")
    shutil.copy(backup / MEMORY, newer / MEMORY)
    with pytest.raises(Corrupt, match=MEMORY):
        verify_backup(newer)
    shutil.copy(newer / "manifest.json", backup / "manifest.json")
    with pytest.raises(Corrupt):
        verify_backup(backup)
    with pytest.raises(NotFound, match="there is no folder"):
        verify_backup(backup / "nowhere")


RESTORE: Final = """
import sys, time
from pathlib import Path
from memory_tool.adapters.backup_folder import FolderBackup
from memory_tool.adapters.postgres_restore import PostgresRestoreTarget
from memory_tool.backup_ports import RestoreWish

def stop():
    print("about to commit", flush=True)
    time.sleep(600)

wish = RestoreWish(replace=True, erased=(), before_commit=stop, written=lambda _done: None)
PostgresRestoreTarget(sys.argv[1]).restore(FolderBackup.opened(Path(sys.argv[2])), wish)
"""


def test_a_restore_killed_before_its_commit_leaves_the_old_state(
    filled: OwnStore, backup: Path, database: Database
) -> None:
    """SIGKILL at the last moment: everything is as it was, and nobody waits."""
    with filled.open() as memory:
        memory.add("a fact of later", user_id="u")
        before = content(database)
        command = [sys.executable, "-c", RESTORE, database.conninfo(Role.OWNER), str(backup)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "about to commit\n"
            child.kill()
        assert found(memory, "fact", user_id="u") == {*FACTS, "a fact of later"}
        memory.close()
        assert content(database)["memory"] == before["memory"]


def test_a_backup_that_breaks_off_leaves_no_folder(filled: OwnStore) -> None:
    """Neither under its name nor beside it."""

    def break_off() -> None:
        with backup_draft(filled.folder / "broken") as draft:
            draft.note("README.txt", b"begun")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert [path.name for path in filled.folder.iterdir()] == ["one"]


def test_a_full_disk_is_told(filled: OwnStore) -> None:
    """And leaves nothing that fills it further."""
    with small_disk(1) as disk:
        (disk / "filler").write_bytes(bytes(1_035_000))
        with pytest.raises(Unavailable, match="No space left"):
            make_backup(settings_of(filled), disk / "backup")
        assert [path.name for path in disk.iterdir()] == ["filler"]


# ── Indexes ──


def test_saved_indexes_spare_a_rebuild(filled: OwnStore) -> None:
    """A lost folder of indexes is whole again without anybody applying."""
    backup = saved(filled, with_indexes=True)
    assert {file.name.split("/")[1] for file in manifest_in(backup).files if "/" in file.name} == {
        "vectors",
        "keywords",
    }
    filled.lose_indexes()
    restored(filled, backup)
    assert filled.indexed().vectors == filled.indexed().chunks == len(FACTS)
    with filled.open(applying=False) as memory:
        assert memory.search("fact", user_id="u", on_degraded="raise").degraded == ()
        assert found(memory, "fact", user_id="u") == set(FACTS)
        memory.add("a fact of later", user_id="u")
        memory.apply_now()
        assert memory.search("fact", user_id="u", on_degraded="raise").degraded == ()
    assert filled.indexed().chunks == len(FACTS) + 1


def test_indexes_are_built_anew_after_a_restore(filled: OwnStore) -> None:
    """What was kept for rollback, or half built, is of another history now."""
    with filled.open() as memory:
        build_anew(memory)
        backup = saved(filled)
        memory.add("a fact of later", user_id="u")
        build_anew(memory)
        memory.add("a fact of later still", user_id="u")
        restored(filled, backup, replace=True)
        assert found(memory, "fact", user_id="u") == set(FACTS)
        build_anew(memory)
        assert memory.search("fact", user_id="u", on_degraded="raise").degraded == ()
        assert found(memory, "fact", user_id="u") == set(FACTS)
    assert filled.indexed().vectors == filled.indexed().chunks == len(FACTS)


def build_anew(memory: MemoryManage) -> None:
    """Do what ``threefold rebuild --full --again`` does."""
    background = memory._tool.stores.background  # noqa: SLF001 - as the command does
    assert background is not None
    outcomes = background.do("full", again=True, may_go_on=lambda: True)
    assert set(outcomes.values()) == {"done"}


def test_a_damaged_index_is_in_no_backup(filled: OwnStore) -> None:
    """Its damage would be found when it is needed."""
    for file in filled.index_folders()[1].rglob("*.idx"):
        file.write_bytes(b"\xa5" * file.stat().st_size)
    with pytest.raises(Corrupt, match="damaged"):
        saved(filled, with_indexes=True)
    assert saved(filled).is_dir()


@pytest.fixture
def on_servers(server_store: OwnStore) -> Iterator[MemoryManage]:
    """A memory whose indexes are on a server, with six facts."""
    with server_store.open() as memory:
        memory.add_many(FACTS, user_id="u")
        memory.apply_now()
        yield memory


def test_an_index_on_a_server_notices_that_the_store_went_back(
    server_store: OwnStore, on_servers: MemoryManage
) -> None:
    """It holds what the store does not know, under numbers that are given out again."""
    backup = saved(server_store)
    on_servers.add_many([f"lost fact {number}" for number in range(4)], user_id="u")
    on_servers.apply_now()
    restored(server_store, backup, replace=True)
    assert found(on_servers, "fact", user_id="u") == set(FACTS)
    on_servers.add_many([f"new fact {number}" for number in range(4)], user_id="u")
    wanted = {*FACTS, *(f"new fact {number}" for number in range(4))}
    for _ in range(2):
        assert found(on_servers, "fact", user_id="u") == wanted
        assert set(texts(on_servers.get_all(user_id="u"))) == wanted
        on_servers.apply_now()
    assert on_servers.search("fact", user_id="u").degraded == ()
