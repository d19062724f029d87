"""The proxy before PostgreSQL breaks real sessions as it says."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.services.postgres import Server
from tests.services.proxy import PostgresProxy
from tests.services.proxy_modes import BlackHole, Cut, Delay, Pass, Refuse, Reset


@pytest.fixture
def proxy(postgres: Server) -> Iterator[PostgresProxy]:
    """A proxy before each server that there is."""
    with PostgresProxy(postgres.superuser) as proxy:
        yield proxy


@pytest.mark.parametrize("mode", [Pass(), Delay(0.01)], ids=repr)
def test_a_session_goes_through(proxy: PostgresProxy, mode: Pass) -> None:
    """Whatever a test blames on an outage must not be the proxy's own doing."""
    proxy.behave(mode)
    with psycopg.connect(proxy.conninfo) as connection:
        rows = connection.execute(
            "SELECT repeat('x', 1000) FROM generate_series(1, 500)"
        ).fetchall()

    assert len(rows) == 500


@pytest.mark.parametrize("mode", [Cut(), Refuse(), Reset(after=5000)], ids=repr)
def test_an_open_session_breaks(proxy: PostgresProxy, mode: Pass) -> None:
    """Sessions wait in pools, so an outage has to reach those that are open."""
    with psycopg.connect(proxy.conninfo) as connection:
        with proxy.doing(mode), pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 500)").fetchall()
        assert connection.broken

    with psycopg.connect(proxy.conninfo) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("mode", [Cut(), Refuse()], ids=repr)
def test_a_new_session_finds_nobody(proxy: PostgresProxy, mode: Pass) -> None:
    """What a process meets that starts during the outage."""
    with proxy.doing(mode), pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.conninfo)


def test_a_black_hole_is_silent(proxy: PostgresProxy) -> None:
    """The connection is there and nobody answers: only the caller's clock ends it."""
    with proxy.doing(BlackHole()), pytest.raises(psycopg.OperationalError, match="timeout"):
        psycopg.connect(proxy.conninfo, connect_timeout=2)
