"""Words of warm and cold memories: which are looked for, and what is said of what is missing."""

from collections.abc import Mapping, Sequence

import pytest

from memory_tool.bm25 import DEFAULT_FIELD_PARAMETERS
from memory_tool.lower_tiers import LOWER_CHUNKS, look_lower
from memory_tool.model import MemoryId
from memory_tool.port_values import ChunkTokens, KeywordQuery
from memory_tool.ports import TokenSearch

QUERY = KeywordQuery(words=("rare", "common"), bigrams=())


class Lower(TokenSearch):
    """Warm memories, each of one chunk with these words."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self.asked: Sequence[str] = ()
        self.several = 1

    @property
    def lowered(self) -> int:
        """All are, and each stands for several."""
        return self.several * len(self._texts)

    def lower_chunks_with(
        self, terms: Sequence[str], limit: int, *, within: frozenset[MemoryId] | None
    ) -> tuple[ChunkTokens, ...]:
        """See :meth:`memory_tool.ports.TokenSearch.lower_chunks_with`."""
        self.asked = terms
        found = [
            chunk_of(str(number), text)
            for number, text in enumerate(self._texts)
            if set(terms) & set(text.split()) and (within is None or str(number) in within)
        ]
        return tuple(found[:limit])

    def chunks_with(self, terms: Sequence[str], limit: int) -> tuple[ChunkTokens, ...]:
        """Nobody asks."""
        return ()

    def term_documents(self, terms: Sequence[str]) -> Mapping[str, int]:
        """Nobody asks."""
        return {}


def chunk_of(memory_id: MemoryId, text: str) -> ChunkTokens:
    """A chunk of a memory whose row has the number 7."""
    return ChunkTokens(
        ns_id=1, memory_id=memory_id, ordinal=0, keyword_nseq=7, words=text, bigrams="", extra=""
    )


def test_both_sides_are_counted_together() -> None:
    """So that a score of one compares with a score of the other."""
    lower = Lower("rare", "common", "common", "other")
    found = look_lower(QUERY, {"": 10_000, "common": 500}, snapshot=lower, within=None, known=())
    assert found.statistics.documents == 10_004
    assert found.statistics.document_frequency["words"] == {"rare": 1, "common": 502}
    assert [chunk.words for chunk in found.chunks] == ["rare", "common", "common"]
    assert found.missing(0.0, parameters=DEFAULT_FIELD_PARAMETERS) == ()


def test_a_chunk_at_hand_is_not_found_once_more() -> None:
    """A row that moved a moment ago is newer than the index, and warm."""
    known = [chunk_of("0", "rare")]
    found = look_lower(QUERY, {}, snapshot=Lower("rare", "rare"), within=None, known=known)
    assert [chunk.memory_id for chunk in found.chunks] == ["1"]


def test_common_words_are_left_out_where_there_are_too_many() -> None:
    """And it is said, unless nothing that they alone could find would come before what was."""
    lower = Lower(*["common"] * (3 * LOWER_CHUNKS), "rare")
    counts = {"": 10_000, "common": 900, "rare": 2}
    lower.several = 100
    found = look_lower(QUERY, counts, snapshot=lower, within=None, known=())
    assert lower.asked == ("rare",)
    assert [chunk.words for chunk in found.chunks] == ["rare"]
    assert found.left_out == {"common"}
    (note,) = found.missing(0.5, parameters=DEFAULT_FIELD_PARAMETERS)
    assert note.part == "keyword"
    assert found.missing(50.0, parameters=DEFAULT_FIELD_PARAMETERS) == ()


def test_a_word_that_nearly_all_hold_finds_nothing_by_itself() -> None:
    """Nothing is missing for it: it adds to the score of what is found."""
    lower = Lower("common", "rare common")
    counts = {"": 10_000, "common": 5_000, "rare": 2}
    found = look_lower(QUERY, counts, snapshot=lower, within=None, known=())
    assert lower.asked == ("rare",)
    assert found.missing(0.0, parameters=DEFAULT_FIELD_PARAMETERS) == ()
    assert found.statistics.document_frequency["words"]["common"] == 5_001


@pytest.mark.parametrize("documents", [0, 999])
def test_a_small_index_does_not_say_what_is_common(documents: int) -> None:
    """Then all words are looked for at first, and what is found says it."""
    lower = Lower(*["common"] * (2 * LOWER_CHUNKS), "rare")
    counts = {"": documents, "rare": documents}
    found = look_lower(QUERY, counts, snapshot=lower, within=None, known=())
    assert lower.asked == ("rare",)
    assert [chunk.words for chunk in found.chunks] == ["rare"]
    assert found.missing(0.0, parameters=DEFAULT_FIELD_PARAMETERS) == ()


def test_a_word_that_stands_everywhere_is_read_in_part() -> None:
    """Where a question has no rarer one; and it is said."""
    lower = Lower(*["common"] * (2 * LOWER_CHUNKS))
    query = KeywordQuery(words=("common",), bigrams=())
    found = look_lower(query, {"": 10_000}, snapshot=lower, within=None, known=())
    assert len(found.chunks) == LOWER_CHUNKS
    assert found.missing(100.0, parameters=DEFAULT_FIELD_PARAMETERS) != ()


def test_a_filter_that_leaves_few_is_searched_by_every_word() -> None:
    """There can't be too many."""
    lower = Lower(*["common"] * (3 * LOWER_CHUNKS))
    counts = {"": 10_000, "common": 9_000}
    within = frozenset({"3", "5"})
    found = look_lower(QUERY, counts, snapshot=lower, within=within, known=())
    assert {chunk.memory_id for chunk in found.chunks} == within
    assert found.left_out == frozenset()
