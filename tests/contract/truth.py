"""A truth under test: all adapters of one store, and what no port can do to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from memory_tool.adapters.in_memory_change_log import InMemoryChangeLog
from memory_tool.adapters.in_memory_reader import InMemoryRecordReader
from memory_tool.adapters.in_memory_record_store import InMemoryRecordStore
from memory_tool.adapters.in_memory_state import InMemoryStore
from memory_tool.adapters.postgres_change_log import PostgresChangeLog
from memory_tool.adapters.postgres_reader import PostgresRecordReader
from memory_tool.adapters.postgres_record_store import PostgresRecordStore
from memory_tool.adapters.postgres_server import Role
from memory_tool.log_ports import ChangeLog
from memory_tool.model import Memory, MemoryId, NewMemory, State, WriteResult
from memory_tool.port_values import (
    Commit,
    Existing,
    Lookup,
    Opening,
    Planner,
    RowChange,
    RowKey,
    TargetBase,
    WritePlan,
)
from memory_tool.ports import RecordReader, RecordStore, Snapshot, SpaceRegistry
from memory_tool.scope import Namespace, Scope
from memory_tool.write_changes import Change
from tests.factories import ANNA, commit_of, new_id, put, quarantined
from tests.services.postgres import Database

Something = TypeVar("Something")
NO_BASE: Final = TargetBase(mark=None, clocks={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """One store behind its ports.

    Attributes:
        count_terms: Do what a rebuild does to the counts of terms.
        purge: Forget the deleted rows of a namespace up to a number, as a job does.
    """

    store: RecordStore
    reader: RecordReader
    spaces: SpaceRegistry
    log: ChangeLog
    count_terms: Callable[[Mapping[str, int]], None]
    purge: Callable[[int, int], None]

    def write(self, *changes: Change, namespace: Namespace = ANNA) -> tuple[WriteResult, ...]:
        """Commit these changes together."""
        return self.store.commit(commit_of(changes, namespace))

    def add(self, *news: NewMemory | str, namespace: Namespace = ANNA) -> list[MemoryId]:
        """Commit new memories together; their ids."""
        results = self.write(*map(put, news), namespace=namespace)
        return [result.id for result in results if result.id is not None]

    def plan(self, planner: Planner, *ids: MemoryId, namespace: Namespace = ANNA) -> None:
        """Commit what a plan of the test's own makes of the rows of these ids."""
        commit = Commit(
            namespace=namespace,
            lookup=Lookup(ids=ids),
            plan=planner,
            idempotency_key=new_id(),
            request_hash=b"-",
        )
        self.store.commit(commit)

    def quarantine(self, memory_id: MemoryId, *, namespace: Namespace = ANNA) -> None:
        """Hide a memory from every search."""

        def planner(existing: Existing) -> WritePlan:
            (row,) = existing.rows
            hidden = quarantined(row, nseq=existing.nseq + 1)
            assert hidden.state is State.QUARANTINED
            change = RowChange(action="quarantine", row=hidden, chunks=None)
            return WritePlan(changes=(change,), results=())

        self.plan(planner, memory_id, namespace=namespace)

    def number(self, namespace: Namespace = ANNA) -> int:
        """The number of a namespace, which has to exist."""
        (clock,) = self.store.view(Scope.of(namespace, exact=True), ()).namespaces
        return clock.ns_id

    def keys(self, *ids: MemoryId, namespace: Namespace = ANNA) -> list[RowKey]:
        """Where these memories are kept, or would be: the namespace has to exist."""
        return [(self.number(namespace), memory_id) for memory_id in ids]

    def clock(self, namespace: Namespace = ANNA) -> int:
        """The clock of a namespace, which has to exist."""
        (clock,) = self.store.view(Scope.of(namespace, exact=True), ()).namespaces
        return clock.nseq

    def fetched(self, memory_id: MemoryId, namespace: Namespace = ANNA) -> Memory:
        """A memory that has to be there."""
        return self.reader.fetch(Scope.of(namespace), [memory_id])[memory_id].memory

    def marked(self, target: str, base: TargetBase = NO_BASE) -> str:
        """Read what changed for a target, which makes a mark known."""
        with self.log.changes(target, "vector", base=base, limit=1000) as batch:
            for _ in batch.rows:
                pass
            return batch.mark

    @contextmanager
    def seen(self, *namespaces: Namespace, opening: Opening | None = None) -> Iterator[Snapshot]:
        """A snapshot of these namespaces; with the rest of ``opening``, if it is given."""
        numbers = {self.number(one): one for one in namespaces or (ANNA,)}
        base = opening or Opening(namespaces=numbers)
        with self.store.snapshot(replace(base, namespaces=numbers)) as snapshot:
            yield snapshot


@contextmanager
def postgres_truth(database: Database, *, pooled: bool = False) -> Iterator[Truth]:
    """The truth in a database."""

    def count_terms(counts: Mapping[str, int]) -> None:
        with database.connection(Role.WORKER) as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO threefold.term_stat VALUES (%s, %s)", counts.items())

    def purge(ns_id: int, upto: int) -> None:
        with database.connection(Role.WORKER) as connection:
            connection.execute(
                "DELETE FROM threefold.memory"
                " WHERE ns_id = %s AND nseq <= %s AND state = 'deleted'",
                (ns_id, upto),
            )
            connection.execute(
                "UPDATE threefold.ns_clock SET purged = %s WHERE ns_id = %s", (upto, ns_id)
            )

    with (
        database.pool(Role.APP, pooled=pooled) as app,
        database.pool(Role.WORKER, pooled=pooled) as worker,
    ):
        store = PostgresRecordStore(app)
        yield Truth(
            store=store,
            reader=PostgresRecordReader(app, store),
            spaces=store,
            log=PostgresChangeLog(worker),
            count_terms=count_terms,
            purge=purge,
        )


def in_memory_truth(store: InMemoryStore) -> Truth:
    """The truth in memory."""

    def count_terms(counts: Mapping[str, int]) -> None:
        store.state = replace(store.state, term_documents=counts)

    def purge(ns_id: int, upto: int) -> None:
        space = store.state.namespaces[ns_id]
        kept = {
            memory_id: row
            for memory_id, row in space.rows.items()
            if row.state is not State.DELETED or row.nseq > upto
        }
        purged = replace(space, rows=kept, purged=upto)
        namespaces = {**store.state.namespaces, ns_id: purged}
        store.state = replace(store.state, namespaces=namespaces)

    records = InMemoryRecordStore(store)
    return Truth(
        store=records,
        reader=InMemoryRecordReader(store),
        spaces=records,
        log=InMemoryChangeLog(store),
        count_terms=count_terms,
        purge=purge,
    )


def present(value: Something | None) -> Something:
    """A value that has to be there."""
    assert value is not None
    return value


def contents(rows: Sequence[Memory]) -> list[str]:
    """What memories say, in their order."""
    return [memory.content for memory in rows]
