"""What an index has to hold, as conditions of SQL. The one place that says so.

``m`` is a row of ``threefold.memory``, ``k`` one of ``threefold.chunk``. Rows that are expired but
not yet deleted count as held. ``%(space)s`` is the space that a vector index is of.
"""

from typing import Final

from memory_tool.adapters.postgres_queries import statement

NUMBER: Final = {"vector": "vector_nseq", "keyword": "keyword_nseq"}
"""Which of a row's numbers is its version in an index of each kind."""

ROW_HELD: Final = {"vector": "m.state = 'live'", "keyword": "m.state = 'live' AND m.tier = 'hot'"}
"""Of which rows an index of each kind holds chunks at all. The words of warm and cold memories are
looked for in the truth."""

CHUNK_HELD: Final = {
    "vector": f"({statement('vector_in')}) IS NOT NULL",
    "keyword": "(k.words <> '' OR k.bigrams <> '' OR m.extra <> '')",
}
"""Which chunks of such a row."""
