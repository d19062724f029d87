"""The ports of erasing: the truth, the ledger outside it, and everything that files may hold.

The rules of :mod:`memory_tool.ports` hold here too.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from memory_tool.erase_values import CanaryScan, LedgerLine, Place


class EraseLedger(Protocol):
    """The orders to erase, on storage that no restore of the database takes back."""

    def lines(self) -> tuple[LedgerLine, ...]:
        """Every line, oldest first, of this store and of others that share the file.

        Raises:
            Corrupt: A line can't be understood: the file was damaged or is another one.
        """
        ...

    def append(self, lines: Sequence[LedgerLine]) -> None:
        """Add lines; they are on disk when this returns.

        Raises:
            Unavailable: The file can't be written; no line counts as written.
        """
        ...


class EraseTruth(Protocol):
    """The truth, as erasing changes it."""

    def carried_out(self) -> frozenset[str]:
        """The names of the ledger's lines that this database has carried out."""
        ...

    def pieces(self, lines: Sequence[LedgerLine], limit: int) -> tuple[str, ...]:
        """Pieces of what these lines name, of text and tokens, to be looked for afterwards."""
        ...

    def carry_out(self, lines: Sequence[LedgerLine]) -> Mapping[str, int]:
        """Erase what these lines name, and note that; how many rows of each kind there were.

        In batches, each all or nothing: after a crash the same lines are carried out again.
        """
        ...

    def unfinished(self) -> tuple[int, ...]:
        """Namespaces with orders that were carried out, but not seen to be done in every place."""
        ...

    def finish(self, until: datetime) -> None:
        """Orders until then are done in every place."""
        ...

    def said_elsewhere(self, piece: str) -> bool:
        """Whether a memory that stays says this too."""
        ...


class ErasedTargets(Protocol):
    """The indexes that follow the truth, and what is kept of them."""

    def now(self) -> datetime:
        """The store's clock."""
        ...

    def known(self) -> Mapping[str, bool]:
        """Every target, whoever follows it, and whether anybody does."""
        ...

    def age_kept(self, made_until: datetime) -> None:
        """Make every generation made until then too old to be kept for a way back."""
        ...

    def built_since(self, since: datetime) -> frozenset[str]:
        """Targets built from nothing since then, of which nothing older is kept."""
        ...

    def leave(self, targets: Sequence[str]) -> None:
        """Forget targets that nobody follows any more."""
        ...


class Rewriting(Protocol):
    """A store whose files keep what was deleted until they are written anew."""

    def rewrite(self, ns_ids: Sequence[int]) -> Place:
        """Write anew what holds these namespaces; says what was done, or why it could not be."""
        ...


class FileScan(Protocol):
    """Looks into files."""

    def scan(self, pieces: Sequence[str]) -> CanaryScan:
        """Search every file of the store for these pieces; compressed ones are opened."""
        ...
