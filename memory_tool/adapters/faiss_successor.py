"""A generation that is being built: batch by batch, each durable, none of them read.

    <root>/building    which generation it is by now, as JSON; empty while nothing was applied

The file is what makes it go on where it was killed: a batch counts from the moment in which the
file names its generation.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Final

from memory_tool.adapters.faiss_files import (
    generation_folder,
    remove,
    remove_file,
    replace_file,
)
from memory_tool.adapters.faiss_fold import FaissTarget
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.errors import Corrupt
from memory_tool.generations import Origin, successor_name
from memory_tool.log_ports import ChangeLog
from memory_tool.port_values import Pointer

BUILDING: Final = "building"

BATCH: Final = 50_000
"""Each batch copies what was built before: 20 of them 1 million rows ten times, at 2 GB/s. Between
two the generation that is read is brought forward: half a minute on one core."""


class FaissSuccessor(FaissTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`; it is looked at when it is done."""

    batch: ClassVar = BATCH

    def __init__(self, root: Path, *, target: str, policy: GraphPolicy | None = None) -> None:
        """Build below ``root`` what ``target`` is to read later."""
        super().__init__(root, name=successor_name(target), pointer=self.built, policy=policy)
        self._file = root / BUILDING

    def begin(self) -> None:
        """Begin with nothing."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._file, b"")

    def begun(self) -> bool:
        """Whether there is one."""
        return self._file.exists()

    def built(self) -> Pointer | None:
        """The generation so far.

        Raises:
            Corrupt: The file that names it is damaged.
        """
        try:
            raw = self._file.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return Pointer(**json.loads(raw)) if raw else None
        except (ValueError, TypeError) as error:
            message = f"the file {BUILDING!r} does not name a generation"
            raise Corrupt(message) from error

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        super().reset()
        self.end()
        self.begin()

    def end(self) -> None:
        """It is none any more."""
        try:
            built = self.built()
        except Corrupt:
            built = None
        remove_file(self._file)
        if built is not None:
            remove(generation_folder(self.root, built.generation))

    def _switch(self, pointer: Pointer, log: ChangeLog, *, base_mark: str | None) -> bool:  # noqa: ARG002 - one process at a time builds
        replace_file(self._file, json.dumps(asdict(pointer)).encode())
        return True

    def _clear(self, pointer: Pointer, before: int, *, origin: Origin) -> None:  # noqa: ARG002 - as the target
        if before != pointer.generation:
            remove(generation_folder(self.root, before))
