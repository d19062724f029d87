"""An index is asked for what it has to hold: does it find its own, and how many of the nearest?"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from memory_tool.findings import Drift, Finding
from memory_tool.inspection_ports import Specimen, TruthAudit
from memory_tool.model import Vector
from memory_tool.port_values import KeywordQuery
from memory_tool.ports import KeywordView, VectorView

SAMPLE: Final = 200
"""Chunks of a target that are asked for: a fault that one chunk in fifty has escapes once in 57."""

RAREST: Final = 3
"""Words of a chunk that have to find it, each by itself."""

RECALL_QUERIES: Final = 16
RECALL_DEPTH: Final = 10
RECALL_MIN: Final = 0.9
"""As a new generation has to find of itself; the graphs are built for .98."""

_ROUNDING: Final = 0.01
"""An index may keep vectors in another precision; another vector's score is far off."""

_WITHIN_A_MEMORY: Final = 1_000


def shares(entries: Mapping[int, int], total: int) -> Mapping[int, int]:
    """How many of each namespace make a sample of about ``total``; all, where there are no more.

    Among the chunks that are looked through may be some that no index holds: where all are wanted,
    no namespace is cut short by them.
    """
    held = sum(entries.values())
    if held <= total:
        return {ns_id: total for ns_id, count in entries.items() if count}
    largest = sorted(entries, key=lambda ns_id: (-entries[ns_id], ns_id))[:total]
    return {ns_id: max(1, entries[ns_id] * total // held) for ns_id in largest if entries[ns_id]}


def ask_for_vectors(
    view: VectorView, specimens: Sequence[Specimen], *, target: str
) -> Iterator[Finding]:
    """Each stored vector has the same product with itself in the index as in the truth."""
    for one in specimens:
        if one.vector is None:
            continue
        wanted = float(one.vector @ one.vector)
        scores = {
            (hit.ordinal, hit.version): hit.score
            for hit in view.scores(one.vector, [(one.ns_id, one.entry.memory_id)])
        }
        score = scores.get((one.entry.ordinal, one.entry.version))
        if score is None or abs(score - wanted) > _ROUNDING:
            yield Finding(
                drift=Drift.WRONG_VECTOR,
                target=target,
                ns_id=one.ns_id,
                memory_id=one.entry.memory_id,
                found=f"ordinal {one.entry.ordinal} "
                + ("is not found" if score is None else f"has the product {score:.3f} with itself"),
                expected=f"{wanted:.3f}",
                chunks=one.entry.ordinal + 1,
            )


def ask_for_words(
    view: KeywordView, specimens: Sequence[Specimen], *, target: str
) -> Iterator[Finding]:
    """Each chunk is found by its own rarest words, each of which is asked by itself."""
    common = Counter(token for one in specimens for token in {*_tokens(one)})
    for one in specimens:
        rarest = sorted(set(_tokens(one)), key=lambda token: (common[token], token))[:RAREST]
        lost = sum(not _finds(view, one, token=token) for token in rarest)
        if lost:
            yield Finding(
                drift=Drift.NOT_FOUND,
                target=target,
                ns_id=one.ns_id,
                memory_id=one.entry.memory_id,
                found=f"ordinal {one.entry.ordinal} by {len(rarest) - lost} of its words",
                expected=f"by all of its {len(rarest)} rarest words",
                chunks=one.entry.ordinal + 1,
            )


def recall_findings(
    view: VectorView,
    specimens: Sequence[Specimen],
    *,
    target: str,
    audit: TruthAudit,
    clocks: Mapping[int, int],
) -> Iterator[Finding]:
    """How many of the truly nearest the index finds in the namespace that is sampled most."""
    counts = Counter(one.ns_id for one in specimens)
    if not counts:
        return
    ((ns_id, _),) = counts.most_common(1)
    vectors = [one.vector for one in specimens if one.ns_id == ns_id and one.vector is not None]
    questions = _between(np.stack(vectors)[: 2 * RECALL_QUERIES])
    if not len(questions):
        return
    best = _nearest(audit, target, ns_id=ns_id, clock=clocks.get(ns_id, 0), questions=questions)
    shares_found = [
        _share(view, question, ns_id=ns_id, best=scores)
        for question, scores in zip(questions, best, strict=True)
    ]
    recall = sum(shares_found) / len(shares_found)
    if recall < RECALL_MIN:
        yield Finding(
            drift=Drift.LOW_RECALL,
            target=target,
            ns_id=ns_id,
            found=f"recall@{RECALL_DEPTH} {recall:.2f}",
            expected=f"{RECALL_MIN} or more",
        )


def _tokens(one: Specimen) -> Iterator[tuple[str, str]]:
    for field in ("words", "bigrams"):
        yield from ((field, token) for token in getattr(one, field).split())


def _finds(view: KeywordView, one: Specimen, *, token: tuple[str, str]) -> bool:
    field, text = token
    query = KeywordQuery(
        words=(text,) if field == "words" else (), bigrams=(text,) if field == "bigrams" else ()
    )
    hits = view.search(
        query, [one.ns_id], depth=_WITHIN_A_MEMORY, within=frozenset({one.entry.memory_id})
    )
    return any((hit.ordinal, hit.version) == one.entry[1:] for hit in hits)


def _between(vectors: Vector) -> Vector:
    """Unit vectors half way between each two: what was stored would find itself too easily."""
    pairs = len(vectors) // 2
    sums = vectors[:pairs] + vectors[pairs : 2 * pairs]
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    apart = lengths[:, 0] > _ROUNDING
    found: Vector = (sums[apart] / lengths[apart]).astype(np.float32)
    return found


def _nearest(
    audit: TruthAudit, target: str, *, ns_id: int, clock: int, questions: Vector
) -> Vector:
    """The best scores of each question over all settled vectors, best last."""
    best = np.full((len(questions), 0), -np.inf, np.float32)
    for _, vectors in audit.vectors(target, ns_id, clock=clock):
        scores = np.einsum("qd,vd->qv", questions, vectors)
        best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -RECALL_DEPTH:]
    return best


def _share(view: VectorView, question: Vector, *, ns_id: int, best: Vector) -> float:
    """Of the nearest, how many were found: those that score as well as the last of them."""
    if not len(best):
        return 1.0
    hits = view.search(question, [ns_id], depth=len(best))
    least = float(best[0]) - _ROUNDING / 10
    return sum(hit.score >= least for hit in hits) / len(best)
