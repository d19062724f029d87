"""Two sides of one namespace, item by item: what they disagree about, and what that means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory_tool.findings import Drift, Finding
from memory_tool.inspection_ports import Standing, TruthAudit
from memory_tool.inventory import Entry
from memory_tool.model import MemoryId, State

ASKED_AT_ONCE: Final = 1_000
"""Memories that the truth is asked about in one statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """What one memory's entries are on either side, less those that both have."""

    memory_id: MemoryId
    lacking: tuple[Entry, ...]
    beside: tuple[Entry, ...]


def disagreements(wanted: Iterable[Entry], there: Iterable[Entry]) -> Iterator[Disagreement]:
    """Where an index differs from what it should hold; an entry that it has twice is one too many.

    The wanted entries of the namespace are in memory meanwhile.
    """
    lacking = set(wanted)
    beside: dict[MemoryId, list[Entry]] = {}
    for entry in there:
        if entry in lacking:
            lacking.remove(entry)
        else:
            beside.setdefault(entry.memory_id, []).append(entry)
    missing: dict[MemoryId, list[Entry]] = {}
    for entry in lacking:
        missing.setdefault(entry.memory_id, []).append(entry)
    for memory_id in sorted(missing.keys() | beside.keys()):
        yield Disagreement(
            memory_id=memory_id,
            lacking=tuple(sorted(missing.get(memory_id, ()))),
            beside=tuple(sorted(beside.get(memory_id, ()))),
        )


def entry_findings(
    found: Iterable[Disagreement],
    *,
    target: str,
    kind: Literal["vector", "keyword"],
    ns_id: int,
    audit: TruthAudit,
) -> Iterator[Finding]:
    """What disagreements about versions mean, by what the truth knows of each memory."""
    for some in _in_groups(found):
        strange = [one.memory_id for one in some if one.beside]
        standings = audit.standings(strange, kind=kind) if strange else {}
        for one in some:
            yield _finding(one, standings.get(one.memory_id, ()), target=target, ns_id=ns_id)


def vector_findings(found: Iterable[Disagreement], *, target: str, ns_id: int) -> Iterator[Finding]:
    """What disagreements about contents mean."""
    for one in found:
        ordinals = {entry.ordinal for entry in (*one.lacking, *one.beside)}
        yield Finding(
            drift=Drift.WRONG_VECTOR,
            target=target,
            ns_id=ns_id,
            memory_id=one.memory_id,
            found=f"other vectors at {_ordinals(ordinals)}",
            expected="the stored ones",
            chunks=max(ordinals) + 1,
        )


def _in_groups(found: Iterable[Disagreement]) -> Iterator[Sequence[Disagreement]]:
    group: list[Disagreement] = []
    for one in found:
        group.append(one)
        if len(group) == ASKED_AT_ONCE:
            yield group
            group = []
    if group:
        yield group


def _finding(
    one: Disagreement, standings: Sequence[Standing], *, target: str, ns_id: int
) -> Finding:
    here = {standing.ns_id: standing for standing in standings}
    drift, expected = _meaning(one, here, ns_id=ns_id)
    return Finding(
        drift=drift,
        target=target,
        ns_id=ns_id,
        memory_id=one.memory_id,
        found=_words(one.beside) or "nothing",
        expected=expected,
        highest=max((entry.version for entry in one.beside), default=0),
        chunks=max(entry.ordinal for entry in (*one.lacking, *one.beside)) + 1,
    )


def _meaning(one: Disagreement, here: Mapping[int, Standing], *, ns_id: int) -> tuple[Drift, str]:
    if not one.beside:
        return Drift.MISSING, _words(one.lacking)
    row = here.get(ns_id)
    if row is None and here:
        return Drift.WRONG_NAMESPACE, f"it belongs to namespace {min(here)}"
    if row is None:
        return Drift.ORPHAN, "nothing"
    if row.state is not State.LIVE:
        return (Drift.DELETED if row.state is State.DELETED else Drift.NOT_HELD), "nothing"
    if any(entry.version != row.number for entry in one.beside):
        return Drift.WRONG_VERSION, _words(one.lacking) or f"version {row.number}"
    return Drift.SURPLUS_ORDINAL, "none of these"


def _words(entries: Sequence[Entry]) -> str:
    versions = sorted({entry.version for entry in entries})
    said = (
        f"{_ordinals({e.ordinal for e in entries if e.version == version})} in version {version}"
        for version in versions
    )
    return ", ".join(said)


def _ordinals(ordinals: Iterable[int]) -> str:
    """Of a long text not all are named."""
    ordered = sorted(ordinals)
    named = ", ".join(map(str, ordered[:5])) + (", …" if len(ordered) > 5 else "")  # noqa: PLR2004
    return f"ordinal {named}" if len(ordered) == 1 else f"ordinals {named}"
