"""Plans of PostgreSQL, as made and as run."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql

from memory_tool.adapters.postgres_server import Role
from tests.services.postgres import Database

Plan: TypeAlias = Mapping[str, Any]
"""A statement that ran (``Query Text``) and the nodes of its plan, as PostgreSQL prints JSON."""

_EXPLAINED: Final = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "client_min_messages": "log",
}


@contextmanager
def explained(database: Database, role: Role) -> Iterator[None]:
    """Tell each new connection of a role the plan of every statement that it ran.

    Statements inside functions too. The plans come as notices; see :func:`heard_plans`.
    """
    names = (sql.Identifier(role), sql.Identifier(database.name))
    with database.admin() as admin:
        for name, value in _EXPLAINED.items():
            setting = sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                *names, sql.Identifier(*name.split(".")), sql.Literal(value)
            )
            admin.execute(setting)
        yield
        admin.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} RESET ALL").format(*names))


def heard_plans(*connections: psycopg.Connection[Any]) -> list[Plan]:
    """A list that grows with every statement that these connections run from now on."""
    plans: list[Plan] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            plans.append(json.loads(text))

    for connection in connections:
        connection.add_notice_handler(hear)
    return plans


def tables_read(plan: Plan) -> set[str]:
    """The tables and partitions that a statement really scanned, whatever its plan could have."""
    return set(_scanned(plan["Plan"]))


def _scanned(node: Mapping[str, Any]) -> Iterator[str]:
    if "Relation Name" in node and node["Node Type"].endswith("Scan") and node["Actual Loops"]:
        yield str(node["Relation Name"])
    for child in node.get("Plans", ()):
        yield from _scanned(child)


def with_index_names(connection: psycopg.Connection[Any], plan: str) -> str:
    """A plan as text in which each index of a partition bears the name of the whole table's."""
    rows = connection.execute(
        "SELECT part.relname, whole.relname FROM pg_inherits"
        " JOIN pg_class part ON part.oid = inhrelid JOIN pg_class whole ON whole.oid = inhparent"
        " WHERE whole.relkind = 'I' AND whole.relnamespace = 'threefold'::regnamespace"
    )
    for part, whole in rows.fetchall():
        plan = plan.replace(f" {part} ", f" {whole} ").replace(f" {part}\n", f" {whole}\n")
    return plan
