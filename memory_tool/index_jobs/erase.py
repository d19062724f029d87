"""Erasing with proof: one order, every place, a receipt."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from memory_tool.erase_ports import EraseLedger, EraseTruth, FileScan, Rewriting
from memory_tool.erase_values import CanaryScan, LedgerLine, Place, Receipt
from memory_tool.errors import Corrupt, ThreefoldError
from memory_tool.log import logger
from memory_tool.model import MemoryId
from memory_tool.space_ports import SideStructure

PIECES: Final = 16
"""Pieces that files are searched for: each costs a look at every byte of the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasePlaces:
    """Where erased memories may have left something beside the truth's rows, in this order.

    Attributes:
        side: What is made of memories beside the truth.
        archives: Writes archives anew that hold what was erased.
        indexes: Builds every index anew and lets go of the generations kept for rollback.
        tables: Writes the tables anew.
        words: Counts words anew, so that none of theirs is among them.
        server_log: Lets go of the server's log of changes, where the server is ours.
    """

    side: Sequence[SideStructure]
    archives: Callable[[], Sequence[Place]]
    indexes: Callable[[], Sequence[Place]]
    words: Callable[[], None]
    tables: Rewriting
    server_log: Callable[[], Place]


class Erase:
    """Carries out orders to erase. A repetition is harmless, and goes on where one was cut off."""

    def __init__(
        self,
        ledger: EraseLedger,
        truth: EraseTruth,
        *,
        store: str,
        places: ErasePlaces,
        files: FileScan,
    ) -> None:
        """Keep the parts; ``store`` is the identity that ledger lines carry."""
        self._ledger = ledger
        self._truth = truth
        self._store = store
        self._places = places
        self._files = files

    def run(
        self,
        targets: Sequence[tuple[int, MemoryId | None]],
        *,
        pieces: Sequence[str] = (),
        say: Callable[[str], None] = lambda _line: None,
    ) -> Receipt:
        """Erase memories, or whole namespaces where no memory is named.

        Orders whose places were not all done before are gone on with, also when none is new.

        Args:
            targets: (number of the namespace, memory or ``None``) of each.
            pieces: Texts to look for afterwards, beside some of those that are erased.
            say: Hears of each step.

        Raises:
            Unavailable: The ledger or the database can't be reached. Rows that were ordered to go
                go by the same call, or when the store is opened next.
        """
        now = datetime.now(UTC)
        lines = [
            LedgerLine(
                name=secrets.token_hex(16),
                store=self._store,
                ns_id=ns_id,
                memory_id=memory_id,
                at=now,
            )
            for ns_id, memory_id in targets
        ]
        wanted = (*pieces, *self._truth.pieces(lines, PIECES))
        # First the ledger: an order that was written down is carried out at the next opening.
        self._ledger.append(lines)
        say("erasing the rows")
        rows = self._truth.carry_out(lines)
        for structure in self._places.side:
            structure.erase(targets)
        places = self._elsewhere(self._truth.unfinished(), say)
        say("searching the files")
        scan = self._files.scan(wanted) if wanted else CanaryScan(pieces=0, files=0, bytes=0)
        receipt = Receipt(at=now, lines=len(lines), rows=rows, places=tuple(places), scan=scan)
        if receipt.complete:
            self._truth.finish(now)
        logger().info("erased", lines=len(lines), rows=dict(rows), complete=receipt.complete)
        return receipt

    def unfinished(self) -> bool:
        """Whether an order waits for a place."""
        return bool(self._truth.unfinished())

    def _elsewhere(self, ns_ids: Sequence[int], say: Callable[[str], None]) -> Sequence[Place]:
        def tables() -> Sequence[Place]:
            self._places.words()
            return [self._places.tables.rewrite(ns_ids)]

        steps: Mapping[str, Callable[[], Sequence[Place]]] = {
            "archives": self._places.archives,
            "indexes": self._places.indexes,
            "tables": tables,
            "server": lambda: [self._places.server_log()],
        }
        places = [Place(name="erase ledger", state="done", said="a line for each order, on disk")]
        for name, step in steps.items():
            say(f"making {name} anew")
            try:
                places += step()
            except ThreefoldError as error:
                # The rows are gone: what can't be done now is no reason to leave out the rest.
                places.append(Place(name=name, state="waiting", said=str(error)))
        said = "those made before hold what was erased, until they are removed"
        return (*places, Place(name="backups", state="not ours", said=said))


def replay(ledger: EraseLedger, truth: EraseTruth, *, store: str, mend: bool) -> int:
    """Carry out what the ledger orders and a restored database lacks; how many lines that were.

    Args:
        ledger: The file outside the database.
        truth: The database.
        store: Its identity: lines of others are left alone.
        mend: Where the file lacks lines that the database carried out, say nothing of it.

    Raises:
        Corrupt: The file lacks such lines: it was lost, or another one is named.
    """
    done = truth.carried_out()
    lines = [line for line in ledger.lines() if line.store == store]
    lost = done - {line.name for line in lines}
    if lost and not mend:
        message = (
            f"the erase ledger lacks {len(lost):,} lines that this database has carried out: put"
            " the file back where the setting erase_ledger names it (each backup has a copy), or"
            " set erase_ledger_lost to 'accept'"
        )
        raise Corrupt(message)
    missing = [line for line in lines if line.name not in done]
    if missing:
        counts = truth.carry_out(missing)
        logger().warning("erase_replayed", lines=len(missing), rows=dict(counts))
    return len(missing)
