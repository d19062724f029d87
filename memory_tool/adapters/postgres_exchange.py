"""Memories read out with everything that is known of them, and trees put in."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, cast

from memory_tool.adapters.postgres_connection import Connection, PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_record_store import PostgresRecordStore, namespace_parameters
from memory_tool.adapters.postgres_rows import (
    Image,
    Record,
    json_text,
    memory_of_image,
    row_of_image,
)
from memory_tool.adapters.postgres_snapshot import name_namespaces
from memory_tool.exchange_ports import Exchange, ExportedChunk, ExportedMemory, TreeNode
from memory_tool.port_values import Attached
from memory_tool.scope import Namespace, Scope

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FETCH: Final = 200


class PostgresExchange(Exchange):
    """See :class:`memory_tool.exchange_ports.Exchange`.

    Memories are read by the application's role, behind the wall of their namespace; which
    namespaces there are only the worker's may ask.
    """

    def __init__(
        self, app: PostgresPool, worker: PostgresPool, *, records: PostgresRecordStore
    ) -> None:
        self._app = app
        self._worker = worker
        self._records = records

    def identity(self) -> str:
        """See :meth:`memory_tool.exchange_ports.Exchange.identity`."""
        with self._worker.connection() as connection:
            record = connection.execute(statement("store_identity")).fetchone()
        return cast("tuple[str]", record)[0]

    def namespaces(self) -> tuple[Namespace, ...]:
        """See :meth:`memory_tool.exchange_ports.Exchange.namespaces`."""
        with self._worker.connection() as connection:
            records = connection.execute(statement("exported_namespaces")).fetchall()
        return tuple(
            Namespace.from_address(address) for (address,) in cast("list[tuple[str]]", records)
        )

    @contextlib.contextmanager
    def memories(
        self, namespace: Namespace, *, with_vectors: bool
    ) -> Iterator[Iterator[ExportedMemory]]:
        """See :meth:`memory_tool.exchange_ports.Exchange.memories`."""
        ns_id = self._number(namespace)
        if ns_id is None:
            yield iter(())
            return
        with self._app.connection() as connection:
            connection.execute(_BEGIN)
            name_namespaces(connection, f"{{{ns_id}}}")
            # Whoever takes the memories may take their time; nobody waits for a snapshot.
            connection.execute(statement("be_patient"))
            with connection.cursor(name="exported") as cursor:
                cursor.itersize = _FETCH
                cursor.execute(
                    statement("exported_memories"), {"ns_id": ns_id, "with_vectors": with_vectors}
                )
                yield (self._exported(record, {ns_id: namespace}) for record in cursor)
            connection.execute("COMMIT")

    def tree(self, namespace: Namespace) -> tuple[TreeNode, ...]:
        """See :meth:`memory_tool.exchange_ports.Exchange.tree`."""
        with self._worker.connection() as connection:
            records = connection.execute(
                statement("exported_nodes"), {"ns_id": self._number(namespace)}
            ).fetchall()
        found = cast("list[tuple[int, int | None, str, Mapping[str, Any]]]", records)
        places = {node_id: place for place, (node_id, *_) in enumerate(found)}
        return tuple(
            TreeNode(name=name, parent=places.get(parent or 0), properties=properties)
            for _, parent, name, properties in found
        )

    def grow(self, namespace: Namespace, nodes: Sequence[TreeNode]) -> None:
        """See :meth:`memory_tool.exchange_ports.Exchange.grow`."""
        numbers: list[int] = []
        with self._worker.connection() as connection, connection.transaction():
            record = connection.execute(
                statement("ensured_namespace"), namespace_parameters(namespace)
            ).fetchone()
            (ns_id,) = cast("tuple[int]", record)
            for node in nodes:
                parent = None if node.parent is None else numbers[node.parent]
                numbers.append(_put_node(connection, node, ns_id=ns_id, parent=parent))

    def _exported(self, record: Record, namespaces: Mapping[int, Namespace]) -> ExportedMemory:
        image, kept, relations, reviews, chunks, space = record
        # Of a cold memory the archive has the text, and the versions before it.
        loaded = self._records.whole.loaded(row_of_image(image, namespaces))
        archived = (cast("Image", version["image"]) for version in loaded.versions)
        versions = (memory_of_image(one, namespaces) for one in chain(archived, kept))
        return ExportedMemory(
            row=loaded.row,
            chunks=tuple(ExportedChunk(**chunk) for chunk in chunks),
            attached=Attached(
                versions=tuple(versions), relations=tuple(relations), reviews=tuple(reviews)
            ),
            space=space,
        )

    def _number(self, namespace: Namespace) -> int | None:
        found = self._records.view(Scope.of(namespace, exact=True), ()).namespaces
        return found[0].ns_id if found else None


def _put_node(connection: Connection, node: TreeNode, *, ns_id: int, parent: int | None) -> int:
    values = {
        "ns_id": ns_id,
        "parent": parent,
        "name": node.name,
        "properties": json_text(node.properties),
    }
    return cast("tuple[int]", connection.execute(statement("put_node"), values).fetchone())[0]
