"""``threefold``, the command line."""

import io
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Final

import typer

from memory_manage.interfaces import (
    cli_backup,
    cli_check,
    cli_demo,
    cli_erase,
    cli_exchange,
    cli_memories,
    cli_rebuild,
    cli_reembed,
    cli_serve,
    cli_tiers,
    cli_upkeep,
    cli_worker,
)
from memory_manage.interfaces.cli_errors import (
    BUG,
    OK,
    STATUS_HELP,
    error_line,
    status_of,
)
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import StoreOptions
from memory_tool.errors import InputError, ThreefoldError

_COMMANDS: Final = {
    "demo": cli_demo.demo,
    "add": cli_memories.add,
    "search": cli_memories.search,
    "list": cli_memories.list_memories,
    "get": cli_memories.get,
    "delete": cli_memories.delete,
    "stats": cli_upkeep.stats,
    "doctor": cli_upkeep.doctor,
    "migrate": cli_upkeep.migrate,
    "worker": cli_worker.worker,
    "rebuild": cli_rebuild.rebuild,
    "reembed": cli_reembed.reembed,
    "tiers": cli_tiers.tiers,
    "erase": cli_erase.erase,
    "check": cli_check.check,
    "serve": cli_serve.serve,
    "backup": cli_backup.backup,
    "restore": cli_backup.restore,
    "export": cli_exchange.export,
    "import": cli_exchange.import_,
}


@with_groups
def threefold(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    store: StoreOptions,
) -> None:
    """One long-term memory for AI agents: add texts, find them by meaning, words and time."""
    if version:
        typer.echo(metadata.version("threefold"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit
    # What stands before the command's name is the default of what stands after it.
    before = {"data_dir": store.data_dir, "database_url": store.database_url}
    given = {name: value for name, value in before.items() if value is not None}
    context.default_map = {command: {**given, "as_json": store.as_json} for command in _COMMANDS}


def application() -> typer.Typer:
    """The commands with their options."""
    app = typer.Typer(
        name="threefold",
        add_completion=False,
        # Plain help: a third faster, and as good in a pipe as on a terminal.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True, epilog=STATUS_HELP)(threefold)
    for name, command in _COMMANDS.items():
        app.command(name)(command)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Those of the process by default.

    Returns:
        The exit status, as ``threefold --help`` explains it.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    _speak_utf8()
    try:
        # Not standalone: Typer returns the status of typer.Exit, and raises what is wrong.
        return application()(given, standalone_mode=False) or OK
    except ThreefoldError as error:
        return _reported(error, given)
    except typer.TyperException as error:
        return _reported(InputError(error.format_message()), given)
    except Exception:  # noqa: BLE001 - Python would exit with 1, which means "not found" here
        traceback.print_exc()
        return BUG


def _reported(error: ThreefoldError, arguments: Sequence[str]) -> int:
    sys.stderr.write(error_line(error, as_json="--json" in arguments) + "\n")
    return status_of(error)


def _speak_utf8() -> None:
    """Undecodable bytes come in as lone surrogates, which a memory refuses by name."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


if __name__ == "__main__":
    sys.exit(main())
