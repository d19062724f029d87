"""What requests hold: the options of the SDK's methods, with the same names and meanings.

Types are checked here, ranges and meanings where the SDK checks them. A test holds the fields
against :mod:`memory_manage.options`, so that an option can't be forgotten here.
"""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

Time: TypeAlias = Annotated[
    str, WithJsonSchema({"type": "string", "description": "An ISO time with its offset."})
]
When: TypeAlias = Annotated[
    str,
    WithJsonSchema(
        {"type": "string", "description": "An ISO time with its offset, or a date: a whole day."}
    ),
]
NamespaceText: TypeAlias = Annotated[
    str | list[str],
    Field(description="`user:u1/project:p2`, or the segments of a free namespace."),
]
Vector: TypeAlias = Annotated[
    list[float], Field(description="Of the space that `space` names, in its dimension.")
]
TypeName: TypeAlias = Annotated[
    str,
    Field(
        description="conversation, event, knowledge, preference, observation, semantic, reflection"
        " or procedure."
    ),
]


UNKNOWN_FIELD: Final = "unknown_field"
_UNKNOWN: Final = "there is no field '{name}'; did you mean '{nearest}'?"


class _Options(BaseModel):
    """Only fields that there are, so that a misspelt one is never silently ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def known_names(cls, given: Any) -> Any:  # noqa: ANN401 - whatever was sent
        """Refuse a field that there isn't, naming the nearest one."""
        for name in given if isinstance(given, Mapping) else ():
            if name not in cls.model_fields:
                nearest = difflib.get_close_matches(str(name), cls.model_fields, n=1, cutoff=0.0)
                named = {"name": name, "nearest": nearest[0]}
                raise PydanticCustomError(UNKNOWN_FIELD, _UNKNOWN, named)
        return given

    def options(self) -> dict[str, Any]:
        """What was given, and nothing else."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class _Ids(_Options):
    """The ids of a scope; left out, those that the API key is bound to."""

    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None
    run_id: Annotated[
        str | None, Field(description="A session: narrows the scope, is none by itself.")
    ] = None


class ScopeBody(_Ids):
    """Where to; left out, where the API key is bound to."""

    namespace: NamespaceText | None = None


class ReadScopeBody(ScopeBody):
    """Which memories; a read may name several namespaces."""

    namespaces: list[NamespaceText] | None = None
    exact: Annotated[
        bool, Field(description="Only the namespace named, not those that carry its ids too.")
    ] = False


class ConditionBody(ReadScopeBody):
    """Which memories of the scope are meant."""

    filters: Annotated[
        dict[str, Any] | str | None,
        Field(description="""`{"type": "event"}`, or `type = 'event' AND importance >= 4`."""),
    ] = None
    since: When | None = None
    until: When | None = None
    types: list[TypeName] = []
    tags: list[str] = []
    tz: Annotated[str | None, Field(description="Zone of bare dates, as Asia/Shanghai.")] = None


class SearchBody(ConditionBody):
    """A question, in any words of any language."""

    query: str
    mode: Literal["auto", "keyword", "vector", "hybrid"] = "auto"
    limit: Annotated[int, Field(description="1 to 1,000 results of a page.")] = 5
    cursor: Annotated[str | None, Field(description="The next page, as the last named it.")] = None
    threshold: Annotated[
        float | None, Field(description="Least similarity, 0 to 1, of a hit without a keyword.")
    ] = None
    now: Annotated[Time | None, Field(description="Reference of recency.")] = None
    explain: Annotated[bool, Field(description="Say how each score was made.")] = False
    on_degraded: Annotated[
        Literal["flag", "raise"], Field(description="Whether a missing part is an error (503).")
    ] = "flag"
    query_embedding: Vector | None = None
    space: str | None = None


class ListBody(ConditionBody):
    """A page of all memories, newest first."""

    limit: Annotated[int, Field(description="1 to 10,000 memories of a page.")] = 100
    cursor: Annotated[str | None, Field(description="The next page, as the last named it.")] = None


class DeleteBody(ConditionBody):
    """Which memories to delete. It names its scope, also where the API key implies it."""


class _Said(_Options):
    """What is said of a memory beside its text."""

    type: TypeName | None = None
    importance: Annotated[int | None, Field(description="1 to 5 stars.")] = None
    pinned: bool = False
    confidence: Annotated[float, Field(description="0 to 1.")] = 1.0
    source: dict[str, Any] = {}
    tags: list[str] = []
    metadata: Annotated[dict[str, Any], Field(description="Your own values.")] = {}
    occurred_at: Time | None = None
    expires_at: Time | None = None


class _New(_Said):
    """What only a new memory has."""

    ttl: Annotated[float | None, Field(description="Seconds, instead of expires_at.")] = None
    key: Annotated[
        str | None, Field(description="Unique in the namespace: a second add under it updates.")
    ] = None
    on_duplicate: Annotated[
        Literal["skip", "update", "fail", "keep"],
        Field(description="When the same text is already there."),
    ] = "skip"
    embedding: Vector | None = None
    space: str | None = None
    conversation_id: str | None = None


class AddBody(ScopeBody, _New):
    """A text, or a conversation: one memory for each message. Rules choose a type left out."""

    content: Annotated[
        str | list[dict[str, Any]],
        Field(description="A text, or messages with role, content, timestamp and name."),
    ]
    mode: Annotated[
        Literal["now", "async"], Field(description="async answers before it is stored.")
    ] = "now"
    skip_tools: Annotated[bool, Field(description="Leave tool messages out.")] = False


class RecordBody(_New):
    """One memory of a batch."""

    content: str
    run_id: str | None = None
    role: str | None = None
    name: str | None = None
    position: int | None = None


class BatchBody(ScopeBody):
    """Many memories of one namespace. A bad one fails alone: see its status in the answer."""

    memories: list[str | Annotated[dict[str, Any], WithJsonSchema(RecordBody.model_json_schema())]]
    mode: Literal["now", "async"] = "now"
    on_duplicate: Literal["skip", "update", "fail", "keep"] = "skip"


def _without_defaults(schema: dict[str, Any]) -> None:
    """A client made from the schema would send the defaults, and so change what should stay."""
    for field in schema["properties"].values():
        field.pop("default", None)


class UpdateBody(ReadScopeBody, _Said):
    """What changes; the rest stays. Metadata is merged, null removes a name."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    content: str = ""
    expected_version: Annotated[
        int | None, Field(description="Fail with 409 if it has another one.")
    ] = None


class ReadScopeQuery(_Ids):
    """The scope in the address: numbers and truths are texts there."""

    model_config = ConfigDict(strict=False)

    namespace: Annotated[
        str | None, Field(description="""`user:u1/project:p2`, or a JSON list of segments.""")
    ] = None
    namespaces: list[str] | None = None
    exact: bool = False


class GetQuery(ReadScopeQuery):
    """Which version of a memory to read."""

    version: int | None = None
    as_of: Time | None = None
