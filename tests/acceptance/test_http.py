"""The HTTP API over a real store: every call, every error, and no key beyond its scope."""

import uuid
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from memory_manage.interfaces.http_answers import (
    DELETED,
    FOUND,
    HEALTH,
    LISTING,
    MEMORY,
    STATS,
    WRITE,
    WRITTEN,
)
from memory_manage.manager import MemoryManage
from tests.acceptance.serving import BODY_BYTES, Client, Served, served

ALL: Final = ["read", "write", "delete", "admin"]
TEAM: Final = f"team-{uuid.uuid4().hex}"
ANNA: Final = f"anna-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def server(memory: MemoryManage) -> Iterator[Served]:
    """A server with keys over the memory of the session."""
    with served(
        memory,
        root={"verbs": ALL, "anywhere": True},
        anna={"verbs": ["read", "write", "delete"], "user_id": ANNA},
        reader={"verbs": ["read"], "user_id": ANNA},
        team={"verbs": ["read", "write"], "namespace": (TEAM, "notes")},
        watcher={"verbs": ["admin"], "anywhere": True},
    ) as one:
        yield one


@pytest.fixture
def root(server: Served) -> Client:
    """Whoever may do everything."""
    return server.client("root")


def error(response: httpx.Response, status: int) -> str:
    """The name of the error, whose body has the one form."""
    assert response.status_code == status, response.text
    said = response.json()["error"]
    assert said["message"]
    return str(said["type"])


def done(response: httpx.Response) -> Any:  # noqa: ANN401 - JSON
    """The document of a success."""
    assert response.status_code == 200, response.text
    return response.json()


def added(client: Client, content: str, **options: object) -> str:
    """The id of a memory just added."""
    (item,) = done(client.post("/v1/memories", {"content": content, **options}))["results"]
    return str(item["id"])


def texts(document: dict[str, Any]) -> list[str]:
    """The texts of an answer, in its order."""
    return [item["memory"] for item in document["results"]]


def test_a_memory_through_its_life(root: Client, user: str) -> None:
    """Added, found in its language, read, changed, remembered as it was, deleted: all by HTTP."""
    options = {
        "user_id": user,
        "importance": 4,
        "tags": ["客户"],
        "source": {"trace_id": "tr_12"},
        "metadata": {"店": "上海", "n": 1},
        "occurred_at": "2025-07-01T09:00:00+08:00",
    }
    written = done(root.post("/v1/memories", {"content": "客户张先生偏好蓝色系产品", **options}))
    WRITTEN.model_validate(written)
    memory_id = written["results"][0]["id"]
    added(root, "The lamp in the hall is green", user_id=user)
    question = {"query": "张先生喜欢什么颜色？", "user_id": user, "explain": True, "threshold": 0.0}
    found = done(root.post("/v1/search", question))
    FOUND.model_validate(found)
    assert texts(found)[0] == "客户张先生偏好蓝色系产品"
    assert found["results"][0]["explanation"]["arms"]
    green = done(root.post("/v1/search", {"query": "colour of the lamp", "user_id": user}))
    assert "The lamp in the hall is green" in texts(green)

    path, scope = f"/v1/memories/{memory_id}", {"user_id": user}
    item = done(root.call("GET", path, params=scope))
    MEMORY.model_validate(item)
    assert item["importance"] == 4
    assert item["occurred_at"] == "2025-07-01T01:00:00+00:00"
    change = {**scope, "metadata": {"店": None, "城": "北京"}, "importance": None}
    changed = done(root.call("PATCH", path, json={**change, "expected_version": 1}))
    WRITE.model_validate(changed)
    assert changed["version"] == 2
    after = done(root.call("GET", path, params=scope))
    assert (after["metadata"], after["importance"]) == ({"n": 1, "城": "北京"}, None)
    assert after["tags"] == ["客户"], "what was not named has changed"
    first = done(root.call("GET", path, params={**scope, "version": 1}))
    assert first["metadata"] == {"店": "上海", "n": 1}
    as_of = {**scope, "as_of": item["updated_at"]}
    assert done(root.call("GET", path, params=as_of))["version"] == 1
    history = done(root.call("GET", f"{path}/history", params=scope))
    LISTING.model_validate(history)
    assert [version["version"] for version in history["results"]] == [1, 2]

    assert done(root.call("DELETE", path, params=scope))["status"] == "deleted"
    assert done(root.call("DELETE", path, params=scope))["status"] == "already_deleted"
    assert error(root.call("GET", path, params=scope), 404) == "NotFound"


def test_many_memories_and_their_pages(root: Client, user: str) -> None:
    """A bad item fails alone, pages meet without a gap, and a scope is emptied when it is named."""
    numbered = [f"第{n}条记录 number {n}" for n in range(6)]
    records = [{"content": content, "importance": 3} for content in numbered]
    body = {"user_id": user, "memories": ["a plain text", *records, {"content": ""}, {"x": 1}]}
    batch = done(root.post("/v1/memories/batch", body))
    WRITTEN.model_validate(batch)
    assert [item["status"] for item in batch["results"]] == ["added"] * 7 + ["failed"] * 2
    seen: list[str] = []
    cursor = None
    while True:
        page = done(root.post("/v1/list", {"user_id": user, "limit": 3, "cursor": cursor}))
        LISTING.model_validate(page)
        seen += texts(page)
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(["a plain text", *numbered])
    first = done(root.post("/v1/search", {"query": "number", "user_id": user, "limit": 2}))
    again = {"query": "number", "user_id": user, "limit": 2, "cursor": first["cursor"]}
    assert not set(texts(first)) & set(texts(done(root.post("/v1/search", again))))
    other = {**again, "query": "another"}
    assert error(root.post("/v1/search", other), 400) == "InvalidCursor"

    rated = {"user_id": user, "filters": "importance >= 3"}
    deleted = done(root.post("/v1/delete", rated))
    DELETED.model_validate(deleted)
    assert deleted == {"deleted": 6}
    assert done(root.post("/v1/delete", {"filters": {"user_id": user}})) == {"deleted": 1}
    assert error(root.post("/v1/delete", {}), 400) == "ScopeRequired"


def test_a_conversation_and_its_times(root: Client, user: str) -> None:
    """Messages become memories of one session, found by time as well."""
    messages = [
        {"role": "user", "content": "我下周去北京出差", "timestamp": "2025-03-01T10:00:00Z"},
        {"role": "assistant", "content": "Noted: Beijing", "timestamp": "2025-03-02T10:00:00Z"},
        {"role": "tool", "content": "booked", "name": "flights"},
    ]
    body = {"content": messages, "user_id": user, "run_id": "s7", "skip_tools": True}
    items = done(root.post("/v1/memories", body))["results"]
    assert [item["status"] for item in items] == ["added", "added", "skipped"]
    day = {"user_id": user, "run_id": "s7", "since": "2025-03-02", "until": "2025-03-02"}
    listing = done(root.post("/v1/list", {**day, "tz": "UTC"}))
    assert texts(listing) == ["Noted: Beijing"]
    assert listing["results"][0]["role"] == "assistant"
    asked = {"query": "北京", "user_id": user, "now": "2025-03-02T10:00:00+00:00", "explain": True}
    assert done(root.post("/v1/search", asked))["results"][0]["explanation"]["recency"] > 0.8


def test_an_idempotency_key_repeats_the_answer(root: Client, user: str) -> None:
    """A client whose connection broke sends the call again, and nothing is there twice."""
    body = {"content": "tea at four", "user_id": user, "on_duplicate": "keep"}
    key = {"Idempotency-Key": f"key-{user}"}
    first, second = (done(root.post("/v1/memories", body, **key)) for _ in range(2))
    assert first["results"][0]["id"] == second["results"][0]["id"]
    assert len(done(root.post("/v1/list", {"user_id": user}))["results"]) == 1
    other = {**body, "content": "coffee at five"}
    assert error(root.post("/v1/memories", other, **key), 409) == "IdempotencyConflict"


def test_conflicts_are_told_apart(root: Client, user: str) -> None:
    """Somebody else was first: the client reads again, and doesn't just repeat."""
    memory_id = added(root, "one of a kind", user_id=user)
    twice = {"content": "one of a kind", "user_id": user, "on_duplicate": "fail"}
    assert error(root.post("/v1/memories", twice), 409) == "DuplicateMemory"
    late = {"user_id": user, "content": "two", "expected_version": 7}
    assert error(root.call("PATCH", f"/v1/memories/{memory_id}", json=late), 409) == (
        "VersionConflict"
    )


BAD: Final[list[tuple[str, Any, str, str]]] = [
    ("/v1/search", {"query": "x"}, "ScopeRequired", "scope"),
    ("/v1/search", {"query": "x", "user": "u"}, "InputError", "did you mean 'user_id'?"),
    ("/v1/search", {"query": 5, "user_id": "u"}, "InputError", "query"),
    ("/v1/search", {"user_id": "u"}, "InputError", "query"),
    ("/v1/search", {"query": "x", "user_id": "u", "limit": "5"}, "InputError", "limit"),
    ("/v1/search", {"query": "x", "user_id": "u", "limit": 0}, "InputError", "limit"),
    ("/v1/search", {"query": "x", "user_id": "u", "explain": "no"}, "InputError", "explain"),
    ("/v1/search", {"query": "x", "user_id": "u", "mode": "psychic"}, "InputError", "mode"),
    ("/v1/search", {"query": "x", "user_id": "u", "filters": {"a": {"like": 1}}},
     "InvalidFilter", "like"),
    ("/v1/search", {"query": "x", "user_id": "u", "now": "2025-01-01"}, "InvalidTime", "now"),
    ("/v1/search", {"query": "x", "user_id": "u", "query_embedding": [1.0], "space": "s"},
     "SpaceMismatch", "space"),
    ("/v1/search", [], "InputError", "JSON object"),
    ("/v1/search", {"query": "x", "namespace": "user"}, "InvalidScope", "user"),
    ("/v1/memories", {"content": "x", "user_id": "u", "importance": 6}, "InputError", "6"),
    ("/v1/memories", {"content": "x", "user_id": "u", "importanse": 3}, "InputError", "importance"),
    ("/v1/memories", {"content": "", "user_id": "u"}, "InvalidText", "empty"),
    ("/v1/memories", {"content": "a\0b", "user_id": "u"}, "InvalidText", "U+0000"),
    ("/v1/memories", {"content": [{"role": "user"}, 5], "user_id": "u"}, "InputError", "content"),
    ("/v1/memories/batch", {"memories": "x", "user_id": "u"}, "InputError", "memories"),
    ("/v1/list", {"user_id": "u", "types": ["opinion"]}, "InputError", "opinion"),
    ("/v1/list?user_id=u", {}, "InputError", "not in the address"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "name", "said"), BAD)
def test_bad_input_is_named(root: Client, path: str, body: object, name: str, said: str) -> None:
    """Nothing is silently ignored, and the message says which part of the call is wrong."""
    response = root.post(path, body)
    assert error(response, 400) == name
    assert said in response.json()["error"]["message"]


@pytest.mark.parametrize("raw", [b"", b"{", b'{"query": NaN}', b'"\\ud83d"', b"\xff", b"[" * 9999])
def test_what_is_no_json_is_refused(root: Client, raw: bytes) -> None:
    """Whatever is sent, the answer has the one form and the server goes on."""
    kind = {"Content-Type": "application/json"}
    response = root.call("POST", "/v1/search", content=raw, headers=kind)
    assert error(response, 400) in {"InputError", "InvalidText"}


def test_a_form_of_a_browser_is_refused(root: Client, user: str) -> None:
    """A page elsewhere can post JSON as plain text without asking; it must not get in with it."""
    content = b'{"content": "planted", "user_id": "%s"}' % user.encode()
    kind = {"Content-Type": "text/plain"}
    refused = root.call("POST", "/v1/memories", content=content, headers=kind)
    assert error(refused, 400) == "InputError"
    assert done(root.post("/v1/list", {"user_id": user}))["results"] == []


def test_too_much_is_refused(root: Client, user: str) -> None:
    """One request must not take the memory of the machine, announced or in chunks."""

    def chunks() -> Iterator[bytes]:
        for _ in range(BODY_BYTES // 1_000_000 + 1):
            yield b" " * 1_000_000

    kind = {"Content-Type": "application/json"}
    announced = root.post("/v1/memories", {"content": "x" * BODY_BYTES, "user_id": user})
    assert error(announced, 413) == "TooLarge"
    streamed = root.call("POST", "/v1/memories", content=chunks(), headers=kind)
    assert error(streamed, 413) == "TooLarge"
    long = root.post("/v1/memories", {"content": "x" * 10_000_001, "user_id": user})
    assert error(long, 413) == "TooLarge", "the store's own limit has the same status"


def test_what_there_isnt_is_not_found(root: Client) -> None:
    """Wrong paths, ids and methods answer in the same form as everything else."""
    assert error(root.call("GET", "/v1/nothing"), 404) == "NotFound"
    assert error(root.call("GET", "/v1/memories/abc", params={"user_id": "u"}), 404) == "NotFound"
    assert error(root.call("PUT", "/v1/search"), 405) == "InputError"
    unknown = root.call("GET", "/v1/memories/abc", params={"user_id": "u", "usr": "v"})
    assert error(unknown, 400) == "InputError"


def test_no_key_no_answer(server: Served) -> None:
    """All but the probes and the description of the API is behind a key."""
    nobody = server.client()
    wrong = Client(http=server.http, key="tf_wrong")
    for client in (nobody, wrong):
        for method, path in (("POST", "/v1/search"), ("GET", "/v1/stats"), ("GET", "/metrics")):
            refused = client.call(method, path)
            assert error(refused, 401) == "NotAuthenticated"
            assert refused.headers["www-authenticate"] == "Bearer"
    assert done(nobody.call("GET", "/livez")) == {"ok": True}
    assert done(nobody.call("GET", "/readyz")) == {"ok": True}
    assert done(nobody.call("GET", "/openapi.json"))["info"]["title"] == "Threefold"


def test_a_key_has_only_its_verbs(server: Served) -> None:
    """Whoever may look may not change, and whoever watches the store sees no memory of it."""
    reader, watcher, anna = (server.client(name) for name in ("reader", "watcher", "anna"))
    memory_id = added(anna, "Anna's own")
    path = f"/v1/memories/{memory_id}"
    assert done(reader.call("GET", path))["memory"] == "Anna's own"
    for refused in (
        reader.post("/v1/memories", {"content": "x"}),
        reader.post("/v1/memories/batch", {"memories": ["x"]}),
        reader.call("PATCH", path, json={"content": "x"}),
        reader.call("DELETE", path),
        reader.post("/v1/delete", {"user_id": ANNA}),
        reader.call("GET", "/v1/stats"),
        anna.call("GET", "/metrics"),
        anna.call("GET", "/v1/health"),
        watcher.call("GET", path, params={"user_id": ANNA}),
        watcher.post("/v1/search", {"query": "own", "user_id": ANNA}),
    ):
        assert error(refused, 403) == "Forbidden"
    STATS.model_validate(done(watcher.call("GET", "/v1/stats")))
    health = done(watcher.call("GET", "/v1/health"))
    HEALTH.model_validate(health)
    assert health["ok"]
    metrics = watcher.call("GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "\nthreefold_memories " in metrics.text
    assert "Anna" not in metrics.text + str(health)


def test_a_key_stays_within_its_scope(server: Served, root: Client, user: str) -> None:
    """Nothing named is the key's own scope, narrower is allowed, and foreign is refused."""
    anna, team = server.client("anna"), server.client("team")
    foreign = added(root, "somebody else's secret", user_id=user)
    own = added(anna, "安娜的计划")
    narrow = added(anna, "for the agent", agent_id="a1")
    for memory_id in (own, narrow):
        assert done(root.call("GET", f"/v1/memories/{memory_id}", params={"user_id": ANNA}))
    found = done(anna.post("/v1/search", {"query": "计划 secret agent", "threshold": 0.0}))
    assert {"安娜的计划", "for the agent"} <= set(texts(found))
    assert "somebody else's secret" not in texts(found)
    assert texts(done(anna.post("/v1/list", {"agent_id": "a1"}))) == ["for the agent"]
    for body in (
        {"user_id": user},
        {"namespace": f"user:{user}"},
        {"namespaces": [f"user:{ANNA}", f"user:{user}"]},
        {"filters": {"user_id": user}},
        {"filters": {"user_id": {"in": [ANNA, user]}}},
    ):
        assert error(anna.post("/v1/list", body), 403) == "Forbidden"
        assert error(anna.post("/v1/search", {"query": "secret", **body}), 403) == "Forbidden"
        assert error(anna.post("/v1/delete", body), 403) == "Forbidden"
    path = f"/v1/memories/{foreign}"
    for method, more in (("GET", ""), ("GET", "/history"), ("DELETE", "")):
        assert error(anna.call(method, path + more), 404) == "NotFound"
        refused = anna.call(method, path + more, params={"user_id": user})
        assert error(refused, 403) == "Forbidden"
    assert error(anna.call("PATCH", path, json={"content": "mine"}), 404) == "NotFound"
    assert error(anna.post("/v1/memories", {"content": "x", "user_id": user}), 403) == "Forbidden"
    assert error(anna.post("/v1/delete", {}), 400) == "ScopeRequired"

    added(team, "a note of the team", namespace=[TEAM, "notes", "2025"])
    assert texts(done(team.post("/v1/list", {}))) == ["a note of the team"]
    segments = f'["{TEAM}", "notes", "2025"]'
    item = done(team.post("/v1/list", {"namespace": [TEAM, "notes", "2025"]}))["results"][0]
    got = team.call("GET", f"/v1/memories/{item['id']}", params={"namespace": segments})
    assert done(got)["memory"] == "a note of the team"
    assert error(team.post("/v1/list", {"namespace": [TEAM]}), 403) == "Forbidden"
    assert error(team.post("/v1/list", {"user_id": user}), 403) == "Forbidden"
    assert done(root.call("GET", path, params={"user_id": user}))["version"] == 1
