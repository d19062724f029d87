"""Settings: precedence, unknown names, values that can't be."""

from pathlib import Path

import pytest

from memory_tool.errors import SettingsError
from memory_tool.settings import Settings, load_settings


def test_arguments_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """The nearest to the call knows best."""
    file = tmp_path / "threefold.toml"
    file.write_text('tz = "UTC"\ngroup_items = 7\nembed_batch = 8\n', encoding="utf-8")
    environment = {"THREEFOLD_GROUP_ITEMS": "9", "THREEFOLD_EMBED_BATCH": "16"}

    settings = load_settings({"embed_batch": 4}, environment=environment, file=file)

    assert (settings.tz, settings.group_items, settings.embed_batch) == ("UTC", 9, 4)


def test_an_unknown_variable_is_an_error_that_names_the_nearest() -> None:
    """A misspelt database address once fell back to a local store, and memories were lost."""
    with pytest.raises(SettingsError, match="THREEFOLD_DATABASE_URL"):
        load_settings(environment={"THREEFOLD_DATABSE_URL": "postgresql://x"})


@pytest.mark.parametrize(
    "name",
    [
        "THREEFOLD_SERVICE_HOST",
        "THREEFOLD_PORT",
        "THREEFOLD_PORT_5432_TCP_ADDR",
        "THREEFOLD_API_SERVICE_PORT_HTTP",
        "THREEFOLD_TEST_DATABASE_URL",
        "THREEFOLD_EVALUATION_DATA",
        "OTHER",
    ],
)
def test_what_others_put_into_the_environment_is_ignored(name: str) -> None:
    """Kubernetes injects addresses of services; the gate has variables of its own."""
    assert load_settings(environment={name: "x"}) == Settings()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"vector_index": "hnsw64"}, "one of auto; hnsw; ivf; compressed;.* not 'hnsw64'"),
        ({"vector_index": "pq", "hnsw_min_rows": 5000}, "9,984 vectors at least: .*not 5,000"),
        (
            {
                "vector_index": "ivf",
                "vector_backend": "elasticsearch",
                "elasticsearch_url": "http://node",
            },
            "vector_backend is elasticsearch",
        ),
    ],
)
def test_a_kind_of_index_that_can_not_be_built_is_refused(
    values: dict[str, object], said: str
) -> None:
    """At the start, with what would do, instead of at the first fold."""
    with pytest.raises(SettingsError, match=said):
        load_settings(values, environment={})
    load_settings({"vector_index": "pq"}, environment={})


def test_an_unknown_argument_is_an_error() -> None:
    """The same rule for code as for variables."""
    with pytest.raises(SettingsError, match="data_dir"):
        load_settings({"data_dri": "x"}, environment={})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group_items", 0),
        ("group_items", "many"),
        ("chunk_overlap", 600),
        ("tz", "Mars/Olympus"),
        ("pooled", "perhaps"),
        ("scope_requires", "team"),
        ("retry_seconds", -1),
        ("warm_days", 6),
        ("purge_hours", 0),
    ],
)
def test_values_that_can_not_be_are_refused(name: str, value: object) -> None:
    """At the start, not at the first write."""
    with pytest.raises(SettingsError):
        load_settings({name: value}, environment={})


def test_secrets_are_never_shown() -> None:
    """Settings end up in logs."""
    settings = load_settings(
        {"database_url": "postgresql://u:hush@h/d", "embedder_key": "hush"}, environment={}
    )

    assert "hush" not in repr(settings)


def test_a_list_is_read_from_a_variable() -> None:
    """Commas part the items."""
    settings = load_settings(environment={"THREEFOLD_SCOPE_REQUIRES": "user, project"})

    assert settings.scope_requires == ("user", "project")


def test_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    """Docker and Kubernetes mount secrets as files; variables leak into child processes."""
    file = tmp_path / "password"
    file.write_text("hush \n", encoding="utf-8")

    settings = load_settings(environment={"THREEFOLD_ELASTICSEARCH_PASSWORD_FILE": str(file)})

    assert settings.elasticsearch_password == "hush "


def test_only_secrets_lie_in_files(tmp_path: Path) -> None:
    """One way to say an ordinary value is enough."""
    with pytest.raises(SettingsError, match="unknown setting THREEFOLD_TZ_FILE"):
        load_settings(environment={"THREEFOLD_TZ_FILE": str(tmp_path)})


def test_a_secret_said_twice_is_an_error(tmp_path: Path) -> None:
    """After a rotation of only one of them the old one would win in silence."""
    file = tmp_path / "url"
    file.write_text("postgresql://new", encoding="utf-8")
    variables = {"THREEFOLD_DATABASE_URL": "hush", "THREEFOLD_DATABASE_URL_FILE": str(file)}

    with pytest.raises(SettingsError, match="THREEFOLD_DATABASE_URL_FILE: keep one") as caught:
        load_settings(environment=variables)

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfehush", b"\n"])
def test_a_secret_that_can_not_be_read_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    """Without it a store would be opened as somebody else, or the embedded one."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(SettingsError, match="THREEFOLD_EMBEDDER_KEY_FILE") as caught:
        load_settings(environment={"THREEFOLD_EMBEDDER_KEY_FILE": str(file)})

    assert "hush" not in str(caught.value)


def test_texts_are_archived_where_every_host_can_read_them(tmp_path: Path) -> None:
    """An embedded store has one host; those of a server may share no folder."""
    embedded = load_settings({"data_dir": tmp_path}, environment={})
    server = {"data_dir": tmp_path, "database_url": "postgresql://db"}
    named = {**server, "archive_dir": "/shared"}

    assert (embedded.archives, embedded.archive_folder) == (True, tmp_path / "archive")
    assert not load_settings(server, environment={}).archives
    assert load_settings(named, environment={}).archives
    assert load_settings(named, environment={}).archive_folder == Path("/shared")
