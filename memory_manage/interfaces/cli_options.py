"""The options that commands share, in groups; each group says itself in the words of the SDK."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from memory_manage.interfaces.scope_text import namespace_of
from memory_tool.errors import InputError, ScopeRequired

if TYPE_CHECKING:
    import memory_manage.options as options_of
    from memory_tool.model import Json

TYPES: Final = (
    "conversation, event, knowledge, preference, observation, semantic, reflection, procedure"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Which store, and how to answer. They may stand before the command's name or after it."""

    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the embedded stores. Default: THREEFOLD_DATA_DIR, else ~/.threefold.",
        ),
    ] = None
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL server instead of the embedded one.",
        ),
    ] = None
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON document; errors too, on standard error.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeOptions:
    """The scope of a write, which goes to exactly the namespace named."""

    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            "-s",
            metavar="SCOPE",
            help="""As one text, 'user:u1/project:p2', or free segments, '["team", "notes"]'.""",
        ),
    ] = None
    user: Annotated[str | None, typer.Option(metavar="ID")] = None
    project: Annotated[str | None, typer.Option(metavar="ID")] = None
    agent: Annotated[str | None, typer.Option(metavar="ID")] = None
    run: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="A session; narrows the scope, is none by itself.",
        ),
    ] = None

    def words(self, filters: str | None = None) -> "options_of.ScopeOptions":
        """The scope in the SDK's words.

        Args:
            filters: A filter, which may name the scope instead.

        Raises:
            ScopeRequired: Nothing names one.
            InvalidScope: ``--scope`` looks like JSON and isn't a list of texts.
        """
        if not (self.scope or self.user or self.project or self.agent or filters):
            message = "name a scope: --scope 'user:…/project:…', --user, --project or --agent"
            raise ScopeRequired(message)
        return {
            "namespace": None if self.scope is None else namespace_of(self.scope, what="--scope"),
            "user_id": self.user,
            "project_id": self.project,
            "agent_id": self.agent,
            "run_id": self.run,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionOptions:
    """What must hold of a memory to be shown."""

    filters: Annotated[
        str | None,
        typer.Option(
            "--filter",
            "-f",
            metavar="CONDITION",
            help="For example \"type = 'event' AND importance >= 4\".",
        ),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Happened then or later: a date, or an ISO time with its offset.",
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Happened then or earlier; a date is the whole day.",
        ),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"One of these types (repeat it for several): {TYPES}.",
        ),
    ] = None
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            metavar="TAG",
            help="Has one of these tags (repeat it for several).",
        ),
    ] = None

    def words(self) -> "options_of.ListOptions":
        """The conditions in the SDK's words."""
        return {
            "filters": self.filters,
            "since": self.since,
            "until": self.until,
            "types": self.types or (),
            "tags": self.tags or (),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How to search, and how much to show."""

    limit: Annotated[int, typer.Option("--limit", "-n", help="Most results of a page.")] = 5
    mode: Annotated[
        Literal["auto", "keyword", "vector", "hybrid"],
        typer.Option(help="By exact words, by meaning, or both."),
    ] = "auto"
    threshold: Annotated[
        float | None,
        typer.Option(help="Least similarity, 0 to 1, of a result without a word of the question."),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score was made.")] = (
        False
    )
    cursor: Annotated[str | None, typer.Option(help="The next page, as the last one named it.")] = (
        None
    )

    def words(self) -> "options_of.SearchOptions":
        """The options in the SDK's words."""
        return {
            "limit": self.limit,
            "mode": self.mode,
            "threshold": self.threshold,
            "explain": self.explain,
            "cursor": self.cursor,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemoryOptions:
    """What is said of a new memory beside its text."""

    importance: Annotated[
        int | None, typer.Option(metavar="STARS", help="1 to 5; not given is in the middle.")
    ] = None
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Repeat it for several."),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(help="A name of yours: adding under it again updates the memory."),
    ] = None
    type: Annotated[
        str | None, typer.Option(metavar="TYPE", help=f"{TYPES}; left out, rules decide.")
    ] = None
    occurred_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it happened: an ISO time with its offset."),
    ] = None
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="An object of your own values.")
    ] = None
    on_duplicate: Annotated[
        Literal["skip", "update", "fail", "keep"],
        typer.Option(help="When the same text is already stored."),
    ] = "skip"

    def words(self) -> "options_of.WriteOptions":
        """The options in the SDK's words.

        Raises:
            InputError: ``--metadata`` is no JSON object.
        """
        return {
            "importance": self.importance,
            "tags": self.tags or [],
            "key": self.key,
            "type": self.type,
            "occurred_at": self.occurred_at,
            "metadata": _json_object(self.metadata),
            "on_duplicate": self.on_duplicate,
        }


def _json_object(text: str | None) -> "dict[str, Json]":
    if text is None:
        return {}
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        message = f"--metadata is no JSON: {error}"
        raise InputError(message) from error
    if not isinstance(value, dict):
        message = f"--metadata must be a JSON object, not {type(value).__name__}"
        raise InputError(message)
    return value
