"""Nothing stays in the archive that was deleted, changed or brought back."""

from typing import Final

from memory_tool.archive_ports import Archive
from memory_tool.errors import Corrupt
from memory_tool.job_values import MayGoOn
from memory_tool.log import logger
from memory_tool.tier_ports import ArchiveRegister

READER_SECONDS: Final = 600.0
"""No reader takes as long to read a file that it was sent to."""

ORPHAN_SECONDS: Final = 86_400.0
"""A file that no row knew for a day was left by a crash between file and commit."""


class ArchiveUpkeep:
    """Writes files again without what has to go, and removes those that nobody needs."""

    def __init__(
        self,
        archive: Archive,
        register: ArchiveRegister,
        *,
        patience: float = READER_SECONDS,
        orphan_seconds: float = ORPHAN_SECONDS,
    ) -> None:
        """``patience`` is how long a file that was replaced is left to those who read it.

        ``orphan_seconds`` is how old a file gets that no row ever named.
        """
        self._archive = archive
        self._register = register
        self._patience = patience
        self._orphan_seconds = orphan_seconds

    def run(self, may_go_on: MayGoOn) -> None:
        """Do what is due; see :meth:`sweep`."""
        self.sweep(may_go_on)

    def sweep(self, may_go_on: MayGoOn) -> tuple[str, ...]:
        """Do what is due, and name the files that are damaged: what has to go is still in them.

        They keep no other waiting. They stay stale, and are told each time: only an operator can
        bring back what they held, or delete their memories.

        Raises:
            Unavailable: The store or the archive can't be reached.
        """
        self._remove_gone()
        self._remove_orphans()
        damaged: list[str] = []
        for name, ns_id in self._register.stale().items():
            if not may_go_on():
                break
            try:
                self._rewrite(name, ns_id)
            except Corrupt as error:
                logger().error("archive_corrupt", file=name, reason=str(error))
                damaged.append(name)
        return tuple(damaged)

    def _rewrite(self, name: str, ns_id: int) -> None:
        kept = self._register.kept(name)
        file = None
        if kept:
            file = self._archive.write(ns_id, [self._archive.read(at) for at in kept.values()])
        if self._register.switch(name, file):
            logger().info("archive_rewritten", file=name, memories=len(kept))
        elif file is not None:
            # A memory of it was changed meanwhile: the next run knows better.
            self._archive.remove(file.name)

    def _remove_gone(self) -> None:
        for name in self._register.gone(seconds=self._patience):
            self._archive.remove(name)
            self._register.forget(name)

    def _remove_orphans(self) -> None:
        # Files first: one that is written and noted in between is young, and stays.
        found = self._archive.files()
        for name in found.keys() - self._register.known():
            if found[name].age > self._orphan_seconds:
                self._archive.remove(name)
                logger().warning("archive_orphan_removed", file=name)
