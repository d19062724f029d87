"""Commands over the whole store: stats, doctor, migrate. They name no scope and show no content."""

from importlib import metadata

import typer

from memory_manage.interfaces.cli_doctor import doctor_checks, worst_status
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_output import aligned, print_fields
from memory_manage.interfaces.cli_session import opened, print_json, print_lines


@with_groups
def stats(*, store: StoreOptions) -> None:
    """Count memories and namespaces. Latencies and hit rate are those of this command alone."""
    with opened(store) as memory:
        figures = memory.stats().to_dict()
    if store.as_json:
        print_json(figures)
    else:
        print_fields({name.replace("_", " "): f"{value:,}" for name, value in figures.items()})


@with_groups
def doctor(*, store: StoreOptions) -> None:
    """Check settings, folder, disk and every store, and say what to do about a failure.

    Opens the store, and makes it where there is none yet. The exit status is 0 if all is well.
    """
    checks = list(doctor_checks(store))
    status = worst_status(checks)
    if store.as_json:
        print_json({"ok": status == 0, "checks": [check.to_dict() for check in checks]})
    else:
        rows = [("ok" if check.ok else "FAILED", check.name, check.said) for check in checks]
        print_lines(*aligned(rows))
        for check in checks:
            if not check.ok:
                print_lines(f"to fix the {check.name}: {check.fix}")
    raise typer.Exit(status)


@with_groups
def migrate(*, store: StoreOptions) -> None:
    """Bring the database to this version's schema.

    Opening a store does the same by itself, unless the setting `migrate` is off.
    """
    with opened(store, migrate=True) as memory:
        where = dict(memory.health().where)
    schema = metadata.version("threefold")
    if store.as_json:
        print_json({"schema": schema, "where": where})
    else:
        print_lines(f"the database ({where['records']}) has the schema of threefold {schema}")
