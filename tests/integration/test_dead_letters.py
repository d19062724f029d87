"""Rows that an index can't take are found all the same, however many there are."""

from memory_tool.adapters.postgres_snapshot import UNDELIVERED
from memory_tool.port_values import DeadLetter, Opening
from tests.contract.truth import postgres_truth
from tests.services.postgres import Database


def test_more_refused_rows_than_a_search_reads_are_told(database: Database) -> None:
    """Some of them in silence would be memories lost; the arm then answers from the truth."""
    asking = Opening(namespaces={}, letters_of=("server",))
    with postgres_truth(database) as truth:
        ids = truth.add(*(f"tea number {number}" for number in range(UNDELIVERED + 1)))
        ns_id = truth.number()
        letters = [
            DeadLetter(ns_id=ns_id, memory_id=memory_id, version=number, reason="400")
            for number, memory_id in enumerate(ids, start=1)
        ]
        truth.log.bury("server", "keyword", letters=letters[1:], delivered={})
        with truth.seen(opening=asking) as snapshot:
            assert snapshot.undelivered is not None
            assert len(snapshot.undelivered["server"]) == UNDELIVERED
        truth.log.bury("server", "keyword", letters=letters[:1], delivered={})
        with truth.seen(opening=asking) as snapshot:
            assert snapshot.undelivered is None
