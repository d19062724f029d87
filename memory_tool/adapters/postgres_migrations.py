"""Numbered SQL files, each run once, in order, checksummed, by one process at a time."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final, cast

import psycopg

from memory_tool.adapters.postgres_connection import PATIENCE, Connection, translated
from memory_tool.errors import Corrupt

_LOCK: Final = 7_337_301_845
"""Any constant will do, as long as it is always the same."""

_LEDGER: Final = """
CREATE TABLE IF NOT EXISTS public.threefold_migration (
    number int PRIMARY KEY,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file ``0001_name.sql``."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Checksum of the file, to notice one that was edited after it ran."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped_migrations() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    folder = resources.files("memory_tool.adapters") / "sql" / "migrations"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")),
        key=lambda file: file.name,
    )
    return tuple(
        Migration(
            number=int(file.name.partition("_")[0]),
            name=file.name.removesuffix(".sql"),
            sql=file.read_text(encoding="utf-8"),
        )
        for file in files
    )


def migrate(
    conninfo: str, migrations: tuple[Migration, ...] | None = None
) -> tuple[Migration, ...]:
    """Bring a database to this version, as its owner; safe from several processes at once.

    Returns:
        The migrations that this call applied.

    Raises:
        Corrupt: A file that has run reads differently now, or the database is newer than this code.
    """
    wanted = shipped_migrations() if migrations is None else migrations
    with (
        translated(),
        psycopg.connect(conninfo, **PATIENCE) as connection,
        connection.transaction(),
    ):
        keep_others_out(connection)
        connection.execute(_LEDGER)
        done = history(connection)
        check_history(done, wanted)
        missing = tuple(migration for migration in wanted if migration.number not in done)
        run_migrations(connection, missing)
    return missing


def run_migrations(connection: Connection, migrations: Iterable[Migration]) -> None:
    """Run them in order and note that they ran, within the transaction at hand."""
    for migration in migrations:
        connection.execute(migration.sql.encode())
        connection.execute(
            "INSERT INTO public.threefold_migration (number, name, sha256) VALUES (%s, %s, %s)",
            [migration.number, migration.name, migration.sha256],
        )


def keep_others_out(connection: Connection) -> None:
    """Be the only one that migrates, until the end of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def check_schema(conninfo: str) -> None:
    """See that the database has this version's schema, as any role of ours.

    Raises:
        Corrupt: It has another one; names the command that brings it up to date.
    """
    wanted = shipped_migrations()
    with translated(), psycopg.connect(conninfo, **PATIENCE) as connection:
        try:
            done = history(connection)
        except psycopg.errors.InsufficientPrivilege:
            # Versions before this look was made possible.
            done = {}
    check_history(done, wanted)
    missing = [migration.name for migration in wanted if migration.number not in done]
    if missing:
        message = f"the database lacks {', '.join(missing)}, and `migrate` is off"
        raise Corrupt(message, command="threefold migrate")


def history(connection: Connection) -> dict[int, tuple[str, str]]:
    """The migrations that a database has run: number to name and checksum."""
    rows = connection.execute(
        "SELECT number, name, sha256 FROM public.threefold_migration ORDER BY number"
    ).fetchall()
    return {
        int(number): (str(name), str(sha256))
        for number, name, sha256 in cast("list[tuple[int, str, str]]", rows)
    }


def check_history(
    done: Mapping[int, tuple[str, str]], wanted: tuple[Migration, ...], *, what: str = "database"
) -> None:
    """See that this version knows what ``done`` says was run.

    Raises:
        Corrupt: It does not; ``what`` is to blame.
    """
    known = {migration.number: migration for migration in wanted}
    for number, (name, sha256) in done.items():
        migration = known.get(number)
        if migration is None:
            message = f"the {what} knows migration {name}, this version does not: update Threefold"
            raise Corrupt(message, command="pip install --upgrade threefold")
        if migration.sha256 != sha256:
            message = f"migration {name} was changed after it ran on this {what}"
            raise Corrupt(message)
