"""A pool of connections to one role of a PostgreSQL, and the one seam where its errors change."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from memory_tool.adapters.postgres_binaries import EmbeddedPostgresError
from memory_tool.errors import Corrupt, InputError, SettingsError, ThreefoldError, Unavailable

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]

MINIMUM_VERSION: Final = 150000
WAIT_SECONDS: Final = 5.0
"""Longest wait for a connection."""


class StandbyServer(psycopg.OperationalError):
    """The server follows another one, and may not have heard yet of what that one acknowledged."""


_DEMOTED: Final = (psycopg.errors.ReadOnlySqlTransaction, StandbyServer)
"""What is met where another server has taken over."""

_TEMPORARY: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    *_DEMOTED,
    # The server lost patience with a frozen client.
    psycopg.errors.IdleInTransactionSessionTimeout,
    EmbeddedPostgresError,
)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn driver errors into errors of the house, without the row contents they may quote."""
    try:
        yield
    except ThreefoldError:
        raise
    except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
        message = f"PostgreSQL refuses a value ({error.sqlstate})"
        raise InputError(message) from error
    except _TEMPORARY as error:
        message = f"PostgreSQL can't be reached: {_first_line(error)}"
        raise Unavailable(message, store="postgres") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        message = "the database has no tables of this version"
        raise Corrupt(message, command="threefold migrate", store="postgres") from error
    except psycopg.Error as error:
        message = f"PostgreSQL reports {error.sqlstate}: {_first_line(error)}"
        raise Corrupt(message, store="postgres") from error


def _first_line(error: Exception) -> str:
    # The lines after the first quote rows and values.
    return str(error).partition("\n")[0]


PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
"""Seconds, and milliseconds for the second: nobody waits without end for a server gone silent."""


class PostgresPool:
    """Connections of one role. Nothing is ever set at session level, so a pooler may stand between.

    Args:
        conninfo: Where and as whom to connect.
        size: Most connections.
        pooled: A transaction pooler stands between: prepare no statements.
        revive: Starts the server again if it died; for an embedded one.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        size: int = 8,
        pooled: bool = False,
        revive: Callable[[], None] | None = None,
    ) -> None:
        self._conninfo = conninfo
        self._revive = revive
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=size,
            open=False,
            timeout=WAIT_SECONDS,
            reconnect_timeout=WAIT_SECONDS,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None if pooled else 1,
                **PATIENCE,
            },
            check=ConnectionPool.check_connection if pooled else None,
        )

    def open(self) -> None:
        """Connect, and refuse a role or a server that the walls can't be trusted with.

        Raises:
            Unavailable: The server can't be reached.
            SettingsError: The role is a superuser or bypasses row-level security, or the server is
                older than PostgreSQL 15.
        """
        # A connection of its own: the pool would say that it waited, not why it waited in vain.
        with (
            translated(),
            psycopg.connect(self._conninfo, **PATIENCE) as connection,
        ):
            version = connection.info.server_version
            powerful = connection.execute(
                "SELECT FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
            ).rowcount
        if version < MINIMUM_VERSION:
            message = f"PostgreSQL 15 or newer is needed, the server is {version // 10000}"
            raise SettingsError(message)
        if powerful:
            message = (
                "the database role is a superuser or bypasses row-level security: connect as "
                "threefold_app or threefold_worker"
            )
            raise SettingsError(message)
        self._pool.open()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode, given back at the end without an open transaction.

        Driver errors are translated. When one broke the connection, or another server has taken
        over, the call at hand fails, but the pool is mended for the next.
        """
        with translated():
            connection = self._taken()
            try:
                yield connection
            except _DEMOTED:
                # All connections lead to the old server, this one included.
                self._pool.drain()
                raise
            finally:
                _end_transaction(connection)
                try:
                    if connection.closed:
                        self._mend()
                finally:
                    self._pool.putconn(connection)

    def _taken(self) -> Connection:
        try:
            return self._pool.getconn()
        except PoolTimeout:
            self._mend()
            raise

    def _mend(self) -> None:
        """Start the server again if it is ours, and drop the connections that died with it."""
        if self._revive is not None:
            self._revive()
        self._pool.check()

    def close(self) -> None:
        """Close every connection. Repeatable."""
        self._pool.close()


def _end_transaction(connection: Connection) -> None:
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        with contextlib.suppress(psycopg.Error):
            connection.rollback()
