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

LOWER_CHUNKS: Final = 1_000
"""Most chunks that one search reads of warm and cold memories: about 30 ms. Where a question's
words are in more of them, its commonest words are left out: they decide least."""

COMMON_SHARE: Final = 0.1
"""A word in a larger share of all chunks is no reason to look at a chunk: it only adds to the score
of what rarer words found, as in Lucene's common terms query. In a tenth of them it counts 2.3, in a
thousandth 6.9. Raise it where questions of everyday words have to search old memories by words."""

_ENOUGH_TO_JUDGE: Final = 1_000
"""Chunks of the index from which its counts tell how common a word is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerChunks:
    """Chunks of warm and cold memories with words of a question.

    Attributes:
        statistics: Of the index, of these chunks, and of those that were at hand already.
        left_out: Terms that were not looked for, though they are not common.
        cut: Whether there were more than could be read.
    """

    chunks: Sequence[ChunkTokens]
    statistics: CorpusStatistics
    left_out: frozenset[str]
    cut: bool

    def missing(self, least: float, *, parameters: FieldParameters) -> tuple[Degradation, ...]:
        """What to say of an answer whose page ends with a candidate of the score ``least``.

        Nothing, if no chunk that was not read could have come before that.
        """
        if self.cut:
            reason = f"only {LOWER_CHUNKS:,} chunks of warm and cold memories were read"
            return (Degradation(part="keyword", reason=reason),)
        if not self.left_out:
            return ()
        most = most_possible(self.left_out, statistics=self.statistics, parameters=parameters)
        if most <= least:
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
        known: Chunks at hand, which are scored too and need not be found once more.
    """
    terms = (*query.words, *query.bigrams)
    lowered = snapshot.lowered
    few = within is not None and len(within) <= LOWER_CHUNKS
    common = _common(terms, counts)
    wanted = terms if few else _rarest(terms, counts, lowered=lowered)
    found = snapshot.lower_chunks_with(wanted, LOWER_CHUNKS + 1, within=within)
    if len(found) > LOWER_CHUNKS:
        # The index did not know how common the words are. What was found does.
        sample = _documents_with(query, found)
        common = common or _common(terms, sample)
        rarer = _rarest(wanted, sample, lowered=lowered)
        if len(rarer) < len(wanted):
            wanted = rarer
            found = snapshot.lower_chunks_with(wanted, LOWER_CHUNKS + 1, within=within)
    held = {(chunk.memory_id, chunk.ordinal, chunk.keyword_nseq) for chunk in known}
    chunks = [
        chunk
        for chunk in found[:LOWER_CHUNKS]
        if (chunk.memory_id, chunk.ordinal, chunk.keyword_nseq) not in held
    ]
    both = CorpusStatistics.counted(query, [*known, *chunks])
    return LowerChunks(
        chunks=chunks,
        statistics=both.beside(query, counts, documents=counts.get("", 0) + len(known) + lowered),
        left_out=frozenset(terms).difference(wanted, common),
        cut=len(found) > LOWER_CHUNKS,
    )


def _documents_with(query: KeywordQuery, chunks: Sequence[ChunkTokens]) -> Mapping[str, int]:
    """In how many of these chunks each term of the query stands, and how many there are."""
    fields = CorpusStatistics.counted(query, chunks).document_frequency
    terms = (*query.words, *query.bigrams)
    counts = {term: max(fields[field].get(term, 0) for field in FIELDS) for term in terms}
    return {**counts, "": len(chunks)}


def _rarest(terms: Sequence[str], counts: Mapping[str, int], *, lowered: int) -> tuple[str, ...]:
    """The rarest terms that are likely to be in no more chunks than may be read; at least one."""
    documents = counts.get("", 0)
    if documents < _ENOUGH_TO_JUDGE:
        return tuple(terms)
    common = _common(terms, counts)
    chosen: list[str] = []
    expected = 0.0
    for term in sorted(terms, key=lambda term: (counts.get(term, 0), term)):
        expected += counts.get(term, 0) / documents * lowered
        if chosen and (term in common or expected > LOWER_CHUNKS):
            break
        chosen.append(term)
    return tuple(chosen)


def _common(terms: Sequence[str], counts: Mapping[str, int]) -> frozenset[str]:
    """The terms that are in too large a share of the documents to find anything by themselves."""
    documents = counts.get("", 0)
    if documents < _ENOUGH_TO_JUDGE:
        return frozenset()
    return frozenset(term for term in terms if counts.get(term, 0) > COMMON_SHARE * documents)
