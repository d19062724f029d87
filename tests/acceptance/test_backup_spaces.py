"""Backups and changes of the embedding model: model, vectors and indexes are of one moment."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.acceptance.asking import MODES, found
from tests.acceptance.backups import manifest_in, restored, saved
from tests.acceptance.opening import OwnStore

FACTS: Final = tuple(f"fact {number}" for number in range(6))
LARGER: Final = "hashing:128"


def folders_of_vectors(backup: Path) -> set[str]:
    """The folders of spaces whose vectors a backup has."""
    names = [file.name.split("/") for file in manifest_in(backup).files]
    return {parts[2].rpartition("-")[2] for parts in names if parts[:2] == ["indexes", "vectors"]}


def test_a_restore_goes_back_and_forth_over_a_change_of_model(own_store: OwnStore) -> None:
    """Nobody applies: what is searched are the indexes of that moment, put back."""
    with own_store.open() as memory:
        memory.add_many(FACTS, user_id="u")
        memory.apply_now()
    # Later openers take whatever model is recorded.
    store = replace(own_store, settings={"embedder": ""})
    before = saved(store, "before", with_indexes=True)
    changed = store.command("reembed", "--model", LARGER, "--json")
    assert changed.returncode == 0, changed.stderr
    assert json.loads(changed.stdout)
    after = saved(store, "after", with_indexes=True)
    assert (folders_of_vectors(before), folders_of_vectors(after)) == ({"1"}, {"2"})
    for folder, space in ((before, "hashing/64"), (after, "hashing/128")):
        for lost in ("vectors", "keywords"):
            shutil.rmtree(store.data_dir() / lost)
        restored(store, folder, replace=True)
        with store.open(applying=False) as memory:
            assert memory.health().where["embedder"].startswith(space)
            assert memory.search("fact", user_id="u", on_degraded="raise").degraded == ()
            for mode in MODES:
                assert found(memory, "fact", user_id="u", mode=mode) == set(FACTS)
