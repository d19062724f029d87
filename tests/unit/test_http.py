"""The HTTP API without a store: bodies, errors, answers, and what reaches the log."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from pydantic import BaseModel
from starlette.types import Message

import memory_manage.options as options_of
from memory_manage.intake import RECORD_NAMES
from memory_manage.interfaces import http_bodies, http_server
from memory_manage.interfaces.http import application
from memory_manage.interfaces.http_access import Gate, is_loopback
from memory_manage.interfaces.http_errors import error_answer, status_of
from memory_manage.interfaces.http_json import DEPTH_MAX, strict_json
from memory_manage.interfaces.http_keys import KeyRing
from memory_manage.interfaces.http_upkeep import exposition
from memory_manage.results import Stats
from memory_tool.errors import (
    Corrupt,
    Degraded,
    DuplicateMemory,
    Forbidden,
    IdempotencyConflict,
    InputError,
    InvalidFilter,
    InvalidText,
    NotAuthenticated,
    NotFound,
    ScopeRequired,
    SettingsError,
    ThreefoldError,
    TooLarge,
    Unavailable,
    VersionConflict,
)
from memory_tool.log import stay_quiet_by_default

SECRET: Final = "the safe's code is 7319"


@pytest.mark.parametrize(
    ("body", "options", "own"),
    [
        (http_bodies.AddBody, options_of.WriteOptions, {"content"}),
        (http_bodies.BatchBody, options_of.ManyOptions, {"memories"}),
        (http_bodies.SearchBody, options_of.SearchOptions, {"query"}),
        (http_bodies.ListBody, options_of.ListOptions, set()),
        (http_bodies.DeleteBody, options_of.ConditionOptions, set()),
        (http_bodies.UpdateBody, options_of.UpdateOptions, set()),
        (http_bodies.GetQuery, options_of.GetOptions, set()),
        (http_bodies.ReadScopeQuery, options_of.ReadScopeOptions, set()),
    ],
)
def test_a_body_has_every_option_of_its_method(
    body: type[BaseModel], options: type, own: set[str]
) -> None:
    """An option that the SDK gets and this API forgets is a promise broken in silence."""
    # The key of a repetition is a header, as other APIs have it.
    known = set(options.__annotations__) - {"idempotency_key"}
    assert set(body.model_fields) - own == known
    for name, annotation in options.__annotations__.items():
        words = get_args(annotation) if "Literal" in str(annotation) else ()
        if words and name in body.model_fields:
            assert get_args(body.model_fields[name].annotation) == words


def test_a_record_has_every_field_of_the_sdks() -> None:
    """The documented shape of a batch's records is the one that is taken."""
    assert set(http_bodies.RecordBody.model_fields) == RECORD_NAMES


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("no"), 400),
        (InvalidFilter("no"), 400),
        (ScopeRequired(), 400),
        (TooLarge("no"), 413),
        (NotAuthenticated(), 401),
        (Forbidden(), 403),
        (NotFound("no"), 404),
        (VersionConflict("no"), 409),
        (DuplicateMemory("no"), 409),
        (IdempotencyConflict("no"), 409),
        (Unavailable("no"), 503),
        (Degraded("no", store="search"), 503),
        (Corrupt("no"), 500),
        (ThreefoldError("no"), 500),
    ],
)
def test_every_error_has_its_status_and_its_name(error: ThreefoldError, status: int) -> None:
    """A client decides by the status what to do, and by the name what to say."""
    answer = error_answer(error)
    said = json.loads(bytes(answer.body))["error"]
    assert answer.status_code == status_of(error) == status
    assert (said["type"], said["message"]) == (type(error).__name__, str(error))
    assert answer.headers["cache-control"] == "no-store"


def test_an_error_says_what_else_is_known() -> None:
    """Whether to repeat a write and under which key, when, and which command repairs."""
    unknown = error_answer(Unavailable("no", store="postgres", outcome="unknown", key="k1"))
    said = json.loads(bytes(unknown.body))["error"]
    assert (said["store"], said["outcome"], said["key"]) == ("postgres", "unknown", "k1")
    assert int(unknown.headers["retry-after"]) > 0
    broken = error_answer(Corrupt("no", command="threefold migrate"))
    assert json.loads(bytes(broken.body))["error"]["repair"] == "threefold migrate"
    assert error_answer(NotAuthenticated()).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"{} {}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": [-1.5e309]}',
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[" * (DEPTH_MAX + 2) + b"]" * (DEPTH_MAX + 2),
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ],
)
def test_json_that_could_mean_two_things_is_refused(raw: bytes) -> None:
    """Python reads NaN and takes the last of two names; others don't, and depth kills parsers."""
    with pytest.raises(InputError):
        strict_json(raw)


@pytest.mark.parametrize(
    "raw", [b'{"a": "\xff"}', b'"\\ud83d"', b'{"a": ["\\uDE00 \\ud83d"]}', b'{"\\ud83d": 1}']
)
def test_half_characters_are_refused(raw: bytes) -> None:
    """They can't be stored, nor quoted in an answer."""
    with pytest.raises(InvalidText):
        strict_json(raw)


def test_json_is_read_as_it_is() -> None:
    """Chinese, emoji as pairs, numbers and null come through unchanged."""
    document = {"名": ["张先生", "\U0001f600", 1, 1.5, True, None, {}]}
    assert strict_json(json.dumps(document).encode()) == document
    assert strict_json(json.dumps(document, ensure_ascii=False).encode()) == document


def test_openapi_documents_every_call() -> None:
    """Clients are made from it, so bodies, answers, errors and the key have to be there."""
    document = application(None, KeyRing(keys=()), body_bytes=1).openapi()  # type: ignore[arg-type] # no call is made
    assert document["info"]["version"]
    calls = {
        (method, path): call
        for path, methods in document["paths"].items()
        for method, call in methods.items()
    }
    assert len(calls) == 14
    for (method, path), call in calls.items():
        assert set(call["responses"]) == {"200", "4XX", "5XX"}, path
        assert call["description"]
        assert ("requestBody" in call) == (method in {"post", "patch"})
        if path.startswith("/v1/"):
            assert call["security"], path
            (shape,) = call["responses"]["200"]["content"].values()
            assert shape["schema"]["$ref"].startswith("#/components/schemas/")
    update = document["components"]["schemas"]["UpdateBody"]
    assert not any("default" in field for field in update["properties"].values())


def test_metrics_are_of_the_text_format() -> None:
    """Prometheus reads one line for each sample after its type, and units stand in the name."""
    stats = Stats(
        avg_store_latency=0.5,
        p50_retrieve_latency=0.25,
        p95_retrieve_latency=0.75,
        cache_hit_rate=0.0,
        namespaces=2,
        memories=12,
    )
    lines = list(exposition(stats))
    assert "threefold_avg_store_latency_seconds 0.5" in lines
    assert "# TYPE threefold_memories gauge" in lines
    assert "threefold_memories 12" in lines
    assert len(lines) == 3 * len(stats.keys())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LocalHost"])
def test_this_machine_alone_needs_no_keys(host: str) -> None:
    """A laptop works without ceremony."""
    assert is_loopback(host)
    http_server.check_exposure(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "", "localhost.evil.example"])  # noqa: S104 - to be refused
def test_no_network_is_let_in_without_keys(host: str) -> None:
    """Off by default: nobody publishes everybody's memories by one option."""
    with pytest.raises(SettingsError, match="--new-key"):
        http_server.check_exposure(host, None)
    http_server.check_exposure(host, KeyRing(keys=()))


def test_the_socket_answers_without_delay() -> None:
    """TCP_NODELAY is set only where the protocol is named: else each answer takes 40 ms more."""
    with http_server.listening("localhost", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
        port = bound.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"http_port {port}"),
            http_server.listening(bound.getsockname()[0], port),
        ):
            pass


WITHOUT_FASTAPI: Final = """
import sys
sys.modules["fastapi"] = None
from memory_manage.interfaces.cli import main
sys.exit(main(["serve", "--data-dir", sys.argv[1]]))
"""


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """The API is off by default, so whoever turns it on first may not have its libraries."""
    folder = tmp_path / "store"
    command = [sys.executable, "-c", WITHOUT_FASTAPI, str(folder)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert "pip install 'threefold[server]'" in finished.stderr
    assert not folder.exists()


def asked(app: Gate, **scope: Any) -> list[Message]:  # noqa: ANN401 - ASGI
    """What an application answers to one request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost:8000")]
    whole = {"type": "http", "method": "GET", "path": "/v1/stats", "headers": headers, **scope}
    asyncio.run(app(whole, receive, send))
    return sent


def test_a_bug_is_answered_and_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of a library may quote a memory; the log says only what and where."""

    async def broken(*_asgi: object) -> None:
        raise ValueError(SECRET)

    stay_quiet_by_default()
    with caplog.at_level(logging.INFO, logger="threefold"):
        start, body = asked(Gate(broken, ring=None))
    assert start["status"] == 500
    assert json.loads(body["body"])["error"]["type"] == "Bug"
    logged = json.dumps([record.__dict__ for record in caplog.records], default=repr)
    assert "ValueError" in logged
    assert "test_http.py" in logged
    assert SECRET not in logged + body["body"].decode()


@pytest.mark.parametrize("host", [b"evil.example", b"evil.example:8000", b"", b"[::2]:80"])
def test_a_foreign_name_is_refused_without_keys(host: bytes) -> None:
    """A page in a browser can make its own name lead to this machine, and would read everything."""

    async def never(*_asgi: object) -> None:
        message = "the application was reached"
        raise AssertionError(message)

    start, _ = asked(Gate(never, ring=None), headers=[(b"host", host)])
    assert start["status"] == 403
