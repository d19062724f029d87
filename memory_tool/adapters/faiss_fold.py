"""The applier's side: folds what changed into a new generation and switches to it."""

import dataclasses
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import ClassVar, Final, Literal

from memory_tool.adapters.faiss_build import write_generation
from memory_tool.adapters.faiss_files import (
    MANIFEST,
    OpenedGeneration,
    generation_folder,
    install,
    keep_only,
    next_generation,
    open_generation,
    read_manifest,
    remove,
    workshop,
    write_file,
    writing,
)
from memory_tool.adapters.faiss_graph import GraphPolicy
from memory_tool.adapters.faiss_manifest import NOTHING, Manifest
from memory_tool.adapters.faiss_verify import verify
from memory_tool.errors import Corrupt
from memory_tool.generations import Origin
from memory_tool.log_ports import ChangeLog, IndexTarget
from memory_tool.port_values import ChangeBatch, ForeignHistory, Patience, Pointer, TargetBase

_PATIENT_SHARE: Final = 0.05
"""A fold copies the whole file, so a large index waits for more changes: 1 million rows for 50,000,
which is still searched exactly in 6 ms from memory."""


BATCH: Final = 10_000_000
"""A fold reads everything in one snapshot: it copies the whole file anyway."""

PATIENCE: Final = Patience(rows=5000, seconds=3600, batch=BATCH)


def _only_the_last_two(_pointer: Pointer, _origin: Origin) -> Collection[int]:
    return ()


class FaissTarget(IndexTarget):
    """See :class:`memory_tool.log_ports.IndexTarget`. One process at a time applies to a folder."""

    batch: ClassVar = BATCH

    def __init__(
        self,
        root: Path,
        *,
        name: str,
        pointer: Callable[[], Pointer | None],
        policy: GraphPolicy | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Write generations below ``root``.

        Args:
            root: The folder, made when it is missing.
            name: See :attr:`name`.
            pointer: Reads which generation is current: ``ChangeLog.pointer`` of this name.
            policy: When graphs are built, and how.
            patience: The least one; of rows at least 5 % of those that the index holds.
        """
        self.root = root
        self.policy = policy or GraphPolicy()
        self.published: Callable[[Pointer, Origin], Collection[int]] = _only_the_last_two
        """Told of each switch; says which generations to keep beside it and the one before."""
        self._name = name
        self._pointer = pointer
        self._patience = patience or PATIENCE
        self._applying = threading.Lock()
        self._known: tuple[Pointer, Manifest] | None = None
        self._damaged: Pointer | None = None
        self._anew = False

    @property
    def name(self) -> str:
        """See :attr:`memory_tool.log_ports.IndexTarget.name`."""
        return self._name

    @property
    def kind(self) -> Literal["vector"]:
        """See :attr:`memory_tool.log_ports.IndexTarget.kind`."""
        return "vector"

    @property
    def patience(self) -> Patience:
        """See :attr:`memory_tool.log_ports.IndexTarget.patience`."""
        held = self._known[1].rows if self._known else 0
        rows = max(self._patience.rows, int(_PATIENT_SHARE * held))
        return dataclasses.replace(self._patience, rows=rows, batch=self.batch)

    def base(self) -> TargetBase:
        """See :meth:`memory_tool.log_ports.IndexTarget.base`."""
        manifest = self._manifest(None if self._anew else self._pointer())
        return TargetBase(mark=manifest.mark, clocks=manifest.clocks)

    def reset(self) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.reset`."""
        self._anew = True

    def close(self) -> None:
        """Nothing is held between two folds."""

    def apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        """See :meth:`memory_tool.log_ports.IndexTarget.apply`.

        Raises:
            ForeignHistory: The batch builds upon another base, store or embedding space, or
                somebody else published meanwhile: read the base again, or reset.
            Corrupt: The base is damaged, and :meth:`base` says so from now on; or the new
                generation was, and is gone.
            InvalidEmbedding: A vector of the batch can't be stored.
            Unavailable: The folder can't be written.
        """
        with self._applying:
            with writing(self._name):
                if not self._has(batch):
                    self._apply(batch, log)
            log.note_progress(self._name, batch.clocks)

    def _has(self, batch: ChangeBatch) -> bool:
        current = self._pointer()
        return current is not None and current.mark == batch.mark

    def _apply(self, batch: ChangeBatch, log: ChangeLog) -> None:
        current = self._pointer()
        above = current.generation if current else 0
        pointer = self._build(None if self._anew else current, batch, above=above)
        # Should this raise, it is not known whether the switch took place: the folder stays.
        if not self._switch(pointer, log, base_mark=batch.base_mark):
            remove(generation_folder(self.root, pointer.generation))
            message = f"somebody else published {self._name} meanwhile"
            raise ForeignHistory(message)
        self._anew = False
        origin: Origin = "full" if batch.base_mark is None else "incremental"
        self._clear(pointer, above, origin=origin)

    def _switch(self, pointer: Pointer, log: ChangeLog, *, base_mark: str | None) -> bool:
        """Make the generation the one that counts, if it is as it was written."""
        try:
            verify(self.root, pointer)
        except Exception:
            remove(generation_folder(self.root, pointer.generation))
            raise
        return log.publish(pointer, base_mark=base_mark)

    def _clear(self, pointer: Pointer, before: int, *, origin: Origin) -> None:
        kept = self.published(pointer, origin)
        keep_only(self.root, {pointer.generation, before, *kept})

    def _build(self, base: Pointer | None, batch: ChangeBatch, *, above: int) -> Pointer:
        opened = self._opened(base)
        _check_descent(opened.manifest, batch)
        with workshop(self.root) as folder:
            generation = next_generation(self.root, above)
            try:
                manifest = write_generation(
                    folder, opened, batch=batch, generation=generation, policy=self.policy
                )
            except Corrupt:
                self._damaged = base
                raise
            written = write_file(folder / MANIFEST, manifest.encoded())
            install(folder, generation_folder(self.root, generation))
        return Pointer(
            target=self._name,
            generation=generation,
            locator=written.sha256,
            mark=batch.mark,
        )

    def _opened(self, pointer: Pointer | None) -> OpenedGeneration:
        if pointer is None:
            return OpenedGeneration.empty(self.root)
        try:
            return open_generation(self.root, pointer)
        except Corrupt:
            self._damaged = pointer
            raise

    def _manifest(self, pointer: Pointer | None) -> Manifest:
        if pointer is None:
            return NOTHING
        if pointer == self._damaged:
            message = f"generation {pointer.generation} was found damaged"
            raise Corrupt(message)
        if self._known is None or self._known[0] != pointer:
            self._known = (pointer, read_manifest(self.root, pointer))
        return self._known[1]


def _check_descent(base: Manifest, batch: ChangeBatch) -> None:
    if base.mark != batch.base_mark:
        message = "the batch builds upon another generation than the current one"
        raise ForeignHistory(message)
    if base.rows and (base.store, base.space) != (batch.store, batch.space):
        message = "the index holds vectors of another store or embedding space"
        raise ForeignHistory(message)
