"""Words are counted in the truth as an index counts them."""

from collections.abc import Iterator

import pytest

from memory_tool.adapters.in_memory_keyword_index import (
    InMemoryKeywordFolder,
    InMemoryKeywordIndex,
    InMemoryKeywordTarget,
)
from memory_tool.adapters.postgres_server import Role
from memory_tool.adapters.postgres_terms import PostgresTerms
from memory_tool.index_jobs.applier import Applier
from memory_tool.model import Chunk, NewMemory, Patch
from memory_tool.write_changes import Remove, Revise
from tests.contract.truth import Truth, postgres_truth
from tests.factories import BEN, chunk_of, put
from tests.services.postgres import Database


@pytest.fixture
def truth(database: Database) -> Iterator[Truth]:
    """An empty one."""
    with postgres_truth(database) as one:
        yield one


def test_words_are_counted_as_an_index_counts_them(truth: Truth, database: Database) -> None:
    """A search without the index must not take a word of every second memory for a rare one."""
    truth.write(
        put(NewMemory(content="…"), chunk_of("green tea"), chunk_of("tea tea pot", ordinal=1))
    )
    first, second, third = truth.add("绿茶 tea", "black coffee", "red wine")
    truth.add("tea for ben", namespace=BEN)
    truth.write(Revise(memory_id=second, patch=Patch(tags=("tea", "wine"))))
    truth.write(Remove(memory_id=third))
    silent = Chunk(ordinal=0, start=0, stop=1, language="en", words="", bigrams="")
    truth.write(put(NewMemory(content="?"), silent))
    with database.pool(Role.WORKER) as pool:
        terms = PostgresTerms(pool)
        terms.recount()
        truth.write(Remove(memory_id=first))
        terms.recount()
    folder = InMemoryKeywordFolder()
    Applier(truth.log, [InMemoryKeywordTarget(folder, name="t")]).run(force=True)
    asked = ("tea", "绿茶", "wine", "coffee", "pot", "unheard")
    indexed = InMemoryKeywordIndex(folder, target="t").view().term_documents(asked)
    with truth.seen() as snapshot:
        counted = snapshot.term_documents((*asked, ""))
    assert counted == {"tea": 3, "": 4}
    assert {term: number for term, number in indexed.items() if number > 1} == counted
