"""Everything that ``deploy/`` names exists: settings, commands, options, files."""

import re
from pathlib import Path

import pytest
import typer

from memory_manage.interfaces.cli import application
from memory_tool.settings import PREFIX, Settings, load_settings, secret_names
from tests.integration.deploy_files import DEPLOY, TEXTS, Call, calls, named_variables

# Of the installer, not of the library.
OF_THE_BUILD = {"THREEFOLD_TORCH_INDEX"}


@pytest.mark.parametrize(("file", "variable"), list(named_variables()))
def test_every_variable_is_a_setting(file: str, variable: str) -> None:
    """A misspelt one stops every process of a deployment at its start."""
    names = {f"{PREFIX}{name.upper()}" for name in Settings.__dataclass_fields__}
    secrets = {f"{PREFIX}{name.upper()}_FILE" for name in secret_names()}

    assert variable in names | secrets | {f"{PREFIX}CONFIG"} | OF_THE_BUILD


@pytest.mark.parametrize("call", calls(), ids=str)
def test_every_command_and_option_exists(call: Call) -> None:
    """A probe with an option that isn't there kills a healthy process for ever."""
    group = typer.main.get_command(application())
    assert isinstance(group, typer.core.TyperGroup)
    name, *arguments = call.arguments
    command = group.commands.get(name)
    assert command is not None, f"no command {name}"

    # Parses, and runs nothing.
    command.make_context(name, arguments)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("Dockerfile", {"worker", "worker --check"}),
        ("compose.yaml", {"worker", "worker --check", "serve --host 0.0.0.0 --port 8080"}),
        ("crontab", {"rebuild --incremental", "rebuild --full"}),
        ("kubernetes/api.yaml", {"serve --host 0.0.0.0 --port 8080"}),
        ("kubernetes/rebuild.yaml", {"rebuild --incremental", "rebuild --full"}),
        ("kubernetes/worker.yaml", {"worker", "worker --check"}),
        ("offer_periods", {"rebuild --incremental", "rebuild --full"}),
        ("systemd/threefold-api.service", {"serve --host 127.0.0.1 --port 8080"}),
        ("systemd/threefold-rebuild@.service", {"rebuild --incremental", "rebuild --full"}),
        ("systemd/threefold-worker.service", {"worker"}),
    ],
)
def test_each_way_to_run_it_runs_all_of_it(file: str, expected: set[str]) -> None:
    """A worker without its scheduled jobs, or the reverse, shows only after days."""
    assert {" ".join(call.arguments) for call in calls() if call.file == file} == expected


def test_the_runbook_knows_the_commands_of_an_operator() -> None:
    """And the test above sees the runbook at all."""
    known = {call.arguments[0] for call in calls() if call.file == "RUNBOOK.md"}

    assert known >= {"doctor", "stats", "worker", "rebuild", "migrate", "serve"}


def test_every_file_that_the_runbook_names_is_there() -> None:
    """Whoever reads it is in a hurry."""
    named = re.findall(r"`(?:deploy/)?((?:\w+/)?\w[\w@.-]*\.\w+|\w+/\w+)`", TEXTS["RUNBOOK.md"])
    ours = [
        name for name in named if name.partition("/")[0] in {Path(one).parts[0] for one in TEXTS}
    ]

    assert len(ours) > 8
    assert [name for name in ours if not (DEPLOY / name).exists()] == []


@pytest.mark.parametrize("file", sorted(name for name in TEXTS if name.endswith(".env")))
def test_no_secret_stands_in_a_file_of_variables(file: str) -> None:
    """A secret with a default is one that is never changed."""
    secret = {f"{PREFIX}{name.upper()}" for name in secret_names()} - {
        "THREEFOLD_ELASTICSEARCH_URL"
    }
    lines = [line for line in TEXTS[file].splitlines() if "=" in line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines)

    assert variables
    for name, value in variables.items():
        if name in secret or name.endswith("PASSWORD"):
            assert value == "", name
        assert "@" not in value


def test_the_settings_file_of_systemd_can_be_read() -> None:
    """By the one reader of settings, with the variables that the units add."""
    settings = load_settings(environment={}, file=DEPLOY / "systemd" / "threefold.toml")

    assert settings.elasticsearch_replicas == 1
    assert "PASSWORD" not in settings.database_url
    assert re.search(r"://threefold_app@[\w.,]+/", settings.database_url)
