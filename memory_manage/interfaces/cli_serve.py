"""The command that serves the HTTP API, and makes the keys for it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import ScopeOptions, StoreOptions
from memory_manage.interfaces.cli_session import note, opened, print_json
from memory_manage.interfaces.http_keys import new_key, read_keys
from memory_tool.errors import InputError, MissingExtra
from memory_tool.log import log_as_json, logger
from memory_tool.settings import Settings, load_settings

if TYPE_CHECKING:
    from memory_manage.interfaces.http_keys import KeyRing


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """Where to listen, and to whom."""

    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Default: THREEFOLD_HTTP_HOST, else 127.0.0.1."),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(help="Default: THREEFOLD_HTTP_PORT, else 8000; 0 is any free one."),
    ] = None
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="API keys, as --new-key makes them. Default: THREEFOLD_HTTP_KEYS.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKeyOptions:
    """What a new key may do, and where."""

    new_key: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Serve nothing: make an API key for the scope that --user, --project, --agent or"
            " --scope name. Its lines for the file go to standard output.",
        ),
    ] = None
    verbs: Annotated[
        str, typer.Option(help="What the new key may do: some of read,write,delete,admin.")
    ] = "read"
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="The new key holds in every scope.")
    ] = False


@with_groups
def serve(
    *, listen: ListenOptions, made: NewKeyOptions, where: ScopeOptions, store: StoreOptions
) -> None:
    """Serve the HTTP API until SIGTERM. Without API keys it serves this machine alone."""
    if made.new_key is not None:
        _make_key(made.new_key, made, where=where, as_json=store.as_json)
        return
    if made != NewKeyOptions() or where != ScopeOptions():
        message = "--verbs, --anywhere and the options of a scope belong to --new-key"
        raise InputError(message)
    settings = load_settings(
        {
            "data_dir": store.data_dir,
            "database_url": store.database_url,
            "http_host": listen.host,
            "http_port": listen.port,
            "http_keys": None if listen.keys is None else str(listen.keys),
        }
    )
    ring = read_keys(Path(settings.http_keys).expanduser()) if settings.http_keys else None
    _serve(store, settings, ring=ring)


def _serve(store: StoreOptions, settings: Settings, *, ring: "KeyRing | None") -> None:
    try:
        # Here, not above: they take a second that --help does not have, and may be missing.
        from memory_manage.interfaces import http_server  # noqa: PLC0415
        from memory_manage.interfaces.http import application  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed: pip install 'threefold[server]'"
        raise MissingExtra(message) from error
    http_server.check_exposure(settings.http_host, ring)
    log_as_json()
    with (
        http_server.stopped_by_signals(),
        http_server.listening(settings.http_host, settings.http_port) as bound,
        opened(store, on_progress=lambda line: logger().info("opening", step=line)) as memory,
    ):
        http_server.run(application(memory, ring, body_bytes=settings.http_body_bytes), bound)


def _make_key(name: str, made: NewKeyOptions, *, where: ScopeOptions, as_json: bool) -> None:
    if where.run is not None:
        message = "a key is bound to a scope, which a run is not"
        raise InputError(message)
    words = {} if made.anywhere and where == ScopeOptions() else dict(where.words())
    verbs = [verb.strip() for verb in made.verbs.split(",")]
    key, lines = new_key(name, verbs=verbs, scope={**words, "anywhere": made.anywhere})
    if as_json:
        print_json({"key": key, "toml": lines})
        return
    note(f"the key of {name}, shown this once: {key}")
    sys.stdout.write(lines)
