"""``threefold erase``: gone from every place, with a receipt."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memory_manage.interfaces.cli_errors import UNAVAILABLE
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import ScopeOptions, StoreOptions
from memory_manage.interfaces.cli_output import aligned
from memory_manage.interfaces.cli_session import note, print_json, print_lines
from memory_manage.interfaces.cli_worker import opened_tool
from memory_tool.errors import InputError

if TYPE_CHECKING:
    from memory_tool.erase_values import Receipt

_SHOWN_TRACES = 10


@with_groups
def erase(
    *,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="Only this memory (repeat it for several)."),
    ] = None,
    filters: Annotated[
        str | None,
        typer.Option("--filter", "-f", metavar="CONDITION", help="Only what meets it."),
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="A text that no file may hold afterwards (repeat it for several)."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: there is no way back.")] = False,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Erase memories from every store, index, archive and file, and print a receipt.

    Without --id and --filter everything of the scope goes, the names of its namespaces too. Indexes
    and tables are written anew, so it takes as long as a full rebuild. A place that another process
    or host has to finish is said to be waiting, and the exit status is 4: call it again later.
    """
    words = where.words(filters)
    if not yes:
        message = "erasing can't be undone, not even from a backup: say --yes"
        raise InputError(message)
    # Here, not above: NumPy, FAISS and psycopg take a second that --help does not have.
    from memory_manage.erasing import erase as erase_memories  # noqa: PLC0415
    from memory_tool.scope_words import ScopeWords  # noqa: PLC0415

    with opened_tool(store, applying=False) as tool:
        scope, condition = tool.scope_and_filter(ScopeWords(**words), filters)
        receipt = erase_memories(
            tool, scope, ids=ids or (), condition=condition, pieces=canary or (), say=note
        )
    if store.as_json:
        print_json(_document(receipt))
    else:
        _print(receipt)
    if not receipt.complete:
        raise typer.Exit(UNAVAILABLE)


def _document(receipt: "Receipt") -> dict[str, Any]:
    return {
        "at": receipt.at.isoformat(),
        "complete": receipt.complete,
        "lines": receipt.lines,
        "rows": dict(receipt.rows),
        "places": [
            {"place": place.name, "state": place.state, "said": place.said}
            for place in receipt.places
        ],
        "scan": {
            "clean": receipt.scan.clean,
            "pieces": receipt.scan.pieces,
            "files": receipt.scan.files,
            "bytes": receipt.scan.bytes,
            "unread": list(receipt.scan.unread),
            "found": [
                {"file": trace.file, "elsewhere": trace.elsewhere} for trace in receipt.scan.traces
            ],
        },
    }


def _print(receipt: "Receipt") -> None:
    rows = ", ".join(f"{count:,} {kind}" for kind, count in receipt.rows.items())
    print_lines(f"erased at {receipt.at.isoformat(timespec='seconds')}: {rows}")
    print_lines(*aligned([(place.state, place.name, place.said) for place in receipt.places]))
    scan = receipt.scan
    found = [trace for trace in scan.traces if not trace.elsewhere]
    said = "found nothing" if not found else f"FOUND in {len(found)} files"
    if not scan.pieces:
        print_lines("searched no file: nothing is known of what was erased; see --canary")
        return
    print_lines(
        f"searched {scan.files:,} files ({scan.bytes:,} bytes) for {scan.pieces} pieces: {said}"
    )
    shared = len(scan.traces) - len(found)
    if shared:
        print_lines(f"{shared} files say what memories that stay say too")
    print_lines(*(f"  {trace.file}" for trace in found[:_SHOWN_TRACES]))
    print_lines(*(f"  could not be read: {file}" for file in scan.unread[:_SHOWN_TRACES]))
