"""The command line without a store: help, options, exit statuses, and how results are printed."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import pytest
import typer
from rich.cells import cell_len

from memory_manage.interfaces import cli
from memory_manage.interfaces.cli_doctor import Check, remedy, worst_status
from memory_manage.interfaces.cli_errors import BUG, error_line, status_of
from memory_manage.interfaces.cli_groups import with_groups
from memory_manage.interfaces.cli_options import NewMemoryOptions, ScopeOptions
from memory_manage.interfaces.cli_output import aligned, explained
from memory_manage.interfaces.demo_story import read_story
from memory_manage.results import ArmExplanation, Explanation, Found, MemoryItem
from memory_tool.errors import (
    Corrupt,
    DuplicateMemory,
    InputError,
    InvalidScope,
    NotFound,
    ScopeRequired,
    ThreefoldError,
    Unavailable,
)

COMMANDS: Final = (
    "demo",
    "add",
    "search",
    "list",
    "get",
    "delete",
    "stats",
    "doctor",
    "migrate",
    "worker",
    "rebuild",
    "tiers",
    "serve",
    "backup",
    "restore",
    "export",
    "import",
)
HEAVY: Final = (
    "faiss",
    "fastapi",
    "numpy",
    "psycopg",
    "rjieba",
    "sentence_transformers",
    "tantivy",
    "torch",
    "uvicorn",
)

PRINT_HEAVY: Final = f"""
import sys
from memory_manage.interfaces.cli import main
status = main(sys.argv[1:])
print("heavy:", sorted(set(sys.modules) & set({HEAVY!r})))
sys.exit(status)
"""


def run_help(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command's help, followed by the heavy modules that were loaded for it."""
    return subprocess.run(
        [sys.executable, "-c", PRINT_HEAVY, *arguments, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_loads_nothing_heavy(command: tuple[str, ...]) -> None:
    """Half a second is all that somebody waits for help; NumPy and FAISS alone take longer."""
    finished = run_help(*command)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.endswith("heavy: []\n")
    assert "Usage: " in finished.stdout


def test_help_names_every_command_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts rely on the statuses, so they are documented where their authors look."""
    assert cli.main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(re.search(rf"\b{command} +[A-Z]", said) for command in COMMANDS)
    assert all(f" {status} " in said.partition("Exit status:")[2] for status in (0, 1, 2, 3, 4, 5))


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing that a new user types is the bare name."""
    assert cli.main([]) == 0
    assert "Usage: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["serch", "tea"],
        ["search"],
        ["search", "tea", "--user", "anna", "--limit", "many"],
        ["search", "tea", "--user", "anna", "--mode", "psychic"],
        ["list", "--user"],
        ["list", "--scope", '["team", 3]'],
        ["add", "tea", "--user", "anna", "--metadata", "[1]"],
        ["add", "tea", "--user", "anna", "--metadata", "{"],
    ],
)
def test_wrong_input_exits_with_2_and_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script can tell its own mistake from a store that is down, and a log can keep the line."""
    assert cli.main(["--data-dir", str(tmp_path / "store"), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("threefold: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["add", "tea"], ["search", "tea"], ["list"], ["get", "0" * 32], ["delete", "0" * 32]],
)
def test_no_scope_is_an_error_that_names_the_options(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No silent default: a forgotten scope must never read or write somebody's memories."""
    folder = tmp_path / "store"
    assert cli.main([*arguments, "--data-dir", str(folder), "--json"]) == 2
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "ScopeRequired"
    assert all(option in error["message"] for option in ("--scope", "--user", "--project"))
    assert not folder.exists(), "the store was opened for nothing"


def test_an_unknown_setting_of_the_environment_is_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt variable must not go unnoticed, for the command would use another store."""
    monkeypatch.setenv("THREEFOLD_DATA_DRI", str(tmp_path))
    assert cli.main(["stats"]) == 2
    assert "THREEFOLD_DATA_DIR" in capsys.readouterr().err


def test_a_bug_never_exits_as_not_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python ends with 1 after an exception, which here means that a memory is not there."""

    def broken() -> typer.Typer:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "application", broken)
    assert cli.main(["stats"]) == BUG
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound(), 1),
        (InputError(), 2),
        (ScopeRequired(), 2),
        (DuplicateMemory(), 3),
        (Unavailable(), 4),
        (Corrupt(), 5),
    ],
)
def test_each_kind_of_error_has_its_status(error: ThreefoldError, status: int) -> None:
    """What the caller can do about an error is what a script branches on."""
    assert status_of(error) == status
    assert json.loads(error_line(error, as_json=True))["status"] == status


def test_an_error_line_says_what_became_of_the_write() -> None:
    """Who retries blindly after a commit of unknown outcome writes twice."""
    error = Unavailable("gone\nfor now", outcome="unknown", key="k7")
    line = error_line(error, as_json=False)
    assert line == "threefold: gone for now; store postgres; outcome unknown; key k7"
    assert json.loads(error_line(error, as_json=True))["key"] == "k7"
    assert "threefold doctor" in error_line(Corrupt(), as_json=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """A group with a required and an optional option."""

    colour: Annotated[str, typer.Option()]
    coats: Annotated[int, typer.Option("--coats", "-c")] = 1


def test_a_group_becomes_options_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A group that lost a field or its default would change a command without a word."""

    @with_groups
    def paint(wall: Annotated[str, typer.Argument()], *, how: Paint) -> None:
        typer.echo(f"{wall} {how.colour} {how.coats}")

    app = typer.Typer()
    app.command()(paint)
    app(["north", "--colour", "red", "-c", "3"], standalone_mode=False)
    app(["south", "--colour", "blue"], standalone_mode=False)
    assert capsys.readouterr().out == "north red 3\nsouth blue 1\n"
    assert [*inspect.signature(paint).parameters] == ["wall", "colour", "coats"]
    with pytest.raises(typer.TyperException, match="colour"):
        app(["north"], standalone_mode=False)


def test_what_stands_before_a_command_is_its_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both orders are typed; one that is silently ignored would use another store."""
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    before = ["--json", "--data-dir", str(tmp_path / "a"), "--database-url", nowhere]
    assert cli.main([*before, "stats"]) == 4
    assert json.loads(capsys.readouterr().err)["error"] == "Unavailable"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert cli.main([*before, "stats", "--data-dir", str(tmp_path / "b")]) == 4
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_a_scope_may_be_free_segments() -> None:
    """Memories of a free namespace, as LangGraph writes them, are within reach of a shell."""
    words = ScopeOptions(scope='["team", "notes"]').words()
    assert words.get("namespace") == ("team", "notes")
    assert ScopeOptions(scope="user:u1/project:p2").words().get("namespace") == "user:u1/project:p2"
    with pytest.raises(InvalidScope):
        ScopeOptions(scope='["team",').words()


def test_a_filter_may_carry_the_scope() -> None:
    """The SDK takes it from there, so the command line must not refuse it first."""
    assert ScopeOptions().words("user_id = 'anna'").get("user_id") is None
    with pytest.raises(ScopeRequired):
        ScopeOptions(run="s7").words()


def test_metadata_keep_their_types() -> None:
    """A number given on the command line must be found by a filter over numbers."""
    words = NewMemoryOptions(metadata='{"n": 1, "城市": "上海", "list": [true, null]}').words()
    assert words.get("metadata") == {"n": 1, "城市": "上海", "list": [True, None]}


def test_columns_line_up_below_chinese() -> None:
    """A Chinese character is two cells wide, so padding by characters makes a ragged table."""
    lines = aligned([("偏好", "喜欢蓝色", "x"), ("event", "met Tom", "y")])
    starts = {cell_len(line[: line.index(mark)]) for line, mark in zip(lines, "xy", strict=True)}
    assert len(starts) == 1
    assert aligned([]) == []


def test_a_person_can_recompute_an_explained_score() -> None:
    """An explanation that doesn't add up to the score explains nothing."""
    explanation = Explanation(
        arms={"vector": ArmExplanation(rank=2, score=0.871, filled_in=False)},
        cosine=0.871,
        calibrated=0.84,
        fusion="WeightedSum(vector=0.6, keyword=0.4)",
        turn_before=None,
        relevance=0.92,
        recency=0.95,
        importance=0.8,
        threshold=0.7,
        filters="none",
        tier="hot",
    )
    noon = datetime(2025, 7, 1, 12, tzinfo=UTC)
    item = MemoryItem(
        id="0" * 32,
        memory="likes [blue]\nand green",
        type="preference",
        namespace="user:anna",
        version=1,
        created_at=noon,
        updated_at=noon,
        occurred_at=None,
        score=1.03712,
        explanation=explanation,
    )
    found = Found(results=(item,), strategy="hybrid", reason="both count", confident=True)
    lines = list(explained(found))
    assert "1. likes [blue] and green" in lines
    assert any("vector rank 2, cosine 0.871" in line for line in lines)
    formula = next(line for line in lines if line.startswith("   score "))
    claimed, _, printed = formula.removeprefix("   score ").partition(" = ")
    base, weight, recency, share, least, span, stars = map(float, re.findall(r"\d+\.\d+", printed))
    assert float(claimed) == pytest.approx(1.03712, abs=0.001)
    computed = (base * weight + recency * share) * (least + span * stars)
    assert computed == pytest.approx(float(claimed), abs=0.001)


def test_the_doctor_reports_the_worst_failure() -> None:
    """A corrupt store must not hide behind a full disk."""
    well = Check(name="a", said="ok")
    full = Check(name="b", said="full", fix="free some", status=4)
    corrupt = Check(name="c", said="damaged", fix="rebuild", status=5)
    assert worst_status([well, full, corrupt, well]) == 5
    assert worst_status([well]) == 0
    assert not full.ok


@pytest.mark.parametrize(
    ("name", "part"), [("keyword index", "keywords"), ("vector index", "vectors")]
)
def test_the_doctor_sends_nobody_to_the_wrong_place(name: str, part: str) -> None:
    """Who removes a folder for an index of a server, or while records are down, mends nothing."""
    folder = Path("/data")
    server = dict.fromkeys(("keywords", "vectors"), "Elasticsearch at es:9200")
    embedded = {"keywords": "Tantivy", "vectors": "FAISS"}

    def fix(said: str, where: dict[str, str], *, records: str = "ok") -> str:
        return remedy(name, {"records": records, name: said}, where=where, folder=folder)

    assert f"remove '/data/{part}'" in fix("Corrupt: damaged", embedded)
    assert f"'/data/{part}' belongs to this user" in fix("Unavailable: no room", embedded)
    assert "threefold rebuild --full" in fix("Corrupt: damaged", server)
    assert "Elasticsearch at es:9200 runs" in fix("Unavailable: it can't be reached", server)
    assert "/data" not in fix("Corrupt: damaged", server) + fix("Unavailable: gone", server)
    for where in (server, embedded):
        assert "records first" in fix("unknown", where, records="Unavailable: gone")


def test_the_story_is_worth_telling() -> None:
    """The demo promises two languages, weeks of dated sessions, a tool, and keys to run again."""
    story = read_story()
    keys = [record["key"] for record in story.memories]
    assert len(keys) >= 24
    assert len(set(keys)) == len(keys)
    messages = [message for session in story.sessions for message in session.messages]
    times = [datetime.fromisoformat(message["timestamp"]) for message in messages]
    assert times == sorted(times)
    assert all(time.utcoffset() is not None for time in times)
    assert (times[-1] - times[0]).days > 30
    assert {message["role"] for message in messages} == {"user", "assistant", "tool"}
    chinese = sum(bool(re.search("[一-鿿]", message["content"])) for message in messages)
    assert len(messages) * 0.3 < chinese < len(messages) * 0.7
