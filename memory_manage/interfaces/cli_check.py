"""``threefold check``: compare every index with PostgreSQL, and repair what differs."""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from memory_manage.interfaces.cli_errors import DRIFT, OK, UNAVAILABLE
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_manage.interfaces.cli_output import aligned
from memory_manage.interfaces.cli_session import note, print_json, print_lines
from memory_manage.interfaces.cli_worker import opened_tool
from memory_tool.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_tool.findings import Finding
    from memory_tool.index_jobs.check import Checked
    from memory_tool.index_jobs.repair import Repaired
    from memory_tool.tool import MemoryTool

LevelName = Literal["counts", "fingerprints", "items", "queries", "orphans"]

SHOWN: Final = 20
"""Findings of one kind that people are shown; --json has all."""


@with_groups
def check(
    *,
    level: Annotated[
        LevelName,
        typer.Option(
            help="How closely: each looks as closely as the ones before it, and closer.",
        ),
    ] = "orphans",
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair what was found, and check once more."),
    ] = False,
    sample: Annotated[
        int,
        typer.Option(metavar="CHUNKS", min=1, help="Chunks that each index is asked for."),
    ] = 200,
    store: StoreOptions,
) -> None:
    """Compare every index with PostgreSQL: counts, versions, vectors, self-queries, orphans.

    It holds up nobody: searches and writes go on. What an index has not applied yet is no fault.
    With --repair memories are delivered again and damaged indexes built anew; the status then says
    what is left. Status 0 means that all is well, 6 that something differs.
    """
    with opened_tool(store, applying=False) as tool:
        said = (
            _repaired(tool, level, sample=sample, quiet=store.as_json)
            if repair
            else _checked(tool, level, sample=sample, quiet=store.as_json)
        )
    status, document, lines = said
    if store.as_json:
        print_json(document)
    else:
        print_lines(*lines)
    raise typer.Exit(status)


_Said = tuple[int, Mapping[str, Any], list[str]]


def _checked(tool: "MemoryTool", level: LevelName, *, sample: int, quiet: bool) -> _Said:
    # Here, not above: NumPy takes time that --help does not have.
    from memory_tool.findings import Level  # noqa: PLC0415
    from memory_tool.index_jobs.check_store import check_of  # noqa: PLC0415

    wanted = check_of(tool.stores, sample=sample)
    if wanted is None:
        raise InputError(_NO_CHECK)
    found = wanted.run(Level[level.upper()], on_target=_teller(quiet=quiet))
    return _status(found), _document(found), _lines(found)


def _repaired(tool: "MemoryTool", level: LevelName, *, sample: int, quiet: bool) -> _Said:
    # Here, not above: NumPy takes time that --help does not have.
    from memory_tool.findings import Level  # noqa: PLC0415
    from memory_tool.index_jobs.check_store import repair_of  # noqa: PLC0415

    wanted = repair_of(tool.stores, tool.complete, sample=sample)
    if wanted is None:
        raise InputError(_NO_CHECK)
    done = wanted.run(Level[level.upper()], on_target=_teller(quiet=quiet))
    document = {
        "found": _document(done.found),
        "rebuilt": list(done.rebuilt),
        "redelivered": done.redelivered,
        "left_to_another_process": done.by_others,
        "after": _document(done.after),
    }
    return _status(done.after), document, _lines_of_repair(done)


_NO_CHECK: Final = "this record store can't tell what its indexes should hold"


def _teller(*, quiet: bool) -> "Callable[[str], None]":
    if quiet or not sys.stderr.isatty():
        return lambda _target: None
    return lambda target: note(f"looking at {target}")


def _status(found: "Checked") -> int:
    if found.findings:
        return DRIFT
    return UNAVAILABLE if found.unchecked else OK


def _document(found: "Checked") -> Mapping[str, Any]:
    return {
        "clean": found.clean,
        "targets": list(found.targets),
        "unchecked": dict(found.unchecked),
        "waiting": found.waiting,
        "findings": [finding.to_dict() for finding in found.findings],
    }


def _lines(found: "Checked") -> list[str]:
    rows = []
    for target in found.targets:
        own = [finding for finding in found.findings if finding.target == target]
        kinds = Counter(str(finding.drift) for finding in own)
        said = ", ".join(f"{count:,} × {kind}" for kind, count in kinds.items())
        rows.append((target, said or "clean"))
    rows += [(target, f"not checked: {reason}") for target, reason in found.unchecked.items()]
    waiting = [f"{found.waiting:,} memories wait for their vectors"] if found.waiting else []
    return [*aligned(rows), *waiting, *_shown(found.findings)]


def _shown(findings: "tuple[Finding, ...]") -> list[str]:
    lines = []
    seen: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        kind = finding.target, str(finding.drift)
        seen[kind] += 1
        if seen[kind] <= SHOWN:
            lines.append(_line(finding))
    hidden = sum(max(0, count - SHOWN) for count in seen.values())
    return [*lines, f"{hidden:,} more: see --json"] if hidden else lines


def _line(finding: "Finding") -> str:
    where = [finding.target]
    if finding.ns_id is not None:
        where.append(f"namespace {finding.ns_id}")
    if finding.memory_id is not None:
        where.append(f"memory {finding.memory_id}")
    expected = f", not {finding.expected}" if finding.expected else ""
    return f"  {finding.drift} · {' · '.join(where)}: {finding.found}{expected}"


def _lines_of_repair(done: "Repaired") -> list[str]:
    if done.found.clean:
        return _lines(done.found)
    said = [f"redelivered {done.redelivered:,} memories"]
    if done.rebuilt:
        said.append(f"built {', '.join(done.rebuilt)} anew")
    if done.by_others:
        said.append("another process applied it")
    return [
        "found",
        *_lines(done.found),
        f"repaired: {'; '.join(said)}",
        "after",
        *_lines(done.after),
    ]
