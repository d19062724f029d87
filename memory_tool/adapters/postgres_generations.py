"""Which builds of each index there are, as rows of PostgreSQL."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, cast

from memory_tool.adapters.postgres_connection import PostgresPool
from memory_tool.adapters.postgres_queries import statement
from memory_tool.adapters.postgres_rows import number_array
from memory_tool.errors import WriteConflict
from memory_tool.generations import KeptGeneration, Origin, successor_name
from memory_tool.port_values import Pointer
from memory_tool.renewal_ports import GenerationCatalogue

if TYPE_CHECKING:
    from datetime import datetime

_ADOPTING: Final = ("adopt_target", "adopt_marks", "adopt_progress", "adopt_letters")


class PostgresGenerations(GenerationCatalogue):
    """See :class:`memory_tool.renewal_ports.GenerationCatalogue`. Connects as the worker."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    def adopt(self, target: str) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.adopt`."""
        names = {"target": target, "successor": successor_name(target)}
        with self._pool.connection() as connection, connection.transaction():
            for name in _ADOPTING:
                connection.execute(statement(name), names)

    def note(self, pointer: Pointer, origin: Origin, *, read: bool = True) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.note`."""
        parameters = {
            "target": pointer.target,
            "generation": pointer.generation,
            "locator": pointer.locator,
            "mark": pointer.mark,
            "origin": origin,
            "read": read,
        }
        with self._pool.connection() as connection, connection.transaction():
            if read:
                connection.execute(statement("leave_generations"), parameters)
            connection.execute(statement("note_generation"), parameters)

    def end_succession(self, target: str) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.end_succession`."""
        with self._pool.connection() as connection:
            connection.execute(statement("end_succession"), {"successor": successor_name(target)})

    def kept(self, target: str) -> tuple[KeptGeneration, ...]:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.kept`."""
        with self._pool.connection() as connection:
            records = connection.execute(
                statement("kept_generations"), {"target": target}
            ).fetchall()
        return tuple(
            KeptGeneration(
                pointer=Pointer(target=name, generation=generation, locator=locator, mark=mark),
                origin=origin,
                made_at=made_at,
                left_at=left_at,
            )
            for name, generation, locator, mark, origin, made_at, left_at in cast(
                "list[tuple[str, int, str, str, Origin, datetime, datetime | None]]", records
            )
        )

    def forget(self, target: str, generations: Collection[int]) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.forget`."""
        if not generations:
            return
        named = {"target": target, "generations": number_array(generations)}
        with self._pool.connection() as connection:
            connection.execute(statement("forget_generations"), named)

    def go_back(self, target: str, clocks: Mapping[int, int]) -> None:
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.go_back`."""
        standing = {
            "target": target,
            "ns_ids": number_array(clocks),
            "applied": number_array(clocks.values()),
        }
        with self._pool.connection() as connection, connection.transaction():
            # Noted first: whoever purges from here on stops below it.
            connection.execute(statement("note_progress"), standing)
            found = connection.execute(statement("purged_above"), standing).fetchone()
            if found is not None:
                message = (
                    f"the kept generation of {target} may hold memories that were purged since:"
                    " it can't be gone back to; threefold rebuild --full builds a new one"
                )
                raise WriteConflict(message)

    def now(self) -> "datetime":
        """See :meth:`memory_tool.renewal_ports.GenerationCatalogue.now`."""
        with self._pool.connection() as connection:
            record = connection.execute(statement("store_clock")).fetchone()
        return cast("tuple[datetime]", record)[0]
