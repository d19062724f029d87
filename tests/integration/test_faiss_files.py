"""What becomes of a generation whose files are not as they were written."""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from memory_tool.errors import Corrupt
from memory_tool.model import EmbeddingSpace
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import (
    TARGET,
    VectorHistory,
    axis,
    check_exact,
    memory_id,
    units,
)

QUERY: Final = units(1, 384, seed=77)[0]
SCANNED, GRAPHED = 1, 2
FILES: Final = (
    "manifest.json",
    "vectors.f16",
    "ids.u64",
    "ordinals.u16",
    "versions.i64",
    "dead.bits",
    "checks.u32",
    "graph-0.faiss",
)


def truncate(path: Path) -> None:
    """Lose the end."""
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    """Change one bit in the middle."""
    with path.open("r+b") as file:
        place = path.stat().st_size // 2
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 4]))


def zero_a_page(path: Path) -> None:
    """Lose up to 4 KiB of the content, as a file system may after a crash."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 8)
        file.write(bytes(min(4096, path.stat().st_size // 2 + 1)))


def remove(path: Path) -> None:
    """Lose it all."""
    path.unlink()


def lead_elsewhere(path: Path) -> None:
    """Put a link in its place, to the same content."""
    moved = path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(moved)


DAMAGES: Final = (truncate, flip_a_bit, zero_a_page, remove, lead_elsewhere)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A scanned namespace and one with a graph, folded twice, so that rows are dead."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(384), graph_above=200)
    vectors = units(400, 384)
    for number in range(60):
        folder.history.put(SCANNED, number, *vectors[2 * number : 2 * number + 2])
    for number in range(140):
        folder.history.put(GRAPHED, number, *vectors[120 + 2 * number : 122 + 2 * number])
    target = folder.target()
    folder.history.fold(target)
    for number in range(20):
        folder.history.delete(GRAPHED, number)
    folder.history.fold(target)
    return folder


def use(folder: Folder) -> None:
    """Load what is published, search all of it and read every vector."""
    index = folder.index()
    view = index.view(folder.history.published(TARGET))
    found = view.search(QUERY, [SCANNED, GRAPHED], depth=1000)
    check_exact(found, folder.history.exact(QUERY, [SCANNED, GRAPHED]), depth=1000)
    index.scrub()


def test_a_generation_is_for_its_owner_and_names_nobody(folder: Folder) -> None:
    """Vectors tell what texts were about, and a name would tell whose."""
    assert sorted(path.name for path in folder.root.iterdir()) == ["gen-000001", "gen-000002"]
    assert sorted(path.name for path in folder.newest().iterdir()) == sorted(FILES)
    for path in [folder.root, *folder.root.rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_no_damage_goes_unnoticed(
    folder: Folder, name: str, damage: Callable[[Path], None]
) -> None:
    """FAISS itself loaded 150 of 180 flipped bits and 156 of 180 zeroed pages silently."""
    use(folder)
    damage(folder.newest() / name)
    with pytest.raises(Corrupt, match=f"gen-000002/{name}"):
        use(folder)


def test_a_damaged_stretch_spares_the_other_namespaces(tmp_path: Path) -> None:
    """It is met on the first touch; who never touches it is answered meanwhile."""
    folder = Folder(root=tmp_path / "vectors", history=VectorHistory(384))
    folder.history.put_all(1, units(1365, 384))
    folder.history.put_all(2, units(10, 384, seed=1))
    pointer = folder.history.fold(folder.target())
    with (folder.newest() / "vectors.f16").open("r+b") as file:
        file.seek(1365 * 768 + 100)
        file.write(b"\xff")
    index = folder.index()
    view = index.view(pointer)
    check_exact(view.search(QUERY, [1], depth=9), folder.history.exact(QUERY, [1]), depth=9)
    with pytest.raises(Corrupt, match="stretch 1"):
        view.search(QUERY, [1, 2], depth=9)
    with pytest.raises(Corrupt, match="stretch 1"):
        view.scores(QUERY, [(2, memory_id(3))])
    with pytest.raises(Corrupt, match="stretch 1"):
        index.scrub()


def test_scrubbing_finds_what_was_right_when_it_was_touched(folder: Folder) -> None:
    """A disk decays later too."""
    index = folder.index()
    index.view(folder.history.published(TARGET)).search(QUERY, [SCANNED, GRAPHED], depth=1000)
    flip_a_bit(folder.newest() / "vectors.f16")
    with pytest.raises(Corrupt, match="is damaged"):
        index.scrub()


@pytest.mark.parametrize("name", ["vectors.f16", "graph-0.faiss"])
def test_files_of_two_generations_are_not_mixed_up(folder: Folder, name: str) -> None:
    """Of the right length, written by us, and still the wrong one."""
    folder.history.put(GRAPHED, 139, *units(2, 384, seed=5))
    folder.history.put(SCANNED, 59, *units(2, 384, seed=5))
    target = folder.target()
    target.reset()
    before = folder.newest()
    folder.history.fold(target)
    now = folder.newest()
    content = (before / name).read_bytes()[: (now / name).stat().st_size]
    (now / name).write_bytes(content)
    with pytest.raises(Corrupt, match=name):
        use(folder)


def test_an_older_generation_in_the_place_of_the_current_is_refused(folder: Folder) -> None:
    """Whole, of this store, and out of date: a folder restored from a backup."""
    shutil.rmtree(folder.newest())
    shutil.copytree(folder.root / "gen-000001", folder.newest())
    with pytest.raises(Corrupt, match="not the one that was published"):
        use(folder)


def test_a_pointer_to_another_history_is_refused(folder: Folder) -> None:
    """The mark tells histories apart, whatever the numbers say."""
    pointer = folder.history.published(TARGET)
    with pytest.raises(Corrupt, match="of another generation"):
        folder.index().view(replace(pointer, mark="mark-of-another"))


def test_a_format_of_the_future_is_refused(folder: Folder) -> None:
    """An older program must not guess what a newer one wrote."""
    path = folder.newest() / "manifest.json"
    newer = path.read_bytes().replace(b'"format":2', b'"format":3')
    for raw, reason in ((newer, "format 3"), (b"[]", "understood"), (b"{", "understood")):
        path.write_bytes(raw)
        pointer = replace(folder.history.published(TARGET), locator=hashlib.sha256(raw).hexdigest())
        with pytest.raises(Corrupt, match=reason):
            folder.index().view(pointer)


def test_a_generation_of_another_store_is_refused(folder: Folder) -> None:
    """A data folder copied beside another database."""
    pointer = folder.history.published(TARGET)
    folder.history.store = "store-2"
    with pytest.raises(Corrupt, match="another store"):
        folder.index().view(pointer)


@pytest.mark.parametrize(
    "space",
    [
        None,
        EmbeddingSpace(model="another", dimension=384),
        EmbeddingSpace(model="made", dimension=8),
    ],
)
def test_a_generation_of_another_space_is_refused(
    folder: Folder, space: EmbeddingSpace | None
) -> None:
    """The same dimension is no proof: without this, answers are merely bad."""
    pointer = folder.history.published(TARGET)
    index = folder.index()
    index.view(pointer)
    folder.history.space = space
    for held in (index, folder.index()):
        with pytest.raises(Corrupt, match="embedding space made/384"):
            held.view(pointer)


@pytest.mark.parametrize("name", ["manifest.json", "ids.u64", "vectors.f16", "graph-0.faiss"])
def test_a_damaged_base_is_never_built_upon(folder: Folder, name: str) -> None:
    """Copied into the next generation it would get a checksum that is right."""
    flip_a_bit(folder.newest() / name)
    before = folder.history.published(TARGET)
    folder.history.put(SCANNED, 500, axis(0, 384))
    target = folder.target()
    with pytest.raises(Corrupt, match=name):
        folder.history.fold(target)
    with pytest.raises(Corrupt):
        target.base()
    assert folder.history.published(TARGET) == before
    target.reset()
    folder.history.fold(target)
    use(folder)


def test_a_namespace_without_its_generation_heals(folder: Folder) -> None:
    """Losing every index loses nothing: a rebuild takes all from the truth."""
    shutil.rmtree(folder.root)
    with pytest.raises(Corrupt, match="can't be read"):
        use(folder)
    target = folder.target()
    with pytest.raises(Corrupt):
        target.base()
    target.reset()
    folder.history.fold(target)
    use(folder)
