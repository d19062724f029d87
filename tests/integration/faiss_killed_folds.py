"""Kills a fold at each of its file operations in turn and looks at what is left.

Run as a module with an empty folder, by `test_faiss_publishing`: the process forks, so it has to be
one of its own without threads. It ends with an error as soon as a promise is broken, else it
prints how many kills there were.
"""

import copy
import itertools
import json
import os
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from memory_tool.port_values import Pointer
from tests.contract.faiss_folder import Folder
from tests.contract.vector_history import (
    TARGET,
    VectorHistory,
    check_exact,
    units,
)

_KILLED: Final = 9
_KEPT: Final = 2
_OPERATIONS: Final = {"os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir"}
_QUERY: Final = units(1, 16, seed=9)[0]


class KeptHistory(VectorHistory):
    """Its pointer outlives the process."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def pointer(self, target: str) -> Pointer | None:
        """What was published last, by whichever process."""
        return Pointer(**json.loads(self._path.read_text())) if self._path.exists() else None

    def publish(self, pointer: Pointer, *, base_mark: str | None) -> bool:
        """Switch in one step, as a transaction does."""
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(asdict(pointer)))
        new.rename(self._path)
        return True


def made(root: Path) -> tuple[Folder, Folder]:
    """A folder with one generation, and the same with changes that wait for the next."""
    root.mkdir(parents=True)
    before = Folder(root=root / "vectors", history=KeptHistory(root / "pointer"), graph_above=100)
    before.history.put_all(1, units(40, 16))
    before.history.put_all(2, units(130, 16, seed=1))
    before.history.fold(before.target())
    after = replace(before, history=copy.deepcopy(before.history))
    after.history.put_all(1, units(10, 16, seed=2), first=35)
    after.history.put_all(2, units(2, 16, seed=3), first=7)
    after.history.delete(2, 17)
    return before, after


def die_at(number: int) -> None:
    """End this process at once, without any clean-up, at its ``number``-th file operation."""
    operations = itertools.count(1)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        # The audit event of opening ends with the flags.
        writes = event == "open" and int(str(arguments[2])) & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in _OPERATIONS) and next(operations) == number:
            os._exit(_KILLED)

    sys.addaudithook(hook)


def killed(folder: Folder, number: int) -> bool:
    """Fold in another process that dies; whether it did."""
    child = os.fork()
    if child == 0:
        target = folder.target()
        die_at(number)
        folder.history.fold(target)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, _KILLED):
        sys.exit(f"the fold failed with {code} at operation {number}")
    return code == _KILLED


def check(folder: Folder, *, clock: int) -> None:
    """The published generation has to hold namespace 1 up to ``clock``, and answer exactly."""
    index = folder.index()
    view = index.view(folder.history.published(TARGET))
    if view.clock(1) != clock:
        sys.exit(f"the index stands at {view.clock(1)} instead of {clock}")
    found = view.search(_QUERY, [1, 2], depth=500)
    check_exact(found, folder.history.exact(_QUERY, [1, 2]), depth=500)
    index.scrub()


def main(root: Path) -> None:
    """Kill one fold after the other, each from the same start."""
    store, start = root / "store", root / "start"
    before, after = made(store)
    shutil.copytree(store, start)
    for number in itertools.count(1):
        shutil.rmtree(store)
        shutil.copytree(start, store)
        if not killed(after, number):
            break
        if after.history.published(TARGET).generation == 1:
            check(before, clock=40)
        else:
            check(after, clock=50)
        after.history.fold(after.target())
        check(after, clock=50)
        names = sorted(path.name for path in (store / "vectors").iterdir())
        if len(names) > _KEPT or names[0].startswith("tmp-"):
            sys.exit(f"after operation {number} there is rubbish: {names}")
    print(number - 1)  # noqa: T201 - the answer to the test


if __name__ == "__main__":
    main(Path(sys.argv[1]))
