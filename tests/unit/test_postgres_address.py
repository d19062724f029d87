"""How a role reaches a database."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from memory_tool.adapters.postgres_address import address_of
from memory_tool.adapters.postgres_server import Role


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://a,b/x", "read-write"),
        ("postgresql://a:1,b:2/x", "read-write"),
        ("hostaddr=1.2.3.4,1.2.3.5", "read-write"),
        ("host=a,b target_session_attrs=any", "any"),
        ("postgresql://a/x", None),
        ("dbname=x", None),
    ],
)
def test_of_several_hosts_the_primary_is_meant(address: str, expected: str | None) -> None:
    """Else a connection after a switch may lead to the standby."""
    for given in ("", address):
        reached = conninfo_to_dict(address_of(address, Role.WORKER, given=given))
        assert reached.get("target_session_attrs") == expected
