"""How the targets of one group are built anew, compared with the truth, and set back."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from memory_tool.errors import Corrupt, NotFound
from memory_tool.generations import KeptGeneration, Quality, Way, older_than_full, way_back
from memory_tool.inventory import differing
from memory_tool.inventory_ports import TruthInventory
from memory_tool.log import logger
from memory_tool.log_ports import IndexTarget
from memory_tool.port_values import Patience
from memory_tool.renewal_ports import GenerationCatalogue, Renewable, Tidied

FRESH: Final = timedelta(hours=20)
"""The timetable repeats no younger build. Less than a day: one may begin later than another."""

SWITCH_ROWS: Final = 1_000
LOST_ROWS: Final = 5_000
"""Rows that a search may have to fetch itself right after a switch: a fifth of what it can, or all
of it where it has no index meanwhile."""

_SHOWN: Final = 5


class Renewals:
    """The renewals of some targets. Only the holder of their lease uses them."""

    def __init__(
        self,
        renewals: Sequence[Renewable] = (),
        *,
        catalogue: GenerationCatalogue | None = None,
        truth: TruthInventory | None = None,
    ) -> None:
        """Without ``truth`` nothing is compared, without ``catalogue`` there is no way back."""
        self._renewals: Mapping[str, Renewable] = {one.target: one for one in renewals}
        self._catalogue = catalogue
        self._truth = truth

    @property
    def verifying(self) -> bool:
        """Whether builds are compared with the truth."""
        return self._truth is not None

    def of(self, target: str) -> Renewable | None:
        """How this target is built anew; ``None`` if it only can be emptied."""
        return self._renewals.get(target)

    def being_built(self) -> frozenset[str]:
        """The targets that have a successor."""
        return frozenset(
            name for name, renewal in self._renewals.items() if renewal.successor() is not None
        )

    def begin(self, *, target: str, reason: str, afresh: bool = False) -> bool:
        """Begin a successor, or go on with one; ``False`` if the target only can be emptied.

        ``afresh`` goes on with none: what it was built from may be gone from the truth.
        """
        renewal = self.of(target)
        if renewal is None:
            return False
        logger().info("target_renewed", target=target, reason=reason)
        former = renewal.successor() if afresh else None
        if former is not None:
            former.reset()
        renewal.begin()
        return True

    def fresh(self) -> frozenset[str]:
        """The targets that were built from nothing less than a day ago."""
        return self.built_since(self._catalogue.now() - FRESH) if self._catalogue else frozenset()

    def built_since(self, since: datetime) -> frozenset[str]:
        """The targets whose newest build from nothing began to be read later than that."""
        if self._catalogue is None:
            return frozenset()
        return frozenset(
            name
            for name in self._renewals
            for one in self._catalogue.kept(name)
            if one.origin == "full" and one.made_at > since
        )

    def switch(self, renewal: Renewable, successor: IndexTarget) -> Quality:
        """Let searches read the successor, if it holds what the truth has.

        Nobody applies to it meanwhile, so it stands still while both sides are read.

        Raises:
            Corrupt: It does not; it is still there.
        """
        wrong = self._differing(renewal, successor, built=True)
        if wrong:
            message = f"the new build differs from the truth in namespaces {_named(wrong)}"
            raise Corrupt(message)
        quality = renewal.switch()
        logger().info(
            "index_switched",
            target=renewal.target,
            generation=quality.generation,
            rows=quality.rows,
            kind=quality.kind,
            recall=quality.recall,
            width=quality.width,
        )
        return quality

    def fault(self, *, target: IndexTarget) -> str | None:
        """What is wrong with the index that is read, compared with the truth."""
        renewal = self.of(target.name)
        if renewal is None:
            return None
        try:
            wrong = self._differing(renewal, target, built=False)
        except Corrupt as error:
            return str(error)
        if not wrong:
            return None
        logger().warning("index_differs", target=target.name, namespaces=len(wrong))
        return f"it differs from the truth in namespaces {_named(wrong)}"

    def close(self) -> None:
        """Let others go on with what is being built."""
        for renewal in self._renewals.values():
            renewal.close()

    def keep(self) -> None:
        """Keep a way back for every target, and remove what is too old."""
        for renewal in self._renewals.values():
            renewal.keep()

    def keep_only_new(self, targets: Collection[str]) -> None:
        """Keep nothing that is older than the last build from nothing of these targets."""
        if self._catalogue is None:
            return
        for name in targets:
            renewal = self.of(name)
            if renewal is not None:
                noted = self._catalogue.kept(name)
                older = older_than_full(noted, read=renewal.reads())
                self._catalogue.forget(name, {one.pointer.generation for one in older})
                renewal.keep()

    def tidy(self) -> None:
        """Give the space of deleted chunks free."""
        for renewal in self._renewals.values():
            if isinstance(renewal, Tidied):
                renewal.tidy()

    def go_back(self, *, way: Way) -> None:
        """Set every target back.

        None is, unless all were found whole and lacking no purge. What only shows at the switch
        itself (a store that is down, a full disk) may leave some set back and others not: each can
        be searched and is brought forward, and going back once more sets back the others too.

        Raises:
            NotFound: A target has nothing to go back to.
            WriteConflict: A kept generation may hold rows that were purged since.
            Corrupt: A kept generation is damaged.
            Unavailable: It can't be done now, of some or of all.
        """
        found = [(renewal, self._kept(renewal, way)) for renewal in self._renewals.values()]
        for renewal, kept in found:
            renewal.hold(kept)
        for renewal, kept in found:
            renewal.return_to(kept)
            made_at = kept.made_at.isoformat(timespec="seconds")
            logger().warning("index_set_back", target=renewal.target, way=way, made_at=made_at)

    def _kept(self, renewal: Renewable, way: Way) -> KeptGeneration:
        kept = None
        if self._catalogue is not None:
            kept = way_back(
                self._catalogue.kept(renewal.target),
                way,
                read=renewal.reads(),
                now=self._catalogue.now(),
            )
        if kept is None:
            message = f"no {way} generation of {renewal.target} is kept to go back to"
            raise NotFound(message)
        return kept

    def _differing(
        self, renewal: Renewable, target: IndexTarget, *, built: bool
    ) -> tuple[int, ...]:
        if self._truth is None:
            return ()
        with renewal.inventory(successor=built) as held:
            settled = self._truth.settled(target.name, target.kind, clocks=held.clocks)
            return differing(settled.fingerprints, held.fingerprints(leaving_out=settled.moving))


def enough(patience: Patience, *, read: int | None) -> int:
    """How many rows may be pending of a successor that is switched to.

    Never fewer than are pending of what is ``read``, or writes without pause would keep the new one
    from it for ever; ``None`` where that can't be relied on.
    """
    return min(patience.rows, LOST_ROWS) if read is None else max(SWITCH_ROWS, read)


def _named(ns_ids: Sequence[int]) -> str:
    more = ", …" if len(ns_ids) > _SHOWN else ""
    return ", ".join(map(str, ns_ids[:_SHOWN])) + more
