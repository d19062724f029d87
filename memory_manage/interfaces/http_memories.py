"""Endpoints over memories. Each is a method of the SDK, and answers what it returns."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Header, Query

from memory_manage.intake import time_of
from memory_manage.interfaces.http_access import Call, may
from memory_manage.interfaces.http_answers import DELETED, FOUND, LISTING, MEMORY, WRITE, WRITTEN
from memory_manage.interfaces.http_bodies import (
    AddBody,
    BatchBody,
    DeleteBody,
    GetQuery,
    ListBody,
    ReadScopeQuery,
    SearchBody,
    UpdateBody,
)
from memory_manage.interfaces.http_errors import ERROR_ANSWERS
from memory_manage.interfaces.http_json import JsonAnswer, StrictRoute
from memory_manage.interfaces.http_scope import check_named
from memory_manage.interfaces.scope_text import namespace_of
from memory_manage.results import Record

memories = APIRouter(prefix="/v1", route_class=StrictRoute, responses=ERROR_ANSWERS)

Reading: TypeAlias = Annotated[Call, Depends(may("read"))]
Writing: TypeAlias = Annotated[Call, Depends(may("write"))]
Deleting: TypeAlias = Annotated[Call, Depends(may("delete"))]
IdempotencyKey: TypeAlias = Annotated[
    str | None, Header(description="Makes a repetition of the call have no second effect.")
]


@memories.post("/memories", response_model=WRITTEN)
def add(body: AddBody, call: Writing, *, idempotency_key: IdempotencyKey = None) -> JsonAnswer:
    """Store a text or a conversation. It is on disk, and found by everybody, when this returns."""
    options = call.writing(body.options())
    content = options.pop("content")
    return _answer(call.memory.add(content, idempotency_key=idempotency_key, **options))


@memories.post("/memories/batch", response_model=WRITTEN)
def add_many(
    body: BatchBody, call: Writing, *, idempotency_key: IdempotencyKey = None
) -> JsonAnswer:
    """Store many memories in grouped commits; the answer has one item for each, in order."""
    options = call.writing(body.options())
    listed = options.pop("memories")
    return _answer(call.memory.add_many(listed, idempotency_key=idempotency_key, **options))


@memories.post("/search", response_model=FOUND)
def search(body: SearchBody, call: Reading) -> JsonAnswer:
    """The memories that answer a question, best first."""
    options = call.reading(body.options())
    if options.get("now") is not None:
        options["now"] = time_of(options["now"], "now")
    return _answer(call.memory.search(options.pop("query"), **options))


@memories.post("/list", response_model=LISTING)
def get_all(body: ListBody, call: Reading) -> JsonAnswer:
    """A page of all memories of the scope, newest first; never repeats or skips one."""
    return _answer(call.memory.get_all(**call.reading(body.options())))


@memories.post("/delete", response_model=DELETED)
def delete_all(body: DeleteBody, call: Deleting) -> JsonAnswer:
    """Delete every memory of the scope that meets the conditions."""
    options = body.options()
    check_named(options)
    return _answer(call.memory.delete_all(**call.reading(options)))


@memories.get("/memories/{memory_id}", response_model=MEMORY)
def get(memory_id: str, *, query: Annotated[GetQuery, Query()], call: Reading) -> JsonAnswer:
    """One memory; with `version` or `as_of` as it was."""
    return _answer(call.memory.get(memory_id, **call.reading(_named(query))))


@memories.get("/memories/{memory_id}/history", response_model=LISTING)
def history(
    memory_id: str, *, query: Annotated[ReadScopeQuery, Query()], call: Reading
) -> JsonAnswer:
    """The kept versions of a memory and the current one, oldest first."""
    return _answer(call.memory.history(memory_id, **call.reading(_named(query))))


@memories.patch("/memories/{memory_id}", response_model=WRITE)
def update(
    memory_id: str, *, body: UpdateBody, call: Writing, idempotency_key: IdempotencyKey = None
) -> JsonAnswer:
    """Change what is named and nothing else."""
    options = call.reading(body.options())
    return _answer(call.memory.update(memory_id, idempotency_key=idempotency_key, **options))


@memories.delete("/memories/{memory_id}", response_model=WRITE)
def delete(
    memory_id: str, *, query: Annotated[ReadScopeQuery, Query()], call: Deleting
) -> JsonAnswer:
    """Delete one memory: gone from every search at once. A repetition says already_deleted."""
    return _answer(call.memory.delete(memory_id, **call.reading(_named(query))))


def _answer(result: Record) -> JsonAnswer:
    return JsonAnswer(result.to_dict())


def _named(query: ReadScopeQuery) -> dict[str, object]:
    """The options of an address, whose namespaces may be JSON."""
    options = query.options()
    if query.namespace is not None:
        options["namespace"] = namespace_of(query.namespace, what="namespace")
    if query.namespaces is not None:
        options["namespaces"] = [namespace_of(text, what="namespaces") for text in query.namespaces]
    return options
