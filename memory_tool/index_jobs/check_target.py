"""One index under a check: from whose it is, over counts and entries, to what it finds."""

from collections.abc import Iterable, Iterator, Mapping

from memory_tool.errors import Corrupt
from memory_tool.findings import REBUILT, Drift, Finding, Level, each_once
from memory_tool.index_jobs.check_items import disagreements, entry_findings, vector_findings
from memory_tool.index_jobs.check_queries import (
    SAMPLE,
    ask_for_vectors,
    ask_for_words,
    recall_findings,
    shares,
)
from memory_tool.inspection_ports import Inspected, Look, TruthSide
from memory_tool.inventory import NOTHING, Entry, Settled, differing
from memory_tool.inventory_ports import IndexInventory, TruthInventory


class TargetCheck:
    """Looks at one index. What it found may have been under way: look twice."""

    def __init__(self, truth: TruthSide, inspected: Inspected, *, sample: int = SAMPLE) -> None:
        """Touch nothing yet.

        Args:
            truth: What the index should hold.
            inspected: The index.
            sample: How many chunks it is asked for.
        """
        self._truth = truth
        self._inspected = inspected
        self._sample = sample

    @property
    def target(self) -> str:
        """The name of the index."""
        return self._inspected.target

    def findings(self, level: Level) -> list[Finding]:
        """What is wrong now.

        Raises:
            Unavailable: The truth or a server can't answer.
            Corrupt: The truth is damaged.
        """
        # First: the index can only have come further since, never less far.
        progress = self._truth.audit.progress(self.target)
        try:
            with self._inspected.look() as look:
                whole = [*look.faults, *self._of_its_standing(look.inventory, progress)]
                # What is of another history can't be compared entry by entry.
                if any(finding.drift in REBUILT for finding in whole):
                    return whole
                of_entries = list(self._of_its_entries(look, level))
                asked = each_once(self._asked(look, level, apart_from=of_entries))
                return [*whole, *of_entries, *asked]
        except Corrupt as error:
            if error.store == "postgres":
                raise
            return [Finding(drift=Drift.DAMAGED, target=self.target, found=str(error))]

    def _of_its_standing(
        self, inventory: IndexInventory, progress: Mapping[int, int]
    ) -> Iterator[Finding]:
        """Whose it is and where it says that it stands."""
        mark = inventory.mark
        if mark is None:
            return
        if not self._truth.log.knows(self.target, mark):
            yield Finding(drift=Drift.FOREIGN_MARK, target=self.target, found=mark)
            return
        truth = self._truth.audit.clocks()
        for ns_id, clock in inventory.clocks.items():
            if ns_id not in truth:
                yield self._of_namespace(Drift.UNKNOWN_NAMESPACE, ns_id, found=f"clock {clock}")
                continue
            nseq, purged = truth[ns_id]
            if clock > nseq:
                yield self._of_namespace(
                    Drift.CLOCK_AHEAD, ns_id, found=f"clock {clock}", highest=clock, at_most=nseq
                )
            if 0 < clock < purged:
                yield self._of_namespace(
                    Drift.BELOW_PURGED, ns_id, found=f"clock {clock}, purged up to {purged}"
                )
        for ns_id, noted in progress.items():
            clock = inventory.clocks.get(ns_id, 0)
            if noted > clock:
                yield self._of_namespace(
                    Drift.PROGRESS_AHEAD,
                    ns_id,
                    found=f"noted {noted}",
                    highest=clock,
                    at_most=clock,
                )

    def _of_its_entries(self, look: Look, level: Level) -> Iterator[Finding]:
        """How many there are, in which versions, and whether their vectors are the stored ones."""
        clocks = look.inventory.clocks
        settled = self._settled(self._truth.inventory, clocks)
        there = look.inventory.fingerprints(leaving_out=settled.moving)
        wrong = differing(settled.fingerprints, there)
        if level is Level.COUNTS:
            wanted = sum(one.entries for one in settled.fingerprints.values())
            held = sum(one.entries for one in there.values())
            if wanted != held:
                yield Finding(
                    drift=Drift.COUNT,
                    target=self.target,
                    found=f"{held:,} entries",
                    expected=f"{wanted:,}",
                )
            return
        if level is Level.FINGERPRINTS:
            for ns_id in wrong:
                wanted, held = (
                    side.get(ns_id, NOTHING).entries for side in (settled.fingerprints, there)
                )
                yield self._of_namespace(
                    Drift.FINGERPRINT,
                    ns_id,
                    found=f"{held:,} entries, other than the truth's {wanted:,}",
                )
            return
        for ns_id in wrong:
            yield from self._entry_by_entry(look.inventory, ns_id)
        if look.contents is not None:
            yield from self._of_its_vectors(look.contents)

    def _entry_by_entry(self, inventory: IndexInventory, ns_id: int) -> Iterator[Finding]:
        wanted, there = self._sides(self._truth.inventory, inventory, ns_id=ns_id)
        yield from entry_findings(
            disagreements(wanted, there),
            target=self.target,
            kind=self._inspected.kind,
            ns_id=ns_id,
            audit=self._truth.audit,
        )

    def _of_its_vectors(self, contents: IndexInventory) -> Iterator[Finding]:
        settled = self._settled(self._truth.contents, contents.clocks)
        there = contents.fingerprints(leaving_out=settled.moving)
        for ns_id in differing(settled.fingerprints, there):
            wanted, held = self._sides(self._truth.contents, contents, ns_id=ns_id)
            yield from vector_findings(
                # What is missing or too much was found by its version.
                (one for one in disagreements(wanted, held) if one.lacking and one.beside),
                target=self.target,
                ns_id=ns_id,
            )

    def _sides(
        self, truth: TruthInventory, index: IndexInventory, *, ns_id: int
    ) -> tuple[list[Entry], Iterator[Entry]]:
        """The settled entries of a namespace in the truth and in the index."""
        target, kind, clocks = self.target, self._inspected.kind, index.clocks
        one = frozenset({ns_id})
        wanted = [entry for _, entry in truth.entries(target, kind, clocks=clocks, ns_ids=one)]
        # Behind it, for what began to move while it was read.
        moving = truth.moving(target, kind, clocks=clocks).get(ns_id, frozenset())
        return (
            [entry for entry in wanted if entry.memory_id not in moving],
            (entry for _, entry in index.entries(one) if entry.memory_id not in moving),
        )

    def _asked(
        self, look: Look, level: Level, *, apart_from: Iterable[Finding]
    ) -> Iterator[Finding]:
        """What it finds when it is asked for some of its own that seemed well until here."""
        if level < Level.QUERIES:
            return
        clocks, kind = look.inventory.clocks, self._inspected.kind
        settled = self._settled(self._truth.inventory, clocks)
        entries = {ns_id: one.entries for ns_id, one in settled.fingerprints.items()}
        audit = self._truth.audit
        wrong = {(finding.ns_id, finding.memory_id) for finding in apart_from}
        wanted = shares(entries, self._sample)
        specimens = [
            one
            for one in audit.sample(self.target, kind, clocks=clocks, wanted=wanted)
            if (one.ns_id, one.entry.memory_id) not in wrong
        ]
        if look.words is not None:
            yield from ask_for_words(look.words(), specimens, target=self.target)
        if look.vectors is not None:
            view = look.vectors()
            yield from ask_for_vectors(view, specimens, target=self.target)
            yield from recall_findings(
                view, specimens, target=self.target, audit=audit, clocks=clocks
            )

    def _settled(self, truth: TruthInventory, clocks: Mapping[int, int]) -> Settled:
        return truth.settled(self.target, self._inspected.kind, clocks=clocks)

    def _of_namespace(
        self, drift: Drift, ns_id: int, *, found: str, highest: int = 0, at_most: int | None = None
    ) -> Finding:
        expected = "" if at_most is None else f"at most {at_most}"
        return Finding(
            drift=drift,
            target=self.target,
            ns_id=ns_id,
            found=found,
            expected=expected,
            highest=highest,
        )
