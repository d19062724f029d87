"""`threefold serve` as a process: how it starts, what it says of a store that is down, its end."""

from pathlib import Path
from typing import Final

import psycopg
import pytest

from memory_tool.adapters.postgres_server import EmbeddedPostgres, Role
from tests.acceptance.asking import texts
from tests.acceptance.opening import OwnStore, passable_folder
from tests.acceptance.serving import Client, run_threefold, serve_command, status_within

SECRET: Final = "保险箱的密码是 7319"
USER: Final = "a-user-whom-no-log-names"


def test_sigterm_ends_it_with_everything_stored(own_store: OwnStore) -> None:
    """A rolling update sends SIGTERM: what was acknowledged is there, and 0 means all is well."""
    settings = {"data_dir": str(own_store.data_dir()), "database_url": own_store.database_url}
    with serve_command(**settings) as server:
        for number in range(20):
            body = {"content": f"{SECRET} {number}", "user_id": USER, "mode": "async"}
            assert server.client.post("/v1/memories", body).status_code == 200
        assert server.client.post("/v1/search", {"query": SECRET, "usr": 1}).status_code == 400
        assert server.client.post("/v1/search", {"query": SECRET, "user_id": 1}).status_code == 400
        assert server.terminate() == 0
        log = "".join(server.log)
    assert '"route": "/v1/memories"' in log
    assert "7319" not in log
    assert USER not in log
    with own_store.open() as memory:
        assert len(texts(memory.get_all(user_id=USER))) == 20


def test_it_is_unready_while_postgresql_is_down() -> None:
    """A balancer takes it out, nobody restarts it, and it comes back by itself."""
    with passable_folder() as folder, EmbeddedPostgres(folder / "server") as postgres:
        url = postgres.conninfo(role=Role.APP)
        with serve_command(data_dir=str(folder / "data"), database_url=url) as server:
            client = server.client
            body = {"content": "before the outage", "user_id": "u1"}
            assert client.post("/v1/memories", body).status_code == 200
            assert client.call("GET", "/readyz").status_code == 200

            postgres.close()
            down = client.call("GET", "/readyz")
            assert down.status_code == 503
            assert down.json()["error"]["store"] == "postgres"
            assert client.call("GET", "/livez").status_code == 200
            lost = client.post("/v1/memories", {"content": "x", "user_id": "u1"})
            assert lost.status_code == 503
            assert lost.json()["error"]["outcome"] == "not_started"
            assert int(lost.headers["retry-after"]) > 0
            assert client.call("GET", "/v1/health").json()["ok"] is False

            postgres.start()
            assert status_within(client, "/readyz", wanted=200) == 200
            found = client.post("/v1/list", {"user_id": "u1"}).json()
            assert [item["memory"] for item in found["results"]] == ["before the outage"]

            _lose_the_table(postgres)
            corrupt = client.post("/v1/list", {"user_id": "u1"})
            assert corrupt.status_code == 500
            assert corrupt.json()["error"]["type"] == "Corrupt"
            assert corrupt.json()["error"]["repair"].startswith("threefold ")
            assert server.terminate() == 0


def _lose_the_table(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.conninfo(role=Role.OWNER), autocommit=True) as connection:
        connection.execute("ALTER TABLE threefold.memory RENAME TO gone")


def test_a_lost_index_leaves_it_ready(own_store: OwnStore) -> None:
    """Searches are degraded, or not even that; taking every server out would be worse."""
    with own_store.open() as memory:
        memory.add("the red kite", user_id="u1")
        memory.apply_now()
    own_store.lose_indexes()
    settings = {"data_dir": str(own_store.data_dir()), "database_url": own_store.database_url}
    with serve_command(**settings) as server:
        assert server.client.call("GET", "/readyz").status_code == 200
        found = server.client.post("/v1/search", {"query": "red kite", "user_id": "u1"}).json()
        assert [item["memory"] for item in found["results"]] == ["the red kite"]


def test_a_made_key_opens_the_door(own_store: OwnStore, tmp_path: Path) -> None:
    """Its lines go from standard output into the file; the key itself is on the terminal alone."""
    made = run_threefold("serve", "--new-key", "agent", "--user", "u1", "--verbs", "read,write")
    assert made.returncode == 0, made.stderr
    key = made.stderr.strip().rpartition(" ")[2]
    assert key not in made.stdout
    file = tmp_path / "keys.toml"
    file.write_text(made.stdout, encoding="utf-8")
    file.chmod(0o600)
    settings = {"data_dir": str(own_store.data_dir()), "database_url": own_store.database_url}
    with serve_command(**settings, http_keys=str(file)) as server:
        client = Client(http=server.http, key=key)
        assert client.post("/v1/memories", {"content": "hello"}).status_code == 200
        assert client.post("/v1/list", {"user_id": "u2"}).status_code == 403
        assert server.client.post("/v1/list", {"user_id": "u1"}).status_code == 401
        assert server.terminate() == 0
        assert key not in "".join(server.log)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0"), "--new-key"),  # noqa: S104 - to be refused
        (("--host", "no.such.host.invalid"), "http_host"),
        (("--port", "99999"), "http_port"),
        (("--keys", "missing.toml"), "missing.toml"),
        (("--user", "u1"), "--new-key"),
        (("--new-key", "k"), "scope"),
        (("--new-key", "k", "--user", "u", "--verbs", "rule"), "verbs"),
        (("--new-key", "k", "--user", "u", "--anywhere"), "anywhere"),
        (("--new-key", "k", "--user", "u", "--run", "r"), "run"),
    ],
)
def test_what_cant_be_served_is_said_at_once(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """Before any store is opened, with the status of wrong input and one line."""
    folder = tmp_path / "store"
    finished = run_threefold("serve", "--data-dir", str(folder), *arguments)
    assert finished.returncode == 2, finished.stderr
    assert said in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert not folder.exists()
