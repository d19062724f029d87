"""What an index holds, in figures that two sides can compare without telling each other all. Pure.

An entry is one chunk of one memory in one version. A fingerprint of many entries does not depend on
their order, so an index tells it in the order of its files and PostgreSQL in that of its own.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from memory_tool.model import MemoryId

_DIGEST_BYTES: Final = 8


class Entry(NamedTuple):
    """One chunk of a memory, in the version that the arm's own number gives it."""

    memory_id: MemoryId
    ordinal: int
    version: int


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many entries there are, and the exclusive or of their digests."""

    entries: int = 0
    digest: int = 0


NOTHING: Final = Fingerprint()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a target that stands at given clocks has to hold.

    Attributes:
        fingerprints: Of each namespace the chunks of live rows whose number is not above its clock.
        moving: Rows that an index may hold in another version, or not yet, or no more: those above
            the clock, and those that the target can't take. They are left out on both sides.
    """

    fingerprints: Mapping[int, Fingerprint]
    moving: Mapping[int, frozenset[MemoryId]]


def entry_digest(entry: Entry) -> int:
    """The first 8 bytes of the MD5 of ``id:ordinal:version``, as a signed number, as SQL has it."""
    return content_digest(f"{entry.memory_id}:{entry.ordinal}:{entry.version}".encode("ascii"))


def content_digest(content: bytes) -> int:
    """The first 8 bytes of the MD5 of some bytes, as a signed number, as SQL has it."""
    raw = hashlib.md5(content, usedforsecurity=False).digest()
    return int.from_bytes(raw[:_DIGEST_BYTES], "big", signed=True)


def fingerprint_of(entries: Iterable[Entry]) -> Fingerprint:
    """The fingerprint of some entries."""
    count = digest = 0
    for entry in entries:
        count += 1
        digest ^= entry_digest(entry)
    return Fingerprint(count, digest)


def fingerprints_by_namespace(
    entries: Iterable[tuple[int, Entry]], *, leaving_out: Mapping[int, frozenset[MemoryId]]
) -> dict[int, Fingerprint]:
    """The fingerprint of each namespace's entries, but for those of some memories."""
    counts: dict[int, int] = {}
    digests: dict[int, int] = {}
    nobody: frozenset[MemoryId] = frozenset()
    for ns_id, entry in entries:
        if entry.memory_id not in leaving_out.get(ns_id, nobody):
            counts[ns_id] = counts.get(ns_id, 0) + 1
            digests[ns_id] = digests.get(ns_id, 0) ^ entry_digest(entry)
    return {ns_id: Fingerprint(count, digests[ns_id]) for ns_id, count in counts.items()}


def differing(
    truth: Mapping[int, Fingerprint], index: Mapping[int, Fingerprint]
) -> tuple[int, ...]:
    """The namespaces that differ, in order; one without entries is as good as none."""
    ns_ids = truth.keys() | index.keys()
    return tuple(
        sorted(ns_id for ns_id in ns_ids if truth.get(ns_id, NOTHING) != index.get(ns_id, NOTHING))
    )
