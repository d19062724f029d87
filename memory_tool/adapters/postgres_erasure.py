"""What an erase ledger names is gone from a restored database, before anybody can read it."""

from collections.abc import Sequence
from typing import Final, cast

from memory_tool.adapters.postgres_connection import Connection
from memory_tool.adapters.postgres_queries import statement
from memory_tool.erase_ledger import Erasure

_KEPT: Final = frozenset(
    ("namespace", "ns_clock", "memory", "audit", "erase_ledger", "index_progress")
)
"""Tables that hold numbers of a memory that is gone, or its tombstone, and nothing that it said."""


def erase_again(connection: Connection, erasures: Sequence[Erasure]) -> int:
    """Turn what they name into numbered tombstones, as the tables' owner; how many there were."""
    if not erasures:
        return 0
    connection.execute(statement("erasures"))
    with connection.cursor() as cursor, cursor.copy("COPY erasure FROM STDIN") as rows:
        for one in erasures:
            rows.write_row((one.ns_id, one.memory_id, one.at))
    traces = connection.execute(statement("traces")).fetchall()
    for table, columns in cast("list[tuple[str, list[str] | None]]", traces):
        if table not in _KEPT:
            named = [f"t.{column}" for column in columns or ()] or ["NULL"]
            connection.execute(statement("erase_traces", table=table, columns=", ".join(named)))
    record = connection.execute(statement("erase_again")).fetchone()
    connection.execute(statement("note_erasures"))
    return cast("tuple[int]", record)[0]
