"""Where a PostgreSQL is, as each role reaches it, without ever showing a password."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memory_tool.errors import SettingsError


def address_of(address: str, role: str, *, given: str = "") -> str:
    """The address at which ``role`` reaches the database.

    Of several hosts the one that takes writes is meant, unless the address says otherwise: after a
    switch the next connection finds the new primary.

    Args:
        address: The address that the settings name, as a URL or in libpq's form.
        role: The role to connect as.
        given: An address of its own for this role, which wins.

    Raises:
        SettingsError: It is no address.
    """
    if given:
        return _checked(given)
    return _checked(make_conninfo(_checked(address), user=role))


def shown_address(address: str) -> str:
    """Host, port and database, for people."""
    parts = conninfo_to_dict(_checked(address))
    host, name = parts.get("host", "localhost"), parts.get("dbname", "")
    return f"PostgreSQL at {host}:{parts.get('port', 5432)}/{name}"


def _checked(address: str) -> str:
    try:
        parts = conninfo_to_dict(address)
        if any("," in str(parts.get(hosts, "")) for hosts in ("host", "hostaddr")):
            parts.setdefault("target_session_attrs", "read-write")
        return make_conninfo("", **parts)
    except psycopg.Error as error:
        # The driver's message would quote the address with its password.
        message = "database_url: this is no address of a PostgreSQL"
        raise SettingsError(message) from error
