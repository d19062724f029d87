"""Endpoints for whoever runs the server: is it alive, is it ready, how does it do."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from memory_manage.interfaces.http_access import Call, may
from memory_manage.interfaces.http_answers import HEALTH, STATS
from memory_manage.interfaces.http_errors import ERROR_ANSWERS
from memory_manage.interfaces.http_json import JsonAnswer, StrictRoute
from memory_manage.results import Stats
from memory_tool.errors import NotFound

probes = APIRouter(route_class=StrictRoute, responses=ERROR_ANSWERS)
upkeep = APIRouter(route_class=StrictRoute, responses=ERROR_ANSWERS)

Watching: TypeAlias = Annotated[Call, Depends(may("admin"))]

_NOBODY: Final = "readyz"
_NOTHING: Final = "0" * 32


class Well(BaseModel):
    """All is well; otherwise the answer is an error."""

    ok: bool


@probes.get("/livez", response_model=Well)
async def livez() -> JsonAnswer:
    """The process answers. Asks no store, lest a restart of one restarts all who use it."""
    return JsonAnswer({"ok": True})


@probes.get("/readyz", response_model=Well)
def readyz(request: Request) -> JsonAnswer:
    """200 while PostgreSQL answers, else 503. A missing index degrades searches, no more."""
    # The cheapest question that goes all the way: counting would read the whole store.
    with contextlib.suppress(NotFound):
        request.app.state.memory.get(
            _NOTHING, user_id=_NOBODY, project_id=_NOBODY, agent_id=_NOBODY
        )
    return JsonAnswer({"ok": True})


@upkeep.get("/metrics", response_class=PlainTextResponse)
def metrics(call: Watching) -> PlainTextResponse:
    """The figures of `/v1/stats` in the text format of Prometheus."""
    text = "".join(f"{line}\n" for line in exposition(call.memory.stats()))
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@upkeep.get("/v1/stats", response_model=STATS)
def stats(call: Watching) -> JsonAnswer:
    """Counts, and latencies in seconds over a bounded window. No content."""
    return JsonAnswer(call.memory.stats().to_dict())


@upkeep.get("/v1/health", response_model=HEALTH)
def health(call: Watching) -> JsonAnswer:
    """What each store says of itself, and where the data lies. No content."""
    return JsonAnswer(call.memory.health().to_dict())


def exposition(figures: Stats) -> Iterator[str]:
    """The lines of Prometheus: each figure is a gauge, a latency says its unit."""
    for name, value in figures.to_dict().items():
        metric = f"threefold_{name}" + ("_seconds" if name.endswith("_latency") else "")
        yield f"# HELP {metric} {name.replace('_', ' ')}"
        yield f"# TYPE {metric} gauge"
        yield f"{metric} {value}"
