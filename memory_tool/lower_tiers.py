"""The words of warm and cold memories, found by the truth's tokens: no keyword index has them.

The scores have to compare with those of the index, which knows the hot memories only. BM25 asks how
rare a word is, and that is a share: of hot, warm and cold memories together it is about what it is
of the hot ones alone. So both sides are counted together here, and the index's scores stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory_tool.bm25 import FIELDS, CorpusStatistics, FieldParameters, most_possible
from memory_tool.model import MemoryId
from memory_tool.port_values import ChunkTokens, KeywordQuery
from memory_tool.ports import TokenSearch
from memory_tool.query import Degradation

LOWER_CHUNKS: Final = 2_000
"""Most chunks that one search reads of warm and cold memories: about 40 ms. Where a question's
words are in more of them, its commonest words are left out: they decide least."""

_ENOUGH_TO_JUDGE: Final = 1_000
"""Chunks of the index from which its counts tell how common a word is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerChunks:
    """Chunks of warm and cold memories with words of a question.

    Attributes:
        counts: How many chunks hold each term, hot or not; under ``""`` how many there are.
        left_out: Terms that were not looked for.
        cut: Whether there were more than could be read.
    """

    query: KeywordQuery
    chunks: Sequence[ChunkTokens]
    counts: Mapping[str, int]
    left_out: frozenset[str]
    cut: bool

    def missing(self, least: float, *, parameters: FieldParameters) -> tuple[Degradation, ...]:
        """What to say of an answer whose last candidate has the score ``least``.

        Nothing, if no chunk that was not read could have come before it.
        """
        if self.cut:
            reason = f"only {LOWER_CHUNKS:,} chunks of warm and cold memories were read"
            return (Degradation(part="keyword", reason=reason),)
        if not self.left_out:
            return ()
        statistics = CorpusStatistics.recorded(self.query, self.chunks, term_documents=self.counts)
        if most_possible(self.left_out, statistics=statistics, parameters=parameters) <= least:
            return ()
        reason = "warm and cold memories were searched by the rarer words only"
        return (Degradation(part="keyword", reason=reason),)


def look_lower(
    query: KeywordQuery,
    counts: Mapping[str, int],
    *,
    snapshot: TokenSearch,
    within: frozenset[MemoryId] | None,
    known: Sequence[ChunkTokens],
) -> LowerChunks:
    """Look for the words of a question in warm and cold memories.

    Args:
        query: The words.
        counts: How many chunks of the index hold each term, and how many there are.
        snapshot: Where to look.
        within: Keeps to these memories.
        known: Chunks at hand that need not be found once more.
    """
    terms = (*query.words, *query.bigrams)
    few = within is not None and len(within) <= LOWER_CHUNKS
    wanted = terms if few else _rarest(terms, counts, lowered=snapshot.lowered)
    found = snapshot.lower_chunks_with(wanted, LOWER_CHUNKS + 1, within=within)
    held = {(chunk.memory_id, chunk.ordinal, chunk.keyword_nseq) for chunk in known}
    chunks = [
        chunk
        for chunk in found[:LOWER_CHUNKS]
        if (chunk.memory_id, chunk.ordinal, chunk.keyword_nseq) not in held
    ]
    here = CorpusStatistics.counted(query, chunks).document_frequency
    both = {
        term: counts.get(term, 0) + max(here[field].get(term, 0) for field in FIELDS)
        for term in terms
    }
    return LowerChunks(
        query=query,
        chunks=chunks,
        counts={**both, "": counts.get("", 0) + snapshot.lowered},
        left_out=frozenset(terms).difference(wanted),
        cut=len(found) > LOWER_CHUNKS,
    )


def _rarest(terms: Sequence[str], counts: Mapping[str, int], *, lowered: int) -> tuple[str, ...]:
    """The rarest terms that are likely to be in no more chunks than may be read; at least one."""
    documents = counts.get("", 0)
    if documents < _ENOUGH_TO_JUDGE:
        return tuple(terms)
    chosen: list[str] = []
    expected = 0.0
    for term in sorted(terms, key=lambda term: (counts.get(term, 0), term)):
        expected += counts.get(term, 0) / documents * lowered
        if chosen and expected > LOWER_CHUNKS:
            break
        chosen.append(term)
    return tuple(chosen)
