"""How generations replace each other, whatever happens meanwhile."""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from memory_tool.adapters.faiss_files import file_print, open_generation
from memory_tool.adapters.faiss_verify import verify
from memory_tool.errors import Corrupt, Unavailable
from memory_tool.port_values import ForeignHistory, TargetBase
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import TARGET, VectorHistory, axis, units

CHECKOUT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Empty; graphs from two rows on."""
    return Folder(root=tmp_path / "vectors", history=VectorHistory(32), graph_above=0)


def test_the_last_two_generations_are_kept(folder: Folder) -> None:
    """A search may have read the pointer just before it was switched."""
    target = folder.target()
    views = []
    for number in range(5):
        folder.history.put(1, number, units(1, 32, seed=number)[0])
        views.append(folder.index().view(folder.history.fold(target)))
    names = sorted(path.name for path in folder.root.iterdir())
    assert names == ["gen-000004", "gen-000005"]
    assert [len(view.search(axis(0, 32), [1], depth=9)) for view in views] == [1, 2, 3, 4, 5]


def test_who_reads_by_an_older_pointer_disturbs_nobody(folder: Folder) -> None:
    """Around a switch searches use both; loading back and forth would stop them all."""
    target, index = folder.target(), folder.index()
    folder.history.put_all(1, units(10, 32))
    older = folder.history.fold(target)
    folder.history.put_all(1, units(10, 32, seed=1), first=10)
    newer = folder.history.fold(target)
    view = index.view(newer)
    assert index.view(older).mark == older.mark
    assert index.view(newer) is view


def test_numbers_are_never_used_again(folder: Folder) -> None:
    """A reader may have the old folder of a name open, or remember its number."""
    folder.history.put_all(1, units(10, 32))
    first = folder.history.fold(folder.target())
    shutil.rmtree(folder.root)
    target = folder.target()
    target.reset()
    assert folder.history.fold(target).generation > first.generation


def test_a_batch_for_an_empty_index_is_no_change_of_a_full_one(folder: Folder) -> None:
    """What was deleted and purged since would stay in it for ever."""
    folder.history.put_all(1, units(10, 32))
    target = folder.target()
    folder.history.fold(target)
    nothing = TargetBase(mark=None, clocks={})
    with (
        folder.history.changes(TARGET, "vector", base=nothing, limit=100) as batch,
        pytest.raises(ForeignHistory),
    ):
        target.apply(batch, folder.history)


def test_a_kill_leaves_the_old_generation_or_the_new(tmp_path: Path) -> None:
    """And the next fold finds its way, and clears up."""
    killed = subprocess.run(
        [sys.executable, "-m", "tests.integration.faiss_killed_folds", str(tmp_path / "folds")],
        cwd=CHECKOUT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == 0, killed.stderr
    assert int(killed.stdout) > 20


def test_everything_is_on_disk_before_it_has_a_name(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure a name without its content would be a damaged index."""
    forced: list[int] = []
    force = os.fsync

    def remember(descriptor: int) -> None:
        force(descriptor)
        forced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", remember)
    folder.history.put_all(1, units(10, 32))
    folder.history.fold(folder.target())
    files = {path.stat().st_ino for path in folder.newest().iterdir()}
    assert set(forced[: len(files)]) == files
    assert forced[len(files) :] == [folder.newest().stat().st_ino, folder.root.stat().st_ino]


@pytest.mark.parametrize("name", ["vectors.f16", "versions.i64", "graph-0.faiss"])
def test_a_generation_that_is_damaged_on_its_way_is_not_published(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nobody is sent to a generation that was not read back."""
    folder.history.put_all(1, units(100, 32))
    target = folder.target()
    before = folder.history.fold(target)
    folder.history.put_all(1, units(100, 32, seed=1), first=100)
    force = os.fsync

    def lose_a_byte(descriptor: int) -> None:
        force(descriptor)
        damaged = folder.root / "gen-000002" / name
        if damaged.exists():
            damaged.write_bytes(b"\xaa" + damaged.read_bytes()[1:])

    with monkeypatch.context() as lying_disk:
        lying_disk.setattr(os, "fsync", lose_a_byte)
        with pytest.raises(Corrupt, match=name):
            folder.history.fold(target)
    assert folder.history.published(TARGET) == before
    assert [path.name for path in folder.root.iterdir()] == ["gen-000001"]
    folder.history.fold(target)
    assert folder.block(1).rows == 200


def test_a_generation_that_does_not_find_its_rows_is_not_published(folder: Folder) -> None:
    """Every file as it was written, and still of no use: the graph is that of other vectors."""
    folder.history.put_all(1, units(200, 32))
    other = replace(folder, root=folder.root / "other", history=VectorHistory(32))
    other.history.put_all(1, units(200, 32, seed=1))
    pointer = folder.history.fold(folder.target())
    other.history.fold(other.target())
    verify(folder.root, pointer)
    opened = open_generation(folder.root, pointer)
    shutil.copyfile(other.newest() / "graph-0.faiss", folder.newest() / "graph-0.faiss")
    files = {**opened.manifest.files, "graph-0.faiss": file_print(other.newest() / "graph-0.faiss")}
    raw = replace(opened.manifest, files=files).encoded()
    (folder.newest() / "manifest.json").write_bytes(raw)
    with pytest.raises(Corrupt, match="does not find"):
        verify(folder.root, replace(pointer, locator=hashlib.sha256(raw).hexdigest()))


def test_a_full_disk_is_temporary(folder: Folder) -> None:
    """The last generation stays, and the changes wait."""
    folder.history.put_all(1, units(10, 32))
    target = folder.target()
    before = folder.history.fold(target)
    folder.history.put_all(1, units(2000, 32, seed=1), first=10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(Unavailable, match="can't be written"):
            folder.history.fold(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert folder.history.published(TARGET) == before
    assert [path.name for path in folder.root.iterdir()] == [folder.newest().name]
    folder.history.fold(target)
    assert folder.block(1).rows == 2010
