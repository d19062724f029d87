"""``threefold export`` and ``threefold import``: memories as JSON, out of a store and into one."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memory_manage.interfaces.cli_errors import WRONG_INPUT
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import ScopeOptions, StoreOptions
from memory_manage.interfaces.cli_output import print_fields
from memory_manage.interfaces.cli_progress import progress
from memory_manage.interfaces.cli_session import note, print_json
from memory_manage.interfaces.cli_worker import opened_tool
from memory_tool.errors import InputError
from memory_tool.scope_words import ScopeWords, write_namespace

if TYPE_CHECKING:
    from memory_manage.exchange_import import Failure
    from memory_tool.scope import Namespace


@with_groups
def export(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A new file, compressed if named .zst; - prints."),
    ],
    *,
    every: Annotated[bool, typer.Option("--all", help="Every namespace of the store.")] = False,
    with_vectors: Annotated[
        bool,
        typer.Option(
            "--with-vectors", help="Also the vectors, for a store with the same embedding model."
        ),
    ] = False,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Write memories with all that is known of them as JSON Lines.

    Versions, relations, tags and times are in it; a store with another embedding model can take it.
    """
    # Here, not above: NumPy and psycopg take a second that --help does not have.
    from memory_manage.exchange_export import export_memories  # noqa: PLC0415
    from memory_manage.exchange_files import STANDARD, written_file  # noqa: PLC0415

    if every and _named(where):
        message = "--all is every namespace: name no scope beside it"
        raise InputError(message)
    if where.run is not None:
        message = "an export is of whole namespaces: --run names a part of one"
        raise InputError(message)
    words = ScopeWords() if every else ScopeWords(**where.words())
    with opened_tool(store, applying=False) as tool, written_file(file) as out:
        scope = None if every else tool.scope_and_filter(words, None)[0]
        total = int(tool.figures()["memories"]) if every else 0
        with progress(total, "memories", quiet=store.as_json or not total) as shown:
            count = export_memories(
                tool, out, scope=scope, with_vectors=with_vectors, advance=shown.advance
            )
    if file == STANDARD:
        return
    if store.as_json:
        print_json({"file": file, "memories": count})
    else:
        print_fields({"memories": f"{count:,}", "file": file})


@with_groups
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - reads standard input.")],
    *,
    form: Annotated[
        Literal["threefold", "mem0", "langgraph", "json"],
        typer.Option("--format", help="Who wrote it. json: texts, or records as `add` takes them."),
    ] = "threefold",
    on_duplicate: Annotated[
        Literal["skip", "update", "fail", "keep"] | None,
        typer.Option(
            help="When the same text is there already. Default: as the file says, else skip."
        ),
    ] = None,
    where: ScopeOptions,
    store: StoreOptions,
) -> None:
    """Take in memories from a file. The exit status is 0 only if all of them are in.

    They go where the file says, or all to the scope that is named here. Ids, versions and times are
    kept; what is there in the same version is left as it is, so to do it again is harmless.
    """
    from memory_manage.exchange_files import read_items, size_of  # noqa: PLC0415 - as above
    from memory_manage.exchange_import import ImportOptions, import_memories  # noqa: PLC0415
    from memory_tool.validation import on_duplicate_of  # noqa: PLC0415

    options = ImportOptions(
        form=form,
        namespace=_place(where),
        on_duplicate=None if on_duplicate is None else on_duplicate_of(on_duplicate),
        failed=_tell,
    )
    size = size_of(file)
    with (
        progress(size, "bytes read", quiet=store.as_json or not size) as shown,
        read_items(file, shown.advance) as items,
        opened_tool(store, applying=False) as tool,
    ):
        report = import_memories(tool, items, options=options)
    told = report.to_dict()
    if store.as_json:
        print_json(told)
    else:
        print_fields({name: f"{count:,}" for name, count in told.items() if name != "failures"})
    if not report.whole:
        raise typer.Exit(WRONG_INPUT)


def _tell(failure: "Failure") -> None:
    note(f"line {failure.number}: {failure.error}")


def _named(where: ScopeOptions) -> bool:
    return any((where.scope, where.user, where.project, where.agent))


def _place(where: ScopeOptions) -> "Namespace | None":
    return write_namespace(ScopeWords(**where.words())) if _named(where) else None
