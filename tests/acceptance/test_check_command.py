"""``threefold check``, as an operator uses it."""

import json
from pathlib import Path

import pytest

from memory_manage.manager import MemoryManage
from tests.acceptance.asking import found
from tests.acceptance.opening import OwnStore


@pytest.fixture
def filled(own_store: OwnStore) -> OwnStore:
    """A store of three facts with indexes that hold them, closed."""
    with own_store.open() as memory:
        memory.add_many(["fact one", "fact two", "事实三"], user_id="u")
        assert memory.apply_now()
    return own_store


def spoil(store: OwnStore) -> str:
    """Flip a bit in the ids of the vector index; the name of the file."""
    path = max((store.data_dir() / "vectors").glob("*/gen-*/ids.u64"))
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(bytes(content))
    return Path(path.parent.name, path.name).as_posix()


def test_a_sound_store_is_clean(filled: OwnStore) -> None:
    """Each index and the truth are named, and the status is 0."""
    checked = filled.command("check")
    assert checked.returncode == 0
    assert [line.split()[-1] for line in checked.stdout.splitlines()] == ["clean"] * 3
    told = json.loads(filled.command("check", "--json", "--level", "counts").stdout)
    assert told["clean"] is True
    assert [target.partition(":")[0] for target in told["targets"]] == ["faiss", "tantivy"]


def test_damage_has_a_status_of_its_own_and_is_repaired(filled: OwnStore) -> None:
    """The damaged file is named; the second run is clean."""
    name = spoil(filled)
    checked = filled.command("check", "--json")
    assert checked.returncode == 6
    (finding,) = json.loads(checked.stdout)["findings"]
    assert finding["drift"] == "damaged files"
    assert name in finding["found"]
    repaired = filled.command("check", "--repair")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "anew" in repaired.stdout
    with filled.open() as memory:
        assert found(memory, "fact", user_id="u") >= {"fact one", "fact two"}


def test_a_repair_leaves_the_work_to_whoever_holds_the_indexes(filled: OwnStore) -> None:
    """A worker runs: it is told what to build, and the command waits until it is well."""
    with filled.worker():
        spoil(filled)
        told = json.loads(filled.command("check", "--repair", "--json").stdout)
    assert told["found"]["clean"] is False
    assert told["left_to_another_process"] is True
    assert told["after"]["clean"] is True


def test_a_check_beside_writers_finds_nothing(filled: OwnStore) -> None:
    """What is merely not applied yet is no drift."""
    with filled.open(applying=False) as memory:
        write_some(memory)
        assert filled.command("check").returncode == 0


def write_some(memory: MemoryManage) -> None:
    """Add, change and delete, applied by nobody."""
    four, five = memory.add_many(["fact four", "fact five"], user_id="u").results
    memory.delete(str(four.id), user_id="u")
    memory.update(str(five.id), content="fact six", user_id="u")
